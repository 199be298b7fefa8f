//! What the weather of a block's rounds did to its figures. Pure.

use super::gates::{
    FOREIGN_SHARE, GUST_SHARE, GUST_SHARE_TICKS, GUST_SPAN, STEAL_SHARE, SWAPPED_IN_PAGES,
    THROTTLED_PERIODS,
};
use super::interval::{CpuWeather, Weather};
use super::watch::Source;
use serde::{Deserialize, Serialize};

/// What may no longer be claimed. CPU per request survives the first two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Absolute figures.
    Levels,
    /// Those, and ratios of throughput and latency.
    Ratios,
    /// Anything: the members did not meet the same weather. The block is repeated.
    Block,
}

/// Something that the machine did, and what that did to the data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Disturbance {
    /// What may no longer be claimed.
    pub effect: Effect,
    /// Short name: `steal`, `foreign-cpu`, `foreign-cpu-load`, `gust`, `throttled`,
    /// `swap-in`, `cpu-lost`.
    pub cause: String,
    /// For people, with the figure.
    pub message: String,
}

fn disturbance(effect: Effect, cause: &str, message: String) -> Disturbance {
    Disturbance { effect, cause: cause.to_owned(), message }
}

/// Judges rounds in their order: those of one condition for levels and ratios, those of a
/// whole block for whether it stands. What is unknown disturbs nothing.
pub fn judge(rounds: &[Weather], source: Source) -> Vec<Disturbance> {
    let mut found = Vec::new();
    found.extend(steal(rounds));
    found.extend(foreign(rounds));
    found.extend(gust(rounds, source));
    found.extend(throttled(rounds));
    found.extend(swapped_in(rounds));
    found.extend(lost(rounds));
    found
}

