//! From what the machine is and does to what may be claimed: every threshold, with its
//! reason, and the rules that use them. Pure, but for [`await_calm`], which calls back.
//!
//! The rules look at the machine only, never at an outcome. All thresholds are first guesses
//! but for those whose reason names a measurement.

use super::cgroup::Quota;
use super::interval::Weather;
use super::layout::Layout;
use super::probes::Probes;
use super::watch::Source;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Foreign CPU, in cores, with which no run begins. A fifth of a core is more than what a
/// desktop at rest takes (a few percent) and less than anything that computes.
pub const FOREIGN_CORES: f64 = 0.20;
/// How long foreign CPU is looked at, at a time: a hundred ticks, so that even a machine that
/// counts in ticks is right to a percent or two.
pub const LOOK: Duration = Duration::from_secs(1);
/// How often to look before a run is refused: two minutes, enough for an update or an index
/// to finish; what lasts longer will outlast the run too.
pub const LOOKS: u32 = 120;
/// Steal, of the CPUs' time, beyond which levels are disturbed. It takes the whole CPU away
/// from all alike: with 6 to 14 % of it the ratio of two services still read 2.09, while the
/// machine's speed had halved.
pub const STEAL_SHARE: f64 = 0.02;
/// Foreign share of the subjects' CPUs beyond which ratios of throughput and latency are
/// disturbed too: the scheduler shares a CPU out by threads, and favours whoever has more of
/// them. A process that computed all along turned a ratio of 2.09 into 1.34, and left CPU per
/// request alone. Below, the kernel's own threads (0.1 to 0.3 % here) and a desktop at rest.
pub const FOREIGN_SHARE: f64 = 0.02;
/// Change of the foreign share of the subjects' CPUs within a block that is a gust. Above
/// [`FOREIGN_SHARE`], or what is merely disturbed would be repeated; below what a process
/// of lower priority gets on a busy CPU (nice 10: a tenth, by the scheduler's weights).
pub const GUST_SHARE: f64 = 0.05;
/// The same where task time is counted in ticks: a second has 100 to 1000 samples, whose
/// standard deviation is up to 5 %, and the greatest difference of a dozen such figures is
/// some three of that.
pub const GUST_SHARE_TICKS: f64 = 0.15;
/// Rounds are judged for gusts in spans of at least this length: shorter ones than a span hit
/// too few rounds to move a median over rounds.
pub const GUST_SPAN: Duration = Duration::from_secs(1);
/// Periods in which a quota stopped somebody: one is 100 ms, as long as two slices, and
/// whoever happened to run has it all.
pub const THROTTLED_PERIODS: u64 = 0;
/// Pages read back from swap during a block, of 4 KiB mostly: 1 MiB. Single pages come back
/// on every machine that has ever swapped; a member that is swapped in takes thousands.
pub const SWAPPED_IN_PAGES: u64 = 256;
/// Swap in use, bytes, that deserves a word: 64 MiB. Linux parks what nobody uses.
pub const SWAP_USED_BYTES: u64 = 64 << 20;

/// What a finding means for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing.
    Ok,
    /// Nobody knows.
    Unknown,
    /// Results will be noisier than they need to be.
    Warns,
    /// No run begins unless forced.
    Refuses,
}

/// One probe of the machine before a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// What was looked at.
    pub probe: String,
    /// What was found, or `unknown`.
    pub value: String,
    /// What it means.
    pub verdict: Verdict,
    /// What to do about it, or what follows.
    pub advice: Option<String>,
}

impl Finding {
    fn ok(probe: &str, value: impl Into<String>) -> Self {
        let (probe, value) = (probe.to_owned(), value.into());
        Self { probe, value, verdict: Verdict::Ok, advice: None }
    }

    fn unknown(probe: &str) -> Self {
        Self { verdict: Verdict::Unknown, ..Self::ok(probe, "unknown") }
    }

    /// With `advice` only when `bad`.
    fn unless(self, bad: bool, verdict: Verdict, advice: impl Into<String>) -> Self {
        if bad { Self { verdict, advice: Some(advice.into()), ..self } } else { self }
    }
}

