//! What will be measured and in which order. Pure: the same seed and preset give the same
//! plan on every machine, so that a run can be repeated and resumed.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The null server's label.
pub const CEILING: &str = "null";
/// What the twin's label has after its subject's.
pub const TWIN: &str = "#twin";
/// Name, under which the memory part of a run appears beside the conditions.
pub const MEMORY_CONDITION: &str = "memory";

/// How members share a block's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// They take turns in short slices, so that all meet the same weather.
    #[default]
    Slices,
    /// One after the other, each in one long window of the same total length: what most
    /// benchmarks do. Exists to be compared with.
    Sequential,
}

/// How much is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// Name as on the command line.
    pub name: String,
    /// How members share a block's time.
    pub design: Design,
    /// Fresh processes of every member; the most of them where it may stop earlier.
    pub blocks: usize,
    /// Whether it ends as soon as every primary interval is narrow enough.
    pub stops_when_narrow: bool,
    /// Slices of every member in a block, for each condition.
    pub rounds: usize,
    /// Warm-up slices of every member before the rounds.
    pub warm_up_slices: usize,
    /// Length of a warm-up slice.
    pub warm_up_slice_ms: u64,
    /// Left out at the beginning of a slice.
    pub settle_ms: u64,
    /// Measured part of a slice.
    pub window_ms: u64,
    /// The generator sleeps so long after each wake-up; 0 but to see that a slow one is
    /// noticed.
    pub throttle_us: u64,
    /// Fresh processes of every subject for memory.
    pub memory_repeats: usize,
    /// Requests before memory under load is read.
    pub memory_requests: u64,
    /// From ready to the idle reading.
    pub memory_idle_ms: u64,
    /// From closing the connections to the last reading.
    pub memory_after_ms: u64,
}

impl Preset {
    /// Proves that everything works. Its figures are not a measurement.
    pub fn smoke() -> Self {
        Self {
            name: "smoke".to_owned(),
            design: Design::default(),
            blocks: 1,
            stops_when_narrow: false,
            rounds: 5,
            warm_up_slices: 2,
            warm_up_slice_ms: 50,
            settle_ms: 5,
            window_ms: 50,
            throttle_us: 0,
            memory_repeats: 1,
            memory_requests: 2_000,
            memory_idle_ms: 200,
            memory_after_ms: 200,
        }
    }

    /// Six blocks: the fewest that give a 95 % interval.
    pub fn quick() -> Self {
        Self {
            name: "quick".to_owned(),
            design: Design::default(),
            blocks: 6,
            stops_when_narrow: false,
            rounds: 60,
            warm_up_slices: 5,
            warm_up_slice_ms: 100,
            settle_ms: 5,
            window_ms: 50,
            throttle_us: 0,
            memory_repeats: 3,
            memory_requests: 60_000,
            memory_idle_ms: 2_000,
            memory_after_ms: 5_000,
        }
    }

    /// Twelve blocks: intervals about 0.6 times as wide as those of `quick`.
    pub fn standard() -> Self {
        Self { name: "standard".to_owned(), blocks: 12, memory_repeats: 6, ..Self::quick() }
    }

    /// Up to 24 blocks, fewer where the intervals are narrow enough before.
    pub fn publish() -> Self {
        Self {
            name: "publish".to_owned(),
            blocks: 24,
            stops_when_narrow: true,
            memory_repeats: 12,
            ..Self::quick()
        }
    }

    /// Whether its figures may be read as a measurement.
    pub fn is_measurement(&self) -> bool {
        self.name != "smoke"
    }
}

/// Scenario × connections; the pace is closed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Name, such as `get@300`.
    pub name: String,
    /// Which requests.
    pub scenario: String,
    /// Connections open and in use at a time.
    pub connections: usize,
    /// Slices of every member in a block.
    pub rounds: usize,
    /// Left out at the beginning of a slice.
    pub settle_ms: u64,
    /// Measured part of a slice.
    pub window_ms: u64,
}

/// A connection must be answered many times within a slice, or the slice measures its own
/// edges. A service on one small core answers some 20,000 requests a second, each of C
/// connections every C/20 ms: with one millisecond of window for every six connections, three
/// times in each slice of the slowest and ten times in that of a fast one.
const CONNECTIONS_PER_WINDOW_MS: u64 = 6;
/// Of so many rounds the null server takes part in one: twelve slices a block are exact
/// enough for a ceiling, and more would cost the others time.
const CEILING_EVERY: usize = 5;
/// However long the slices are, so many are needed for a median.
const FEWEST_ROUNDS: usize = 5;

