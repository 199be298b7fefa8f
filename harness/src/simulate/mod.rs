//! Simulated blocks, judged as measured ones are: how often the intervals cover the truth, how
//! often a difference is claimed where there is none, and how large one must be to be seen.
//! Pure and seeded. Measures nothing, and knows only what is assumed of blocks here: that
//! their log ratios scatter normally, but for the disturbed ones.

use crate::stats::paired;
use crate::verdict::{self, Comparison, LOOKS, PRIMARY, Verdict, Zone};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use std::f64::consts::{SQRT_2, TAU};

/// Numbers of blocks that are looked at.
const BLOCKS: [usize; 3] = [6, 12, 24];
/// Members of a simulated run; every pair is compared.
const MEMBERS: usize = 3;
/// Conditions of a simulated run; every primary metric is compared under each.
const CONDITIONS: usize = 2;
/// Comparisons of a simulated run.
pub const COMPARISONS: usize = MEMBERS * (MEMBERS - 1) / 2 * PRIMARY.len() * CONDITIONS;
/// So large a share of the blocks is disturbed.
pub const DISTURBED_SHARE: f64 = 0.1;
/// So many standard deviations a disturbed block is off. With one of 1 % that is 10 %: beyond
/// every zone, and still no figure that anybody would call absurd.
pub const GROSS_ERROR: f64 = 10.0;
/// True ratios that are planted. The first lies exactly on the edge of the narrow zone.
const PLANTED: [f64; 3] = [1.05, 1.07, 1.10];

/// What disturbs a share of the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disturbance {
    /// Nothing.
    None,
    /// Something that hits either member with even chances.
    EitherSide,
    /// Something that always hits the same member.
    OneSide,
}

const DISTURBANCES: [Disturbance; 3] =
    [Disturbance::None, Disturbance::EitherSide, Disturbance::OneSide];

/// What is simulated.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Standard deviations of the blocks' log ratios.
    pub sds: Vec<f64>,
    /// Everything follows from it.
    pub seed: u64,
    /// Simulated runs for each row; ten times as many where a run is a single comparison.
    pub runs: usize,
}

/// How often the interval of one comparison covers the true ratio. Does not depend on the
/// standard deviation, since disturbances are multiples of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Coverage {
    /// Blocks.
    pub blocks: usize,
    /// What disturbs some of them.
    pub disturbance: Disturbance,
    /// What it must be by theory where the scatter is symmetric.
    pub nominal: Option<f64>,
    /// What it is, as a share.
    pub covered: f64,
}

/// One throughput comparison under the rule that stops a long run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stopping {
    /// Standard deviation of the blocks' log ratios.
    pub sd: f64,
    /// Mean number of blocks.
    pub mean_blocks: f64,
    /// Share of the runs that stopped because the interval was narrow.
    pub stopped_by_width: f64,
    /// Share of the final intervals that cover the true ratio.
    pub covered: f64,
}

/// Runs in which all members are alike: every difference is false. Shares of the runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alike {
    /// Blocks.
    pub blocks: usize,
    /// Standard deviation of the blocks' log ratios.
    pub sd: f64,
    /// What disturbs some of them.
    pub disturbance: Disturbance,
    /// At least one comparison is called higher or lower.
    pub any_claim: f64,
    /// At least one comparison is called a small difference: a hint, not a claim.
    pub any_small: f64,
    /// At least one interval lies wholly outside its zone: what the interval alone would claim.
    pub any_outside_zone: f64,
    /// At least one adjusted p value is below 0.05: what the p values alone would claim.
    pub any_significant: f64,
    /// Share of all comparisons that are called a tie.
    pub ties: f64,
    /// Share of metrics and conditions to which the twin objects.
    pub twin_objects: f64,
}

/// Verdicts on one pair's throughput, which truly differs. Shares of the runs; the rest is
/// called lower.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Planted {
    /// Blocks.
    pub blocks: usize,
    /// Standard deviation of the blocks' log ratios.
    pub sd: f64,
    /// The true ratio.
    pub ratio: f64,
    /// Called higher.
    pub higher: f64,
    /// Called a small difference.
    pub small: f64,
    /// Called inconclusive.
    pub inconclusive: f64,
    /// Called a tie.
    pub tie: f64,
}

/// All that was simulated.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Simulation {
    /// Everything follows from it.
    pub seed: u64,
    /// Simulated runs behind every row.
    pub runs: usize,
    /// Simulated runs behind every row of a single comparison.
    pub single_runs: usize,
    /// Coverage of a fixed number of blocks.
    pub coverage: Vec<Coverage>,
    /// The stop rule.
    pub stopping: Vec<Stopping>,
    /// No differences.
    pub alike: Vec<Alike>,
    /// One difference.
    pub planted: Vec<Planted>,
}