/// Everything about the machine that can make results noisy. `look` is a while without any
/// member; nothing is disturbed by it yet, so only what is far off is marked.
pub fn examine(probes: &Probes, source: Source, layout: &Layout, look: &Weather) -> Vec<Finding> {
    vec![
        foreign(source, layout, look),
        steal(look, probes),
        quota(probes, layout),
        siblings(probes, layout),
        governor(probes),
        turbo(probes),
        battery(probes),
        swap(probes),
        pressure(probes),
        virtual_machine(probes),
    ]
}

/// Foreign CPU of all the layout's CPUs, in cores.
pub fn foreign_cores(layout: &Layout, look: &Weather) -> Option<f64> {
    let wall_ns = look.wall_ns.max(1) as f64;
    let subject = look.subject.foreign_ns? as f64 / wall_ns;
    let load = if layout.is_shared() { 0.0 } else { look.load.foreign_ns? as f64 / wall_ns };
    Some(subject + load)
}

fn foreign(source: Source, layout: &Layout, look: &Weather) -> Finding {
    let probe = "foreign CPU";
    let Some(cores) = foreign_cores(layout, look) else { return Finding::unknown(probe) };
    let coarse = if source == Source::Ticks { ", counted in ticks" } else { "" };
    let value = format!("{:.1} % of a core{coarse}", cores * 100.0);
    let subject = look.subject.foreign_share().unwrap_or(0.0);
    Finding::ok(probe, value)
        .unless(
            subject > FOREIGN_SHARE,
            Verdict::Warns,
            "differences in throughput and latency cannot be claimed; end what else is at work",
        )
        .unless(
            cores > FOREIGN_CORES,
            Verdict::Refuses,
            "end what else is at work; a run waits two minutes for it, then gives up",
        )
}

fn steal(look: &Weather, probes: &Probes) -> Finding {
    let shares = look.subject.steal_share().zip(look.load.steal_share());
    let Some((subject, load)) = shares else { return Finding::unknown("steal") };
    let share = subject.max(load);
    let silent = share == 0.0 && probes.virtual_machine == Some(true);
    let note = if silent { " (the hypervisor may not say)" } else { "" };
    Finding::ok("steal", format!("{:.1} %{note}", share * 100.0)).unless(
        share > STEAL_SHARE,
        Verdict::Warns,
        "absolute figures will be marked as disturbed, ratios hold; try another hour or machine",
    )
}

fn quota(probes: &Probes, layout: &Layout) -> Finding {
    let cpus = layout.cpus().len();
    match probes.quota {
        None => Finding::unknown("CPU quota"),
        Some(Quota::Unlimited) => Finding::ok("CPU quota", "none"),
        Some(Quota::Cpus(n)) => Finding::ok("CPU quota", format!("{n:.2} CPUs")).unless(
            n < cpus as f64,
            Verdict::Warns,
            format!(
                "less than the {cpus} CPUs in use: throttling spoils whole blocks; lift the quota, \
                 or use fewer CPUs with --cpus"
            ),
        ),
    }
}

fn siblings(probes: &Probes, layout: &Layout) -> Finding {
    let probe = "SMT siblings";
    let Some(cores) = &probes.cores else { return Finding::unknown(probe) };
    let uses = |core: &[usize], cpus: &[usize]| core.iter().any(|cpu| cpus.contains(cpu));
    let torn = cores
        .iter()
        .filter(|core| core.len() > 1 && uses(core, &layout.subject) && uses(core, &layout.load))
        .map(|core| core.iter().map(usize::to_string).collect::<Vec<_>>().join("+"));
    let torn: Vec<String> = torn.collect();
    if cores.iter().all(|core| core.len() < 2) {
        return Finding::ok(probe, "none");
    }
    if torn.is_empty() || layout.is_shared() {
        return Finding::ok(probe, "generator and subjects share no core");
    }
    Finding::ok(probe, format!("generator and subjects share core {}", torn.join(", "))).unless(
        true,
        Verdict::Warns,
        "the generator slows what it measures; divide by cores with --cpus subject=…,load=…",
    )
}