/// A share of the time of all rounds that tell.
fn share(
    rounds: &[Weather],
    cpus: impl Fn(&Weather) -> &CpuWeather,
    of: impl Fn(&CpuWeather) -> Option<u64>,
) -> Option<f64> {
    let known = rounds.iter().filter_map(|r| Some((of(cpus(r))?, cpus(r).capacity_ns)));
    let (part, whole) = known.fold((0, 0), |(p, w), (part, whole)| (p + part, w + whole));
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn steal(rounds: &[Weather]) -> Option<Disturbance> {
    let of = |cpus: fn(&Weather) -> &CpuWeather| share(rounds, cpus, |w| w.steal_ns);
    // A generator that is stolen from sends less, a subject answers less.
    let worst = [of(|r| &r.subject), of(|r| &r.load)].into_iter().flatten().fold(0.0, f64::max);
    (worst > STEAL_SHARE).then(|| {
        let message = format!("{} of the CPUs' time was stolen", percent(worst));
        disturbance(Effect::Levels, "steal", message)
    })
}

fn foreign(rounds: &[Weather]) -> Vec<Disturbance> {
    let of = |cpus: fn(&Weather) -> &CpuWeather| {
        share(rounds, cpus, |w| w.foreign_ns).filter(|s| *s > FOREIGN_SHARE)
    };
    let subject = of(|r| &r.subject).map(|s| {
        let message = format!("foreign processes took {} of the subjects' CPUs", percent(s));
        disturbance(Effect::Ratios, "foreign-cpu", message)
    });
    let load = of(|r| &r.load).map(|s| {
        let message = format!("foreign processes took {} of the generator's CPUs", percent(s));
        disturbance(Effect::Levels, "foreign-cpu-load", message)
    });
    subject.into_iter().chain(load).collect()
}

/// Foreign CPU that starts or stops within the rounds: the greatest difference between spans
/// of at least [`GUST_SPAN`], of which single ones are smoothed away by the median of three.
/// What comes and goes faster than a span is in every span alike, and so in every member.
fn gust(rounds: &[Weather], source: Source) -> Option<Disturbance> {
    let spans = smoothed(&spans(rounds));
    let low = spans.iter().copied().reduce(f64::min)?;
    let high = spans.iter().copied().reduce(f64::max)?;
    let fine = source == Source::Cpuacct;
    let limit = if fine { GUST_SHARE } else { GUST_SHARE_TICKS };
    (high - low > limit).then(|| {
        let message = format!(
            "foreign processes took {} to {} of the subjects' CPUs within the block",
            percent(low),
            percent(high)
        );
        disturbance(Effect::Block, "gust", message)
    })
}

/// Foreign shares of the subjects' CPUs over consecutive rounds of at least [`GUST_SPAN`]
/// together. A rest at the end that is shorter is left out.
fn spans(rounds: &[Weather]) -> Vec<f64> {
    let (mut spans, mut start, mut wall_ns) = (Vec::new(), 0, 0_u128);
    for (i, round) in rounds.iter().enumerate() {
        wall_ns += u128::from(round.wall_ns);
        if wall_ns >= GUST_SPAN.as_nanos() {
            spans.extend(share(&rounds[start..=i], |r| &r.subject, |w| w.foreign_ns));
            (start, wall_ns) = (i + 1, 0);
        }
    }
    spans
}

fn smoothed(spans: &[f64]) -> Vec<f64> {
    let middle = |three: &[f64]| {
        let (a, b, c) = (three[0], three[1], three[2]);
        a.min(b).max(a.max(b).min(c))
    };
    spans.windows(3).map(middle).collect()
}

fn throttled(rounds: &[Weather]) -> Option<Disturbance> {
    let periods: u64 = rounds.iter().filter_map(|r| r.throttled_periods).sum();
    (periods > THROTTLED_PERIODS).then(|| {
        let message = format!("a CPU quota stopped processes in {periods} of its periods");
        disturbance(Effect::Block, "throttled", message)
    })
}

fn swapped_in(rounds: &[Weather]) -> Option<Disturbance> {
    let pages: u64 = rounds.iter().filter_map(|r| r.swapped_in_pages).sum();
    (pages > SWAPPED_IN_PAGES).then(|| {
        disturbance(Effect::Block, "swap-in", format!("{pages} pages were read back from swap"))
    })
}

fn lost(rounds: &[Weather]) -> Option<Disturbance> {
    let mut lost: Vec<usize> =
        rounds.iter().filter_map(|r| r.lost_cpus.as_ref()).flatten().copied().collect();
    lost.sort_unstable();
    lost.dedup();
    (!lost.is_empty()).then(|| {
        let cpus = lost.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        disturbance(Effect::Block, "cpu-lost", format!("CPU {cpus} could no longer be used"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_NS: u64 = 250_000_000;

    /// A round of 250 ms on one CPU each with this foreign share of the subjects' CPU.
    fn round(foreign: f64) -> Weather {
        let cpus = |foreign: f64| CpuWeather {
            capacity_ns: ROUND_NS,
            foreign_ns: Some((foreign * ROUND_NS as f64) as u64),
            steal_ns: Some(0),
        };
        Weather {
            wall_ns: ROUND_NS,
            subject: cpus(foreign),
            load: cpus(0.0),
            memory_stall_us: Some(0),
            io_stall_us: Some(0),
            swapped_in_pages: Some(0),
            throttled_periods: Some(0),
            lost_cpus: Some(vec![]),
        }
    }

    fn causes(rounds: &[Weather], source: Source) -> Vec<(Effect, String)> {
        judge(rounds, source).into_iter().map(|d| (d.effect, d.cause)).collect()
    }

    /// Rounds of the shares, each so many times.
    fn rounds(runs: &[(f64, usize)]) -> Vec<Weather> {
        runs.iter().flat_map(|&(share, n)| std::iter::repeat_n(round(share), n)).collect()
    }

    #[test]
    fn foreign_cpu_and_gusts() {
        for (what, runs, ratios, block) in [
            ("calm", &[(0.005, 50)][..], false, false),
            ("a hog all along", &[(0.5, 50)], true, false),
            ("it starts", &[(0.0, 25), (0.5, 25)], true, true),
            ("it stops", &[(0.1, 30), (0.0, 20)], true, true),
            ("at a lower priority", &[(0.0, 25), (0.08, 25)], true, true),
            ("it comes and goes slowly", &[(0.0, 12), (0.5, 12), (0.0, 12), (0.5, 12)], true, true),
            ("one bad round", &[(0.0, 25), (0.9, 1), (0.0, 24)], false, false),
            ("three", &[(0.0, 25), (0.9, 3), (0.0, 22)], true, false),
            ("two seconds", &[(0.0, 24), (0.3, 8), (0.0, 20)], true, true),
            ("a little more", &[(0.01, 25), (0.02, 25)], false, false),
            ("too short to tell", &[(0.0, 4), (0.5, 4)], true, false),
            ("nothing", &[], false, false),
        ] {
            let found = causes(&rounds(runs), Source::Cpuacct);
            let has = |cause: &str| found.iter().any(|(_, c)| c == cause);
            assert_eq!((has("foreign-cpu"), has("gust")), (ratios, block), "{what}: {found:?}");
        }
        let fast: Vec<Weather> = (0..50).map(|i| round(f64::from(i % 2) * 0.5)).collect();
        assert_eq!(causes(&fast, Source::Cpuacct), [(Effect::Ratios, "foreign-cpu".to_owned())]);
    }

    #[test]
    fn coarse_counters_need_a_greater_step() {
        let step = rounds(&[(0.0, 25), (0.08, 25)]);
        for (source, n) in [(Source::Cpuacct, 2), (Source::Ticks, 1), (Source::Schedstat, 1)] {
            assert_eq!(judge(&step, source).len(), n, "{source:?}");
        }
    }

    #[test]
    fn one_rule_for_each_probe() {
        let change = |edit: &dyn Fn(&mut Weather)| {
            let mut all = rounds(&[(0.0, 50)]);
            edit(&mut all[30]);
            causes(&all, Source::Cpuacct)
        };
        let one = |effect, cause: &str| vec![(effect, cause.to_owned())];
        let stolen = |share: f64| Some((share * 50.0 * ROUND_NS as f64) as u64);
        assert_eq!(change(&|r| r.subject.steal_ns = stolen(0.019)), []);
        assert_eq!(change(&|r| r.subject.steal_ns = stolen(0.021)), one(Effect::Levels, "steal"));
        assert_eq!(change(&|r| r.load.steal_ns = stolen(0.021)), one(Effect::Levels, "steal"));
        assert_eq!(
            change(&|r| r.load.foreign_ns = stolen(0.021)),
            one(Effect::Levels, "foreign-cpu-load")
        );
        assert_eq!(change(&|r| r.throttled_periods = Some(1)), one(Effect::Block, "throttled"));
        assert_eq!(change(&|r| r.swapped_in_pages = Some(256)), []);
        assert_eq!(change(&|r| r.swapped_in_pages = Some(257)), one(Effect::Block, "swap-in"));
        assert_eq!(change(&|r| r.lost_cpus = Some(vec![1])), one(Effect::Block, "cpu-lost"));
    }

    #[test]
    fn the_unknown_disturbs_nothing() {
        let nothing = CpuWeather { capacity_ns: ROUND_NS, foreign_ns: None, steal_ns: None };
        let dark = Weather {
            wall_ns: ROUND_NS,
            subject: nothing,
            load: nothing,
            memory_stall_us: None,
            io_stall_us: None,
            swapped_in_pages: None,
            throttled_periods: None,
            lost_cpus: None,
        };
        assert_eq!(judge(&vec![dark; 50], Source::None), []);
    }
}
