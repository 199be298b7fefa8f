//! What spoils figures: a generator at its limit, a machine that was disturbed, a twin that
//! differs from itself. Rules look at the generator, the machine and the controls, never at
//! the comparison that they spoil.

use super::Compared;
use crate::host::judge::Effect;
use crate::load::limit::{BUSY_PERMILLE, CEILING_SHARE, LITTLE, SERVICE_BUSY};
use crate::plan::Condition;
use crate::record::{
    Benchmark, Block, Caution, CautionKind, Cell, ConditionWeather, Control, Level, Member,
    Results, level,
};
use crate::stats::paired::FEWEST_BLOCKS;
use crate::stats::quantile;
use crate::verdict::{Spoiled, twin_objects};

/// One disturbed block can only widen the exact interval of six blocks, whose ends are single
/// blocks, and is one of many where there are more. Two can move it.
const DISTURBED_BLOCKS: usize = 1;

/// A caution, and what it does to a verdict (nothing to one on ratios, where it is `None`).
pub struct Found {
    /// For the record.
    pub caution: Caution,
    spoiled: Option<Spoiled>,
}

/// Everything that spoils something.
pub fn find(benchmark: &Benchmark, levels: &[Level], compared: &[Compared<'_>]) -> Vec<Found> {
    let mut found = about_the_run(benchmark);
    if benchmark.run.forced {
        let reason = Spoiled::Forced.to_string();
        let caution = caution(CautionKind::Forced, None, None, None, reason);
        found.push(Found { caution, spoiled: Some(Spoiled::Forced) });
    }
    found.extend(invalid(benchmark));
    for condition in &benchmark.conditions {
        found.extend(disturbed(benchmark, condition));
        let members = benchmark.members.iter().filter(|m| m.control != Some(Control::Ceiling));
        found.extend(members.filter_map(|m| limited(benchmark, levels, condition, m)));
        found.extend(no_ceiling(benchmark, levels, condition));
    }
    found.extend(compared.iter().filter(|c| c.pair.twin).filter_map(|c| {
        let spoiled = match twin_objects(c.metric, &c.log_ratios) {
            None if is_unchecked(c, compared) => {
                Spoiled::TwinMissing { blocks: c.log_ratios.len() }
            }
            objects => objects?,
        };
        let (condition, metric) = (Some(c.condition), Some(c.metric));
        let caution = caution(CautionKind::Twin, condition, None, metric, spoiled.to_string());
        Some(Found { caution, spoiled: Some(spoiled) })
    }));
    found
}

/// Stamps for who reads the results alone. They spoil no verdict by themselves: `smoke` has
/// too few blocks for one, and without controls verdicts stand, unchecked.
fn about_the_run(benchmark: &Benchmark) -> Vec<Found> {
    let mut found = Vec::new();
    let mut stamp = |kind, reason: String| {
        found.push(Found { caution: caution(kind, None, None, None, reason), spoiled: None });
    };
    let preset = &benchmark.run.preset;
    if !preset.is_measurement() {
        let reason = format!("preset `{}` only shows that everything works", preset.name);
        stamp(CautionKind::NotAMeasurement, reason);
    }
    if benchmark.members.iter().all(|m| m.control.is_none()) {
        let reason = "neither a twin nor the null server checks these figures";
        stamp(CautionKind::NoControls, reason.to_owned());
    }
    found
}

/// The null server took part, but has no throughput under `condition`.
fn no_ceiling(benchmark: &Benchmark, levels: &[Level], condition: &Condition) -> Option<Found> {
    let ceiling = benchmark.members.iter().find(|m| m.control == Some(Control::Ceiling))?;
    if level(levels, "throughput", &condition.name, &ceiling.name)?.value.is_some() {
        return None;
    }
    let reason = "the null server completed no block: what the generator could reach is not known";
    let kind = CautionKind::NoCeiling;
    let caution = caution(kind, Some(&condition.name), None, None, reason.to_owned());
    Some(Found { caution, spoiled: None })
}

/// The twin has too few blocks to object, and others have enough to claim something.
fn is_unchecked(twin: &Compared<'_>, compared: &[Compared<'_>]) -> bool {
    let others = compared
        .iter()
        .filter(|c| !c.pair.twin && (c.metric, c.condition) == (twin.metric, twin.condition));
    twin.log_ratios.len() < FEWEST_BLOCKS
        && others.map(|c| c.log_ratios.len()).max().unwrap_or(0) >= FEWEST_BLOCKS
}

/// Blocks that are used although they do not stand, for another reason than a gust, which only
/// disturbs: throttling, swap-in, a lost CPU.
fn invalid(benchmark: &Benchmark) -> Option<Found> {
    let worse = |b: &Block| b.invalid.iter().find(|d| d.cause != "gust").map(|d| d.message.clone());
    let reason = benchmark.used_blocks().find_map(worse)?;
    let caution = caution(CautionKind::Disturbed, None, None, None, reason.clone());
    Some(Found { caution, spoiled: Some(Spoiled::Invalid(reason)) })
}