fn governor(probes: &Probes) -> Finding {
    let Some(governors) = &probes.governors else { return Finding::unknown("governor") };
    Finding::ok("governor", governors.join(", ")).unless(
        governors.iter().any(|g| g != "performance"),
        Verdict::Warns,
        "the clock follows the load; `sudo cpupower frequency-set -g performance`",
    )
}

fn turbo(probes: &Probes) -> Finding {
    let Some(on) = probes.turbo else { return Finding::unknown("turbo") };
    Finding::ok("turbo", if on { "on" } else { "off" }).unless(
        on,
        Verdict::Warns,
        "the clock depends on heat; absolute figures drift, ratios hold",
    )
}

fn battery(probes: &Probes) -> Finding {
    let Some(on) = probes.on_battery else { return Finding::unknown("power") };
    Finding::ok("power", if on { "battery" } else { "not on battery" }).unless(
        on,
        Verdict::Warns,
        "the clock is held down; plug it in",
    )
}

fn swap(probes: &Probes) -> Finding {
    let Some(bytes) = probes.swap_used_bytes else { return Finding::unknown("swap in use") };
    Finding::ok("swap in use", format!("{} MiB", bytes >> 20)).unless(
        bytes > SWAP_USED_BYTES,
        Verdict::Warns,
        "memory is short or was; blocks with swap-in are repeated; free memory",
    )
}

fn pressure(probes: &Probes) -> Finding {
    if probes.pressure {
        return Finding::ok("pressure (PSI)", "available");
    }
    Finding::unknown("pressure (PSI)")
}

fn virtual_machine(probes: &Probes) -> Finding {
    match probes.virtual_machine {
        None => Finding::unknown("virtual machine"),
        Some(false) => Finding::ok("virtual machine", "no"),
        Some(true) => Finding {
            advice: Some("neighbours unseen: trust ratios before absolute figures".to_owned()),
            ..Finding::ok("virtual machine", "yes")
        },
    }
}

/// How waiting for calm ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Calm {
    /// Foreign CPU was low enough.
    Calm,
    /// Nobody knows: this system does not say.
    Unknown,
    /// It never was, in all [`LOOKS`]; the last figure, in cores.
    Busy(f64),
    /// Somebody asked to end.
    Interrupted,
}

/// Waits until foreign CPU falls to [`FOREIGN_CORES`], for at most [`LOOKS`] looks. `look`
/// takes [`LOOK`] and gives foreign CPU in cores; `waiting` hears of every look that was not
/// calm and how many are left.
pub fn await_calm(
    look: &mut dyn FnMut() -> Option<f64>,
    interrupted: &dyn Fn() -> bool,
    waiting: &mut dyn FnMut(f64, u32),
) -> Calm {
    let mut last = 0.0;
    for left in (0..LOOKS).rev() {
        if interrupted() {
            return Calm::Interrupted;
        }
        let Some(cores) = look() else { return Calm::Unknown };
        if cores <= FOREIGN_CORES {
            return Calm::Calm;
        }
        last = cores;
        waiting(cores, left);
    }
    Calm::Busy(last)
}

#[cfg(test)]
mod tests {
    use super::super::interval::CpuWeather;
    use super::*;

    fn layout() -> Layout {
        Layout { subject: vec![0], load: vec![1] }
    }

    fn look(foreign_ms: u64, steal_ms: u64) -> Weather {
        let ms = 1_000_000;
        let cpus = |foreign: u64| CpuWeather {
            capacity_ns: 1000 * ms,
            foreign_ns: Some(foreign * ms),
            steal_ns: Some(steal_ms * ms),
        };
        Weather {
            wall_ns: 1000 * ms,
            subject: cpus(foreign_ms),
            load: cpus(0),
            memory_stall_us: None,
            io_stall_us: None,
            swapped_in_pages: None,
            throttled_periods: None,
            lost_cpus: None,
        }
    }

    fn verdict(probes: &Probes, look: &Weather, probe: &str) -> Verdict {
        let findings = examine(probes, Source::Cpuacct, &layout(), look);
        let finding = findings.iter().find(|f| f.probe == probe).expect(probe);
        let noted = matches!(finding.verdict, Verdict::Warns | Verdict::Refuses);
        assert!(!noted || finding.advice.is_some(), "{finding:?}");
        finding.verdict
    }

