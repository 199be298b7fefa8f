//! What may be said of a comparison. Pure: the blocks' log ratios and what spoiled them go in,
//! a verdict and its reason come out. Knows neither members nor machines, and words no
//! sentence about them; `report` does.

mod stop;
mod zone;

pub use stop::{LOOKS, StoppedBy, stop};
pub use zone::{PRIMARY, Zone, is_primary};

use crate::stats::paired::{Estimate, FEWEST_BLOCKS};
use crate::stats::{holm, paired};
use serde::{Deserialize, Serialize};
use std::fmt;

/// An adjusted p value below this, and no other, supports a claim: the chance that a run
/// without any difference claims one.
pub const SIGNIFICANT: f64 = 0.05;

/// What may be said of a comparison of a with b.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The interval lies wholly within the zone, even where it excludes 1.
    Tie,
    /// a is higher than b.
    Higher,
    /// a is lower than b.
    Lower,
    /// They differ, by how much is uncertain.
    Small,
    /// The data allow both a tie and a difference, or are too few.
    Inconclusive,
    /// The generator was the bottleneck; nothing is claimed.
    GeneratorLimited,
    /// The run cannot carry a claim on this metric.
    Noisy,
}

/// What spoiled a comparison.
#[derive(Debug, Clone, PartialEq)]
pub enum Spoiled {
    /// The generator could not push further; with the sign that showed it.
    GeneratorLimited(String),
    /// The twin differs from itself: its interval, as ratios.
    Twin {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// The twin completed too few blocks to check anything.
    TwinMissing {
        /// So many.
        blocks: usize,
    },
    /// Foreign processes ran on the subjects' CPUs; with what was seen.
    Disturbed(String),
    /// Blocks had to be used that do not stand: members were stopped or swapped out.
    Invalid(String),
    /// The machine was found unfit and the run was forced.
    Forced,
}

/// A comparison to be judged.
#[derive(Debug, Clone, Copy)]
pub struct Comparison<'a> {
    /// `throughput`, `p99`…; chooses the zone.
    pub metric: &'a str,
    /// Whether it belongs to the primary family: a [primary](is_primary) metric of two
    /// subjects. Comparisons with controls do not.
    pub primary: bool,
    /// ln(a / b), one a block, finite; from blocks that both members completed.
    pub log_ratios: &'a [f64],
    /// What spoiled the condition. What does not reach this metric may stand here as well.
    pub spoiled: &'a [Spoiled],
}

/// A verdict with what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// What may be said.
    pub verdict: Verdict,
    /// Why, for people.
    pub reason: String,
    /// `None` without blocks.
    pub estimate: Option<Estimate>,
    /// p value, adjusted over the primary family. `None` outside of it, and below
    /// [`FEWEST_BLOCKS`], where nothing is tested.
    pub p_adjusted: Option<f64>,
    /// The interval alone decided: a hint, not a claim.
    pub exploratory: bool,
}

/// Judges all comparisons of a run together, one judgement each, in their order.
///
/// The p values are adjusted over all primary comparisons that have an interval. Those that
/// something spoiled count as well: whether the run was spoiled is not known beforehand, and
/// leaving them out would make the others' claims easier.
pub fn judge(comparisons: &[Comparison]) -> Vec<Judgement> {
    let p_values: Vec<Option<f64>> = comparisons.iter().map(primary_p_value).collect();
    let known: Vec<f64> = p_values.iter().copied().flatten().collect();
    let mut adjusted = holm::adjust(&known).into_iter();
    comparisons
        .iter()
        .zip(p_values)
        .map(|(c, p)| judge_one(c, p.and_then(|_| adjusted.next())))
        .collect()
}

/// `None` outside the primary family and where there is no interval, hence no claim.
fn primary_p_value(c: &Comparison) -> Option<f64> {
    let tested = c.primary && c.log_ratios.len() >= FEWEST_BLOCKS;
    tested.then(|| paired::p_value(c.log_ratios)).flatten()
}

fn judge_one(c: &Comparison, p_adjusted: Option<f64>) -> Judgement {
    let estimate = paired::estimate(c.log_ratios);
    let interval = estimate.and_then(|e| e.interval);
    let (verdict, reason) = match (spoiled_verdict(c), interval) {
        (Some(spoiled), _) => spoiled,
        (None, Some((low, high))) => {
            interval_verdict(low.ln(), high.ln(), Zone::of(c.metric), c.primary, p_adjusted)
        }
        (None, None) => (Verdict::Inconclusive, too_few(c.log_ratios.len())),
    };
    Judgement { verdict, reason, estimate, p_adjusted, exploratory: !c.primary }
}