impl Condition {
    /// A closed-pace condition. From some hundred connections on, slices grow and become
    /// fewer, so that a block takes about as long as the preset says.
    pub fn closed(scenario: &str, connections: usize, preset: &Preset) -> Self {
        let grown_ms = preset.window_ms.max(connections as u64 / CONNECTIONS_PER_WINDOW_MS);
        let fewer = preset.rounds * preset.window_ms as usize / grown_ms as usize;
        let (rounds, settle_ms, window_ms) = match preset.design {
            Design::Slices => {
                let rounds = fewer.max(FEWEST_ROUNDS.min(preset.rounds));
                (rounds, preset.settle_ms * grown_ms / preset.window_ms, grown_ms)
            }
            Design::Sequential => (1, preset.settle_ms, preset.rounds as u64 * preset.window_ms),
        };
        let name = format!("{scenario}@{connections}");
        Self { name, scenario: scenario.to_owned(), connections, rounds, settle_ms, window_ms }
    }
}

/// The whole plan of a run, as in `plan.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Every order and every request follows from it.
    pub seed: u64,
    /// How much is measured.
    pub preset: Preset,
    /// Labels of the members.
    pub members: Vec<String>,
    /// So many of them, from the first on, are subjects; the rest are controls.
    pub subjects: usize,
    /// The null server's place among the members. Only a ceiling, it has a slice in every
    /// fifth round.
    pub ceiling: Option<usize>,
    /// What they are loaded with.
    pub conditions: Vec<Condition>,
}

/// One block's orders. Numbers are indices into the plan's members and conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockPlan {
    /// Counted from 0.
    pub number: usize,
    /// In which order the members are started.
    pub start_order: Vec<usize>,
    /// In which order the conditions come, each with the order of members in every round.
    pub conditions: Vec<(usize, Vec<Vec<usize>>)>,
}

impl BlockPlan {
    /// The same with some members and conditions only.
    pub fn only(mut self, members: &[usize], conditions: &[usize]) -> Self {
        self.start_order.retain(|m| members.contains(m));
        self.conditions.retain(|(c, _)| conditions.contains(c));
        for (_, rounds) in &mut self.conditions {
            rounds.iter_mut().for_each(|round| round.retain(|m| members.contains(m)));
        }
        self
    }
}

/// One memory run: a fresh process of one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryPlan {
    /// Counted from 0, over the whole run.
    pub number: usize,
    /// Counted from 0; a repeat has one run of every member.
    pub repeat: usize,
    /// Index into the plan's members.
    pub member: usize,
}

/// What a stream of random numbers is for; each use has its own, so that none shifts another.
#[derive(Clone, Copy)]
enum Stream {
    Orders = 1,
    Requests = 2,
    Memory = 3,
}

impl Plan {
    fn rng(&self, stream: Stream, number: usize) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream((stream as u64) << 32 | number as u64);
        rng
    }

    /// The orders of block `number`: fresh and independent for every block.
    pub fn block(&self, number: usize) -> BlockPlan {
        let mut rng = self.rng(Stream::Orders, number);
        let start_order = shuffled(self.members.len(), &mut rng);
        let conditions = shuffled(self.conditions.len(), &mut rng)
            .into_iter()
            .map(|condition| {
                let rounds = (0..self.conditions[condition].rounds)
                    .map(|round| {
                        let mut order = shuffled(self.members.len(), &mut rng);
                        order.retain(|m| Some(*m) != self.ceiling || round % CEILING_EVERY == 0);
                        order
                    })
                    .collect();
                (condition, rounds)
            })
            .collect();
        BlockPlan { number, start_order, conditions }
    }

    /// The memory runs: every subject once, in random order, as often as the preset says.
    pub fn memory(&self) -> Vec<MemoryPlan> {
        let mut rng = self.rng(Stream::Memory, 0);
        (0..self.preset.memory_repeats)
            .flat_map(|repeat| {
                let order = shuffled(self.subjects, &mut rng);
                order.into_iter().map(move |member| (repeat, member))
            })
            .enumerate()
            .map(|(number, (repeat, member))| MemoryPlan { number, repeat, member })
            .collect()
    }

    /// Seed of the requests of one condition: the same for every member and block.
    pub fn request_seed(&self, condition: usize) -> u64 {
        self.rng(Stream::Requests, condition).random()
    }

    /// About how long a block takes once it runs, without starting and stopping.
    pub fn block_duration(&self) -> Duration {
        let p = &self.preset;
        let warm_up = p.warm_up_slices as u64 * (p.warm_up_slice_ms + p.settle_ms);
        let cell = |c: &Condition| {
            // Draining and reading CPU clocks take about as long as settling.
            c.rounds as u64 * (c.window_ms + 2 * c.settle_ms) + warm_up
        };
        let cells: u64 = self.conditions.iter().map(cell).sum();
        let ceiling = u64::from(self.ceiling.is_some());
        let members = self.members.len() as u64 - ceiling;
        Duration::from_millis(cells * members + ceiling * cells / CEILING_EVERY as u64)
    }

    /// About how long one memory run takes.
    pub fn memory_duration(&self) -> Duration {
        let p = &self.preset;
        // 20,000 requests a second: a middling service on one shared core.
        Duration::from_millis(p.memory_idle_ms + p.memory_after_ms + p.memory_requests / 20 + 300)
    }
}