    #[test]
    fn what_the_look_says() {
        for (foreign_ms, expected) in
            [(0, Verdict::Ok), (20, Verdict::Ok), (30, Verdict::Warns), (210, Verdict::Refuses)]
        {
            let found = verdict(&Probes::default(), &look(foreign_ms, 0), "foreign CPU");
            assert_eq!(found, expected, "{foreign_ms} ms");
        }
        for (steal_ms, expected) in [(20, Verdict::Ok), (30, Verdict::Warns)] {
            let found = verdict(&Probes::default(), &look(0, steal_ms), "steal");
            assert_eq!(found, expected, "{steal_ms} ms");
        }
    }

    #[test]
    fn what_the_settings_say() {
        let text = |t: &str| Some(vec![t.to_owned()]);
        let default = Probes::default;
        for (probe, probes, expected) in [
            ("governor", Probes { governors: text("performance"), ..default() }, Verdict::Ok),
            ("governor", Probes { governors: text("powersave"), ..default() }, Verdict::Warns),
            ("turbo", Probes { turbo: Some(true), ..default() }, Verdict::Warns),
            ("turbo", Probes { turbo: Some(false), ..default() }, Verdict::Ok),
            ("power", Probes { on_battery: Some(true), ..default() }, Verdict::Warns),
            ("CPU quota", Probes { quota: Some(Quota::Unlimited), ..default() }, Verdict::Ok),
            ("CPU quota", Probes { quota: Some(Quota::Cpus(2.0)), ..default() }, Verdict::Ok),
            ("CPU quota", Probes { quota: Some(Quota::Cpus(1.5)), ..default() }, Verdict::Warns),
            ("SMT siblings", Probes { cores: Some(vec![vec![0, 1]]), ..default() }, Verdict::Warns),
            ("SMT siblings", Probes { cores: Some(vec![vec![0, 2]]), ..default() }, Verdict::Ok),
            (
                "SMT siblings",
                Probes { cores: Some(vec![vec![0], vec![1]]), ..default() },
                Verdict::Ok,
            ),
            ("swap in use", Probes { swap_used_bytes: Some(0), ..default() }, Verdict::Ok),
            ("swap in use", Probes { swap_used_bytes: Some(1 << 30), ..default() }, Verdict::Warns),
            ("pressure (PSI)", Probes { pressure: true, ..default() }, Verdict::Ok),
            ("virtual machine", Probes { virtual_machine: Some(true), ..default() }, Verdict::Ok),
        ] {
            assert_eq!(verdict(&probes, &look(0, 0), probe), expected, "{probes:?}");
        }
    }

    #[test]
    fn what_is_unknown_says_so() {
        let mut dark = look(0, 0);
        dark.subject.foreign_ns = None;
        dark.load.steal_ns = None;
        let findings = examine(&Probes::default(), Source::None, &layout(), &dark);
        assert!(findings.iter().all(|f| f.verdict == Verdict::Unknown && f.value == "unknown"));
    }

    #[test]
    fn calm_is_waited_for() {
        for (what, looks, after, expected, heard) in [
            ("calm at once", vec![Some(0.1)], u32::MAX, Calm::Calm, 0),
            ("soon", vec![Some(0.9), Some(0.3), Some(0.2)], u32::MAX, Calm::Calm, 2),
            ("never", vec![Some(0.9); 200], u32::MAX, Calm::Busy(0.9), LOOKS),
            ("nobody knows", vec![None], u32::MAX, Calm::Unknown, 0),
            ("interrupted", vec![Some(0.9); 200], 3, Calm::Interrupted, 3),
        ] {
            let looked = std::cell::Cell::new(0);
            let mut looks = looks.into_iter();
            let mut waited = 0;
            let calm = await_calm(
                &mut || {
                    looked.set(looked.get() + 1);
                    looks.next().expect("a further look")
                },
                &|| looked.get() >= after,
                &mut |_, _| waited += 1,
            );
            assert_eq!((calm, waited), (expected, heard), "{what}");
        }
    }
}