/// The verdict that needs no look at the figures, where there is one. With the generator at
/// its limit the figures are known to be wrong, and in which direction; that says more than
/// that they are restless.
fn spoiled_verdict(c: &Comparison) -> Option<(Verdict, String)> {
    let reached: Vec<&Spoiled> = c.spoiled.iter().filter(|s| s.reaches(c.metric)).collect();
    let limited = reached.iter().any(|s| matches!(s, Spoiled::GeneratorLimited(_)));
    let reasons: Vec<String> = reached.iter().map(|s| s.to_string()).collect();
    let verdict = if limited { Verdict::GeneratorLimited } else { Verdict::Noisy };
    (!reached.is_empty()).then(|| (verdict, reasons.join("; ")))
}

/// One interval decides; a claim also needs its p value. `low` and `high` are logarithms.
fn interval_verdict(
    low: f64,
    high: f64,
    zone: Zone,
    primary: bool,
    p_adjusted: Option<f64>,
) -> (Verdict, String) {
    let edge = zone.edge();
    let excludes_one = low > 0.0 || high < 0.0;
    if -edge <= low && high <= edge {
        let although = if excludes_one { ", although it excludes 1" } else { "" };
        return (Verdict::Tie, format!("the interval lies wholly within the zone{although}"));
    }
    if low > edge || high < -edge {
        let claim = if low > edge { Verdict::Higher } else { Verdict::Lower };
        let outside = "the interval lies wholly outside the zone";
        let p = p_adjusted.unwrap_or(1.0);
        return match primary {
            false => (claim, format!("{outside}; exploratory, without a p value")),
            true if p < SIGNIFICANT => (claim, format!("{outside}, adjusted {}", p_words(p))),
            true => (Verdict::Small, format!("{outside}, but adjusted {}", p_words(p))),
        };
    }
    // One in twenty intervals excludes 1 by chance, and a run has dozens.
    let by_chance = primary && p_adjusted.unwrap_or(1.0) >= SIGNIFICANT;
    if excludes_one && by_chance {
        let reason = "the interval excludes 1, as one among so many comparisons may by chance";
        (
            Verdict::Inconclusive,
            format!("{reason}, adjusted {}", p_words(p_adjusted.unwrap_or(1.0))),
        )
    } else if excludes_one {
        (Verdict::Small, "the interval excludes 1 but crosses an edge of the zone".to_owned())
    } else {
        (Verdict::Inconclusive, "the interval holds 1 and reaches beyond the zone".to_owned())
    }
}

/// Never rounded to the other side of [`SIGNIFICANT`].
fn p_words(p: f64) -> String {
    if p < 0.001 {
        "p < 0.001".to_owned()
    } else if p < SIGNIFICANT {
        format!("p = {:.3}", (p * 1e3).floor() / 1e3)
    } else {
        format!("p = {:.2}", p.min(1.0))
    }
}

fn too_few(blocks: usize) -> String {
    match blocks {
        0 => "no block that both completed".to_owned(),
        n => format!("direction only: {n} of the {FEWEST_BLOCKS} blocks that an interval needs"),
    }
}

/// What the twin, one subject a second time, says of `metric` under the condition whose log
/// ratios, subject against twin, these are. It differs from itself only by the experiment's
/// own error, so where its interval leaves the zone, or excludes 1 by more than half of the
/// zone, no difference between others can be believed either. `None` also below
/// [`FEWEST_BLOCKS`], where no verdict is given anyway.
pub fn twin_objects(metric: &str, log_ratios: &[f64]) -> Option<Spoiled> {
    let (low, high) = paired::estimate(log_ratios)?.interval?;
    let edge = Zone::of(metric).edge();
    let leaves = low.ln() < -edge || high.ln() > edge;
    let excludes = low.ln() > edge / 2.0 || high.ln() < -edge / 2.0;
    (leaves || excludes).then_some(Spoiled::Twin { low, high })
}

impl Spoiled {
    /// Whether it spoils `metric` too. CPU time is counted, not timed: a foreign process makes
    /// a service wait but not work. A generator at its limit asks less of the service, which
    /// then does less at a time: that changes what a request costs. Memory is read with
    /// nothing else under way. The twin objects to its own metric only, and it is the caller
    /// who says to which.
    fn reaches(&self, metric: &str) -> bool {
        let memory = metric.starts_with("memory-");
        match self {
            Spoiled::GeneratorLimited(_) | Spoiled::Invalid(_) => !memory,
            Spoiled::Disturbed(_) => !memory && !metric.starts_with("cpu-per-request"),
            Spoiled::Twin { .. } | Spoiled::TwinMissing { .. } | Spoiled::Forced => true,
        }
    }
}

impl fmt::Display for Spoiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spoiled::GeneratorLimited(sign) => write!(f, "the generator was the limit: {sign}"),
            Spoiled::Twin { low, high } => {
                write!(f, "the twin differs from itself (95 % {low:.2}–{high:.2})")
            }
            Spoiled::TwinMissing { blocks } => {
                write!(f, "the twin completed only {blocks} blocks, so that nothing checks this")
            }
            Spoiled::Disturbed(seen) | Spoiled::Invalid(seen) => write!(f, "disturbed: {seen}"),
            Spoiled::Forced => f.write_str("the machine was found unfit and the run was forced"),
        }
    }
}

#[cfg(test)]
mod tests;
