//! What follows from the raw figures, as it stands in `benchmark.json`.

use crate::verdict::Verdict;
use serde::{Deserialize, Serialize};

/// What follows from blocks and memory runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// One a metric, condition and member.
    pub levels: Vec<Level>,
    /// One a metric, condition and pair.
    pub ratios: Vec<Ratio>,
    /// What a reader must know before believing them.
    pub cautions: Vec<Caution>,
}

/// The level of `metric` under `condition` of `member`, where there is one.
pub fn level<'a>(
    levels: &'a [Level],
    metric: &str,
    condition: &str,
    member: &str,
) -> Option<&'a Level> {
    let is = |l: &&Level| l.metric == metric && l.condition == condition && l.member == member;
    levels.iter().find(is)
}

/// Something that spoils figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Caution {
    /// What it is.
    pub kind: CautionKind,
    /// Condition concerned; null: all.
    pub condition: Option<String>,
    /// Member concerned; null: all.
    pub member: Option<String>,
    /// Metric concerned; null: as its kind says.
    pub metric: Option<String>,
    /// For people.
    pub reason: String,
}

impl Caution {
    /// Whether it is about this condition, one of these members, and this metric. What it does
    /// not name it is about whatever it is.
    pub fn concerns(&self, condition: &str, members: &[&str], metric: &str) -> bool {
        let is = |field: &Option<String>, what: &[&str]| {
            field.as_deref().is_none_or(|field| what.contains(&field))
        };
        is(&self.condition, &[condition])
            && is(&self.member, members)
            && is(&self.metric, &[metric])
    }
}

/// What spoils figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CautionKind {
    /// The generator, not the service, was the limit: levels are "at least".
    GeneratorLimited,
    /// Foreign processes took CPU from the subjects: levels, and ratios of throughput and
    /// latency.
    Disturbed,
    /// CPU was taken from all alike (steal): levels only.
    DisturbedLevels,
    /// The twin differs from itself.
    Twin,
    /// The machine was found unfit and the run was forced.
    Forced,
    /// Neither a twin nor the null server took part, so that nothing checks the figures.
    NoControls,
    /// The null server has no throughput here: nothing shows what the generator could reach.
    NoCeiling,
    /// The preset only shows that everything works.
    NotAMeasurement,
}

/// A member's estimate over blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// `throughput`, `p50`, `cpu-per-request`…
    pub metric: String,
    /// Name of the condition, or `memory`.
    pub condition: String,
    /// Name of the member.
    pub member: String,
    /// Median over blocks (for `max` the largest); null when it is withheld.
    pub value: Option<f64>,
    /// Lower end of the 95 % interval; null below six blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Unit of all three.
    pub unit: String,
    /// Blocks (or memory runs) behind it.
    pub n: usize,
    /// Why there is no value.
    pub withheld: Option<String>,
    /// What spoils it.
    pub marks: Vec<CautionKind>,
}

/// The paired comparison of two members: a / b.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ratio {
    /// As in a level.
    pub metric: String,
    /// As in a level.
    pub condition: String,
    /// Numerator.
    pub a: String,
    /// Denominator.
    pub b: String,
    /// exp of the median of the Walsh averages of the blocks' log ratios; null without a block
    /// that both completed.
    pub ratio: Option<f64>,
    /// Lower end of the 95 % interval; null below six blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Blocks behind it.
    pub blocks: usize,
    /// What may be said.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// p value, adjusted over the primary family; null outside of it and without an interval.
    pub p_adjusted: Option<f64>,
    /// The interval alone decided: a hint, not a claim.
    pub exploratory: bool,
}

/// What was done about a strange figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// Rule that was applied.
    pub rule: String,
    /// Condition concerned.
    pub condition: String,
    /// Member concerned; null: all.
    pub member: Option<String>,
    /// Whether the figure is quoted. It stays in the raw data either way.
    pub quoted: bool,
    /// For people.
    pub reason: String,
}
