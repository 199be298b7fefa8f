//! A verdict as a sentence that can be quoted alone: where, who, what, and how sure.

use super::number::three_digits;
use crate::plan::{Condition, MEMORY_CONDITION};
use crate::record::Benchmark;
use crate::verdict::{Verdict, Zone};

/// What a sentence says of a comparison a / b.
#[derive(Debug, Clone, Copy)]
pub struct Statement<'a> {
    /// Where it holds, as [`setting`] words it.
    pub setting: &'a str,
    /// `throughput`, `p99`…
    pub metric: &'a str,
    /// Numerator.
    pub a: &'a str,
    /// Denominator.
    pub b: &'a str,
    /// Estimate, where there is one.
    pub ratio: Option<f64>,
    /// Its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// Blocks or memory runs behind it.
    pub blocks: usize,
    /// What may be said.
    pub verdict: Verdict,
    /// Why.
    pub reason: &'a str,
    /// Not in the primary family.
    pub exploratory: bool,
}

/// Begins a sentence with the condition of that name: its connections, and its scenario where
/// `conditions`, those of the run, have several.
pub fn setting(name: &str, conditions: &[Condition]) -> String {
    let Some(condition) = conditions.iter().find(|c| c.name == name) else {
        let memory = name == MEMORY_CONDITION;
        return if memory { "In the memory runs" } else { "At the start" }.to_owned();
    };
    let n = condition.connections;
    let connections = format!("At {n} connection{}", if n == 1 { "" } else { "s" });
    if conditions.iter().all(|c| c.scenario == condition.scenario) {
        connections
    } else {
        format!("{connections} ({})", condition.scenario)
    }
}

/// What a run says of every two subjects, in the metrics that claims are made about.
pub fn sentences(b: &Benchmark) -> Vec<String> {
    let is_subject = |name: &str| b.members.iter().any(|m| m.name == name && m.control.is_none());
    b.results
        .ratios
        .iter()
        .filter(|r| !r.exploratory && is_subject(&r.a) && is_subject(&r.b))
        .map(|r| {
            sentence(&Statement {
                setting: &setting(&r.condition, &b.conditions),
                metric: &r.metric,
                a: &r.a,
                b: &r.b,
                ratio: r.ratio,
                interval: r.low.zip(r.high),
                blocks: r.blocks,
                verdict: r.verdict,
                reason: &r.reason,
                exploratory: r.exploratory,
            })
        })
        .collect()
}

/// The word for a table's cell.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Tie => "tie",
        Verdict::Higher => "higher",
        Verdict::Lower => "lower",
        Verdict::Small => "small",
        Verdict::Inconclusive => "inconclusive",
        Verdict::GeneratorLimited => "generator-limited",
        Verdict::Noisy => "noisy",
    }
}

/// The sentence, without a full stop.
pub fn sentence(s: &Statement) -> String {
    let (a, b, metric, figures) = (s.a, s.b, metric_words(s.metric), figures(s));
    let claim = match s.verdict {
        Verdict::Tie => format!("{a} and {b} tie on {metric} ({figures})"),
        Verdict::Higher => format!("{a} has a higher {metric} than {b} ({figures})"),
        Verdict::Lower => format!("{a} has a lower {metric} than {b} ({figures})"),
        Verdict::Small => {
            let direction = if s.ratio > Some(1.0) { "higher" } else { "lower" };
            format!(
                "{a} probably has a {direction} {metric} than {b}, by how much is uncertain ({figures})"
            )
        }
        Verdict::Inconclusive => {
            format!("it cannot be told whether {a} and {b} differ in {metric} ({figures})")
        }
        Verdict::GeneratorLimited | Verdict::Noisy => {
            format!("nothing is claimed of {a} and {b} in {metric} ({figures})")
        }
    };
    // A tie or a clear difference needs no reason beside its figures.
    match s.verdict {
        Verdict::Tie | Verdict::Higher | Verdict::Lower => {
            format!("{} on this machine {claim}", s.setting)
        }
        _ => format!("{} on this machine {claim}: {}", s.setting, s.reason),
    }
}