fn caution(
    kind: CautionKind,
    condition: Option<&str>,
    member: Option<&str>,
    metric: Option<&str>,
    reason: String,
) -> Caution {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Caution {
        kind,
        condition: owned(condition),
        member: owned(member),
        metric: owned(metric),
        reason,
    }
}

/// What spoils one comparison.
pub fn of(found: &[Found], c: &Compared<'_>) -> Vec<Spoiled> {
    let concerns = |f: &&Found| f.caution.concerns(c.condition, &[c.pair.a, c.pair.b], c.metric);
    found.iter().filter(concerns).filter_map(|f| f.spoiled.clone()).collect()
}

/// Marks the levels that cautions concern. The twin speaks of ratios only, stamps need no mark
/// at every figure, and memory is read with nothing else under way.
pub fn mark(results: &mut Results) {
    use CautionKind::{Disturbed, DisturbedLevels, Forced, GeneratorLimited};
    for level in &mut results.levels {
        let spoils = |kind| match kind {
            Disturbed | DisturbedLevels | GeneratorLimited => level.unit != "bytes",
            kind => kind == Forced,
        };
        level.marks = results
            .cautions
            .iter()
            .filter(|c| spoils(c.kind))
            .filter(|c| c.concerns(&level.condition, &[&level.member], &level.metric))
            .map(|c| c.kind)
            .collect();
        level.marks.dedup();
    }
}

/// What the machine did while blocks that are used ran under `condition`, in the words of the
/// first of them.
fn disturbed(benchmark: &Benchmark, condition: &Condition) -> Vec<Found> {
    let all: Vec<&ConditionWeather> = benchmark
        .used_blocks()
        .filter_map(|b| b.weather.iter().find(|w| w.condition == condition.name))
        .collect();
    // One message a block: that of its worst disturbance of these effects.
    let with = |effects: std::ops::RangeInclusive<Effect>| {
        let found = |w: &&ConditionWeather| {
            let all = w.disturbances.iter().filter(|d| effects.contains(&d.effect));
            all.max_by_key(|d| d.effect).map(|d| d.message.clone())
        };
        all.iter().filter_map(found).collect::<Vec<_>>()
    };
    // A gust that was not waited out disturbs what it fell into as a steady process does.
    let ratios = with(Effect::Ratios..=Effect::Block);
    let levels = with(Effect::Levels..=Effect::Levels);
    let many = |n: usize| n > DISTURBED_BLOCKS || (n > 0 && all.len() < FEWEST_BLOCKS);
    let words = |messages: &[String]| {
        format!("{} ({} of {} blocks)", messages[0], messages.len(), all.len())
    };
    let name = Some(condition.name.as_str());
    let mut found = Vec::new();
    if many(ratios.len()) {
        let reason = words(&ratios);
        let caution = caution(CautionKind::Disturbed, name, None, None, reason.clone());
        found.push(Found { caution, spoiled: Some(Spoiled::Disturbed(reason)) });
    }
    if many(levels.len()) {
        let caution = caution(CautionKind::DisturbedLevels, name, None, None, words(&levels));
        found.push(Found { caution, spoiled: None });
    }
    found
}