/// Simulates everything that `options` asks for.
pub fn simulate(options: &Options) -> Simulation {
    let single_runs = 10 * options.runs;
    // Each row has a stream of its own: one that draws more does not shift the next.
    let mut stream = 0;
    let mut rng = || {
        let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
        rng.set_stream(stream);
        stream += 1;
        rng
    };
    let mut result = Simulation {
        seed: options.seed,
        runs: options.runs,
        single_runs,
        coverage: Vec::new(),
        stopping: Vec::new(),
        alike: Vec::new(),
        planted: Vec::new(),
    };
    for disturbance in DISTURBANCES {
        for blocks in BLOCKS {
            result.coverage.push(coverage(&mut rng(), blocks, disturbance, single_runs));
        }
    }
    for &sd in &options.sds {
        result.stopping.push(stopping(&mut rng(), sd, single_runs));
        for disturbance in [Disturbance::None, Disturbance::OneSide] {
            for blocks in BLOCKS {
                let run = Run { blocks, sd, disturbance, planted: 1.0 };
                result.alike.push(alike(&mut rng(), run, options.runs));
            }
        }
        for ratio in PLANTED {
            for blocks in BLOCKS {
                let run = Run { blocks, sd, disturbance: Disturbance::None, planted: ratio };
                result.planted.push(planted(&mut rng(), run, options.runs));
            }
        }
    }
    result
}

/// A standard normal number.
///
/// Source: G. E. P. Box, M. E. Muller, A note on the generation of random normal deviates,
/// Annals of Mathematical Statistics 29 (1958), 610–611.
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    // From (0, 1], whose logarithm is finite.
    let u: f64 = 1.0 - rng.random::<f64>();
    let v: f64 = rng.random();
    (-2.0 * u.ln()).sqrt() * (TAU * v).cos()
}

/// How many standard deviations a block is off.
fn error(rng: &mut ChaCha8Rng, disturbance: Disturbance) -> f64 {
    match disturbance {
        Disturbance::None => 0.0,
        _ if !rng.random_bool(DISTURBED_SHARE) => 0.0,
        Disturbance::EitherSide if rng.random_bool(0.5) => -GROSS_ERROR,
        Disturbance::EitherSide | Disturbance::OneSide => GROSS_ERROR,
    }
}

/// Log ratios of one comparison, in standard deviations, whose true ratio is 1.
fn log_ratios(rng: &mut ChaCha8Rng, blocks: usize, disturbance: Disturbance) -> Vec<f64> {
    (0..blocks).map(|_| normal(rng) + error(rng, disturbance)).collect()
}

fn covers(log_ratios: &[f64]) -> bool {
    let interval = paired::estimate(log_ratios).and_then(|e| e.interval);
    interval.is_some_and(|(low, high)| low <= 1.0 && 1.0 <= high)
}

fn coverage(
    rng: &mut ChaCha8Rng,
    blocks: usize,
    disturbance: Disturbance,
    runs: usize,
) -> Coverage {
    let covered = (0..runs).filter(|_| covers(&log_ratios(rng, blocks, disturbance))).count();
    Coverage {
        blocks,
        disturbance,
        nominal: paired::nominal_coverage(blocks),
        covered: covered as f64 / runs as f64,
    }
}

fn stopping(rng: &mut ChaCha8Rng, sd: f64, runs: usize) -> Stopping {
    let zone = Zone::of("throughput");
    let (mut all, mut width, mut covered) = (0, 0, 0);
    for _ in 0..runs {
        let mut d = Vec::new();
        for look in LOOKS {
            d.extend(log_ratios(rng, look - d.len(), Disturbance::None).iter().map(|z| z * sd));
            if let Some(why) = verdict::stop(look, &[(zone, &d)]) {
                width += usize::from(why == verdict::StoppedBy::Width);
                break;
            }
        }
        all += d.len();
        covered += usize::from(covers(&d));
    }
    let share = |n: usize| n as f64 / runs as f64;
    Stopping {
        sd,
        mean_blocks: share(all),
        stopped_by_width: share(width),
        covered: share(covered),
    }
}

/// A simulated run of [`MEMBERS`] members under [`CONDITIONS`] conditions.
#[derive(Debug, Clone, Copy)]
struct Run {
    blocks: usize,
    sd: f64,
    disturbance: Disturbance,
    /// True ratio of the last member to the others, in the first condition's throughput alone.
    planted: f64,
}