/// `ratio 1.01, 95 % 0.980–1.04, 6 blocks, tie zone ±5 %`.
fn figures(s: &Statement) -> String {
    let unit = if s.metric.starts_with("memory-") { "repeat" } else { "block" };
    let interval =
        s.interval.map(|(low, high)| format!("95 % {}–{}", three_digits(low), three_digits(high)));
    let parts = [
        s.ratio.map(|ratio| format!("ratio {}", three_digits(ratio))),
        interval,
        Some(format!("{} {unit}{}", s.blocks, if s.blocks == 1 { "" } else { "s" })),
        Some(format!("tie zone {}", Zone::of(s.metric))),
        s.exploratory.then(|| "exploratory".to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A metric's name within a sentence: `p99` → `p99 latency`, `memory-pss-loaded` → `memory
/// (PSS, loaded)`.
fn metric_words(metric: &str) -> String {
    let parts: Vec<&str> = metric.split('-').collect();
    match parts[..] {
        ["memory", kind, moment] => format!("memory ({}, {moment})", kind.to_uppercase()),
        ["cpu", "per", "request"] => "CPU per request".to_owned(),
        _ if metric.starts_with("p5") || metric.starts_with("p9") => format!("{metric} latency"),
        _ => parts.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Preset;

    const TIE: Statement = Statement {
        setting: "At 300 connections",
        metric: "throughput",
        a: "one",
        b: "two:fast",
        ratio: Some(1.0123),
        interval: Some((0.9812, 1.0401)),
        blocks: 6,
        verdict: Verdict::Tie,
        reason: "the reason",
        exploratory: false,
    };

    #[test]
    fn every_verdict_is_a_sentence() {
        let higher = Statement {
            verdict: Verdict::Higher,
            ratio: Some(2.0876),
            interval: Some((2.051, 2.1249)),
            ..TIE
        };
        let cases = [
            (
                TIE,
                "one and two:fast tie on throughput (ratio 1.01, 95 % 0.981–1.04, 6 blocks, tie zone ±5 %)",
            ),
            (
                higher,
                "one has a higher throughput than two:fast (ratio 2.09, 95 % 2.05–2.12, 6 blocks, tie zone ±5 %)",
            ),
            (
                Statement { verdict: Verdict::Lower, metric: "p99.9", exploratory: true, ..higher },
                "one has a lower p99.9 latency than two:fast (ratio 2.09, 95 % 2.05–2.12, 6 blocks, tie zone ±10 %, exploratory)",
            ),
            (
                Statement { verdict: Verdict::Small, metric: "cpu-per-request", ..higher },
                "one probably has a higher CPU per request than two:fast, by how much is uncertain (ratio 2.09, 95 % 2.05–2.12, 6 blocks, tie zone ±5 %): the reason",
            ),
            (
                Statement { verdict: Verdict::Inconclusive, metric: "p99", ..higher },
                "it cannot be told whether one and two:fast differ in p99 latency (ratio 2.09, 95 % 2.05–2.12, 6 blocks, tie zone ±10 %): the reason",
            ),
            (
                Statement {
                    verdict: Verdict::Inconclusive,
                    metric: "memory-pss-loaded",
                    interval: None,
                    blocks: 1,
                    ..higher
                },
                "it cannot be told whether one and two:fast differ in memory (PSS, loaded) (ratio 2.09, 1 repeat, tie zone ±10 %): the reason",
            ),
            (
                Statement {
                    verdict: Verdict::Inconclusive,
                    ratio: None,
                    interval: None,
                    blocks: 0,
                    ..TIE
                },
                "it cannot be told whether one and two:fast differ in throughput (0 blocks, tie zone ±5 %): the reason",
            ),
            (
                Statement { verdict: Verdict::GeneratorLimited, ..TIE },
                "nothing is claimed of one and two:fast in throughput (ratio 1.01, 95 % 0.981–1.04, 6 blocks, tie zone ±5 %): the reason",
            ),
            (
                Statement { verdict: Verdict::Noisy, metric: "time-to-ready", ..TIE },
                "nothing is claimed of one and two:fast in time to ready (ratio 1.01, 95 % 0.981–1.04, 6 blocks, tie zone ±10 %): the reason",
            ),
        ];
        for (statement, expected) in cases {
            let expected = format!("At 300 connections on this machine {expected}");
            assert_eq!(sentence(&statement), expected);
        }
    }

    #[test]
    fn settings() {
        let closed = |scenario, n| Condition::closed(scenario, n, &Preset::quick());
        let one = [closed("get", 1), closed("get", 300)];
        let two = [closed("get", 300), closed("post", 300)];
        assert_eq!(setting("get@1", &one), "At 1 connection");
        assert_eq!(setting("get@300", &one), "At 300 connections");
        assert_eq!(setting("post@300", &two), "At 300 connections (post)");
        assert_eq!(setting("memory", &two), "In the memory runs");
        assert_eq!(setting("start", &two), "At the start");
    }
}