/// Whether the generator, and not the member, was the limit: in the median of its blocks.
fn limited(
    benchmark: &Benchmark,
    levels: &[Level],
    condition: &Condition,
    member: &Member,
) -> Option<Found> {
    let cells: Vec<&Cell> =
        benchmark.used_cells(&condition.name, &member.name).filter(|c| c.is_usable()).collect();
    let median = |f: &dyn Fn(&Cell) -> Option<f64>| {
        quantile::median(&cells.iter().filter_map(|c| f(c)).collect::<Vec<_>>())
    };
    let cpus = benchmark.run.layout.subject.len() as f64;
    let workers = member.workers.map_or(cpus, |n| f64::from(n).min(cpus));
    let reason = busy(median(&generator_busy), median(&|c| Some(service_busy(c)? / workers)))
        .or_else(|| little(median(&|c| in_use(c, condition))))
        .or_else(|| near_ceiling(benchmark, levels, condition, member))?;
    let (name, who) = (Some(condition.name.as_str()), Some(member.name.as_str()));
    let caution = caution(CautionKind::GeneratorLimited, name, who, None, reason.clone());
    Some(Found { caution, spoiled: Some(Spoiled::GeneratorLimited(reason)) })
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn busy(generator: Option<f64>, service: Option<f64>) -> Option<String> {
    let generator = generator.filter(|busy| *busy >= f64::from(BUSY_PERMILLE) / 1000.0)?;
    // Who is not known to have been busy is no excuse.
    if service.is_some_and(|busy| busy >= SERVICE_BUSY) {
        return None;
    }
    let service = service.map_or_else(
        || "how busy the service's CPUs were is unknown".to_owned(),
        |busy| format!("the service's CPUs {} busy", percent(busy)),
    );
    let generator = percent(generator);
    Some(format!("its busiest thread was {generator} busy or waiting for a CPU, {service}"))
}

/// Of the busiest thread, over all slices: the time for which it ran or waited for a CPU.
fn generator_busy(cell: &Cell) -> Option<f64> {
    let s = &cell.slices;
    let mut spent = 0.0;
    for (permille, wall_ns) in s.generator_busiest_permille.iter().zip(&s.wall_ns) {
        spent += f64::from((*permille)?) / 1000.0 * *wall_ns as f64;
    }
    Some(spent / s.wall_ns.iter().sum::<u64>().max(1) as f64)
}

/// CPUs that the member kept busy, over all slices.
fn service_busy(cell: &Cell) -> Option<f64> {
    let spent: u64 = cell.slices.cpu_ns.iter().copied().sum::<Option<u64>>()?;
    Some(spent as f64 / cell.slices.wall_ns.iter().sum::<u64>().max(1) as f64)
}

/// Little's law: requests under way, on average, for each connection. `None` where more than
/// 1 % had to be opened anew: that takes time too, and is the service's.
fn in_use(cell: &Cell, condition: &Condition) -> Option<f64> {
    let settle_ns = condition.settle_ms * 1_000_000;
    let slices_ns = (settle_ns + cell.window_ns) * cell.slices.in_flight_ns.len() as u64;
    let in_flight_ns: u64 = cell.slices.in_flight_ns.iter().sum();
    let whole_ns = slices_ns as f64 * condition.connections as f64;
    let few = cell.reconnects.saturating_mul(100) <= condition.connections as u64;
    (few && slices_ns > 0).then(|| in_flight_ns as f64 / whole_ns)
}

fn little(in_use: Option<f64>) -> Option<String> {
    let share = in_use.filter(|share| *share < LITTLE)?;
    Some(format!("connections were in use {} of the time (Little's law)", percent(share)))
}

fn near_ceiling(
    benchmark: &Benchmark,
    levels: &[Level],
    condition: &Condition,
    member: &Member,
) -> Option<String> {
    let ceiling = benchmark.members.iter().find(|m| m.control == Some(Control::Ceiling))?;
    let throughput = |who: &Member| level(levels, "throughput", &condition.name, &who.name)?.value;
    let share = throughput(member)? / throughput(ceiling)?;
    (share >= CEILING_SHARE)
        .then(|| format!("it reached {} of the null server's throughput", percent(share)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::judge::Disturbance;
    use crate::record::sample;

    fn disturbance(effect: Effect, cause: &str) -> Disturbance {
        Disturbance { effect, cause: cause.to_owned(), message: format!("a {cause}") }
    }

    /// Six blocks, of which so many have these disturbances.
    fn run(disturbed: usize, disturbances: &[Disturbance]) -> Benchmark {
        let mut benchmark = sample::begin();
        for number in 0..6 {
            let mut block = sample::block(number, 0);
            let disturbances = if number < disturbed { disturbances.to_vec() } else { Vec::new() };
            block.weather = benchmark
                .conditions
                .iter()
                .map(|c| ConditionWeather {
                    condition: c.name.clone(),
                    rounds: Vec::new(),
                    disturbances: disturbances.clone(),
                })
                .collect();
            benchmark.blocks.push(block);
        }
        benchmark
    }

    fn reasons(benchmark: &Benchmark) -> Vec<String> {
        let found = benchmark.conditions.iter().flat_map(|c| disturbed(benchmark, c));
        found.map(|f| f.caution.reason).collect()
    }

    #[test]
    fn one_disturbed_block_is_one_however_much_disturbed_it_and_two_are_too_many() {
        // A gust is foreign CPU, too.
        let gust = [disturbance(Effect::Ratios, "hog"), disturbance(Effect::Block, "gust")];
        assert_eq!(reasons(&run(1, &gust)), [""; 0]);
        assert_eq!(reasons(&run(2, &gust)), ["a gust (2 of 6 blocks)"]);
        let steal = [disturbance(Effect::Levels, "steal")];
        assert_eq!(reasons(&run(6, &steal)), ["a steal (6 of 6 blocks)"]);
        assert!(
            run(6, &steal)
                .conditions
                .iter()
                .all(|c| { disturbed(&run(6, &steal), c).iter().all(|f| f.spoiled.is_none()) })
        );
    }

    #[test]
    fn the_last_attempt_counts_and_what_stopped_members_spoils_their_cpu_time() {
        let mut benchmark = run(0, &[]);
        benchmark.blocks[2].invalid = vec![disturbance(Effect::Block, "throttled")];
        assert!(matches!(
            invalid(&benchmark),
            Some(Found { spoiled: Some(Spoiled::Invalid(_)), .. })
        ));
        benchmark.blocks.insert(3, sample::block(2, 1));
        assert!(invalid(&benchmark).is_none(), "it was repeated");
        benchmark.blocks[3].invalid = vec![disturbance(Effect::Block, "gust")];
        assert!(invalid(&benchmark).is_none(), "a gust makes members wait, not work");
    }
}