/// A comparison's place in a run: metric and log ratios by block.
type Compared = (&'static str, Vec<f64>);

impl Run {
    /// Log ratios of every pair, metric and condition. Those of two pairs that share a member
    /// hang together, as they do in a real run. A disturbed block is one for all metrics and
    /// conditions, and it hits the first member.
    fn draw(self, rng: &mut ChaCha8Rng) -> Vec<Compared> {
        let errors: Vec<f64> =
            (0..self.blocks).map(|_| self.sd * error(rng, self.disturbance)).collect();
        let mut compared = Vec::new();
        for (condition, metric) in places() {
            // A difference of two members has the variance of both.
            let mut logs: Vec<Vec<f64>> = (0..MEMBERS)
                .map(|_| (0..self.blocks).map(|_| normal(rng) * self.sd / SQRT_2).collect())
                .collect();
            logs[0].iter_mut().zip(&errors).for_each(|(x, error)| *x -= error);
            if (condition, metric) == PLANTED_PLACE {
                logs[MEMBERS - 1].iter_mut().for_each(|x| *x += self.planted.ln());
            }
            for (b, a) in pairs() {
                let d = logs[a].iter().zip(&logs[b]).map(|(x, y)| x - y).collect();
                compared.push((metric, d));
            }
        }
        compared
    }
}

/// Where a difference is planted, and between whom.
const PLANTED_PLACE: (usize, &str) = (0, "throughput");
const PLANTED_PAIR: (usize, usize) = (0, MEMBERS - 1);

/// Every primary metric under every condition.
fn places() -> impl Iterator<Item = (usize, &'static str)> {
    (0..CONDITIONS).flat_map(|condition| PRIMARY.map(|metric| (condition, metric)))
}

/// (denominator, numerator) of every pair.
fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..MEMBERS).flat_map(|b| (b + 1..MEMBERS).map(move |a| (b, a)))
}

fn judge(compared: &[Compared]) -> Vec<verdict::Judgement> {
    let comparisons: Vec<Comparison> = compared
        .iter()
        .map(|(metric, d)| Comparison { metric, primary: true, log_ratios: d, spoiled: &[] })
        .collect();
    verdict::judge(&comparisons)
}

fn alike(rng: &mut ChaCha8Rng, run: Run, runs: usize) -> Alike {
    let (mut claims, mut small, mut outside, mut significant, mut ties, mut objections) =
        (0, 0, 0, 0, 0, 0);
    for _ in 0..runs {
        let compared = run.draw(rng);
        let judged = judge(&compared);
        let any = |f: &dyn Fn(&(&Compared, &verdict::Judgement)) -> bool| {
            usize::from(compared.iter().zip(&judged).any(|x| f(&x)))
        };
        claims += any(&|(_, j)| matches!(j.verdict, Verdict::Higher | Verdict::Lower));
        small += any(&|(_, j)| j.verdict == Verdict::Small);
        outside += any(&|((metric, _), j)| {
            let edge = Zone::of(metric).edge();
            let interval = j.estimate.and_then(|e| e.interval);
            interval.is_some_and(|(low, high)| low.ln() > edge || high.ln() < -edge)
        });
        significant += any(&|(_, j)| j.p_adjusted.is_some_and(|p| p < verdict::SIGNIFICANT));
        ties += judged.iter().filter(|j| j.verdict == Verdict::Tie).count();
        // All are alike, so the second member may stand for a twin of the first.
        let twins = compared.iter().step_by(pairs().count());
        objections += twins.filter(|(m, d)| verdict::twin_objects(m, d).is_some()).count();
    }
    let share = |n: usize, of: usize| n as f64 / (runs * of) as f64;
    Alike {
        blocks: run.blocks,
        sd: run.sd,
        disturbance: run.disturbance,
        any_claim: share(claims, 1),
        any_small: share(small, 1),
        any_outside_zone: share(outside, 1),
        any_significant: share(significant, 1),
        ties: share(ties, COMPARISONS),
        twin_objects: share(objections, places().count()),
    }
}

fn planted(rng: &mut ChaCha8Rng, run: Run, runs: usize) -> Planted {
    let place = places().position(|p| p == PLANTED_PLACE).unwrap_or_default();
    let pair = pairs().position(|p| p == PLANTED_PAIR).unwrap_or_default();
    let index = place * pairs().count() + pair;
    let verdicts: Vec<Verdict> = (0..runs).map(|_| judge(&run.draw(rng))[index].verdict).collect();
    let share = |v: Verdict| verdicts.iter().filter(|&&got| got == v).count() as f64 / runs as f64;
    Planted {
        blocks: run.blocks,
        sd: run.sd,
        ratio: run.planted,
        higher: share(Verdict::Higher),
        small: share(Verdict::Small),
        inconclusive: share(Verdict::Inconclusive),
        tie: share(Verdict::Tie),
    }
}

#[cfg(test)]
mod tests;