fn shuffled(n: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(rng);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(seed: u64) -> Plan {
        Plan {
            seed,
            preset: Preset::quick(),
            members: ["a", "b", "c"].map(str::to_owned).to_vec(),
            subjects: 3,
            ceiling: None,
            conditions: vec![
                Condition::closed("get", 50, &Preset::quick()),
                Condition::closed("post", 300, &Preset::quick()),
            ],
        }
    }

    #[test]
    fn a_seed_gives_one_plan_on_every_machine() {
        // Golden values: a changed generator must not change old plans unseen.
        let block = plan(1).block(0);
        assert_eq!(block, plan(1).block(0));
        assert_ne!(block.conditions, plan(1).block(1).conditions);
        assert_ne!(block.conditions, plan(2).block(0).conditions);
        assert_eq!(block.start_order, [2, 1, 0]);
        assert_eq!(block.conditions[0].1[..3], [[2, 0, 1], [0, 1, 2], [0, 2, 1]]);
    }

    #[test]
    fn slices_grow_with_the_connections_and_the_block_does_not() {
        let of = |n| {
            let c = Condition::closed("get", n, &Preset::quick());
            (c.rounds, c.settle_ms, c.window_ms)
        };
        assert_eq!(of(1), (60, 5, 50));
        assert_eq!(of(300), (60, 5, 50));
        assert_eq!(of(1_200), (15, 20, 200));
        assert_eq!(of(100_000), (5, 1_666, 16_666));
    }

    #[test]
    fn every_round_has_every_member_once() {
        for (_, rounds) in plan(3).block(0).conditions {
            assert_eq!(rounds.len(), 60);
            for mut round in rounds {
                round.sort_unstable();
                assert_eq!(round, [0, 1, 2]);
            }
        }
    }

    #[test]
    fn each_member_comes_first_about_equally_often() {
        let mut first = [0; 3];
        for block in 0..20 {
            for (_, rounds) in plan(9).block(block).conditions {
                rounds.iter().for_each(|r| first[r[0]] += 1);
            }
        }
        // 2,400 draws of 1/3: five standard deviations are 115.
        assert!(first.iter().all(|&n| (685..=915).contains(&n)), "{first:?}");
    }

    #[test]
    fn controls_have_no_memory_runs_and_the_ceiling_few_slices() {
        let plan = Plan { subjects: 1, ceiling: Some(2), ..plan(5) };
        for (_, rounds) in plan.block(1).conditions {
            assert_eq!(rounds.iter().filter(|r| r.contains(&2)).count(), 12);
            assert!(rounds.iter().all(|r| r.contains(&0) && r.contains(&1)));
        }
        assert!(plan.memory().iter().all(|run| run.member == 0));
    }

    #[test]
    fn the_sequential_design_has_one_window_of_the_same_length() {
        let preset = Preset { design: Design::Sequential, ..Preset::quick() };
        let c = Condition::closed("get", 300, &preset);
        assert_eq!((c.rounds, c.settle_ms, c.window_ms), (1, 5, 3_000));
    }

    #[test]
    fn memory_runs_are_interleaved() {
        let runs = plan(4).memory();
        assert_eq!(runs.len(), 9);
        for repeat in runs.chunks(3) {
            let mut members: Vec<usize> = repeat.iter().map(|r| r.member).collect();
            members.sort_unstable();
            assert_eq!(members, [0, 1, 2]);
        }
    }
}
