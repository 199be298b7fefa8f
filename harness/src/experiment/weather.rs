//! What the machine does while a block runs: CPU that is nobody's, steal, hiccups.

use super::Bench;
use crate::host::canary;
use crate::host::hiccup::{Hiccups, Timer};
use crate::host::interval::Weather;
use crate::host::judge::{self, Disturbance, Effect};
use crate::host::watch::Reading;
use crate::process::tree;
use crate::record::ConditionWeather;
use nix::unistd::Pid;
use std::time::Instant;

/// Looks at the machine between rounds. A round is the shortest time over which the kernel's
/// accounts can be told apart.
pub struct Rounds<'a> {
    bench: &'a Bench<'a>,
    /// Of all members.
    processes: Vec<Pid>,
    before: Reading,
    members_before_ns: Option<u64>,
    rounds: Vec<Weather>,
}

impl<'a> Rounds<'a> {
    /// The first round begins now. `processes`: those of all members that run.
    pub fn begin(bench: &'a Bench<'a>, processes: Vec<Pid>) -> Self {
        let (members_before_ns, before) = (cpu_ns(&processes), bench.watch.read());
        Self { bench, processes, before, members_before_ns, rounds: Vec::new() }
    }

    /// A round is over and the next begins.
    pub fn round(&mut self) {
        let (members_ns, now) = (cpu_ns(&self.processes), self.bench.watch.read());
        let spent =
            members_ns.zip(self.members_before_ns).map(|(now, then)| now.saturating_sub(then));
        self.rounds.push(self.before.until(&now).weather(self.bench.layout, spent));
        (self.before, self.members_before_ns) = (now, members_ns);
    }

    /// The record.
    pub fn end(self, condition: &str) -> ConditionWeather {
        ConditionWeather {
            condition: condition.to_owned(),
            disturbances: judge::judge(&self.rounds, self.bench.watch.source()),
            rounds: self.rounds,
        }
    }
}

/// Unknown when one of them is.
fn cpu_ns(processes: &[Pid]) -> Option<u64> {
    processes.iter().map(|&p| tree::cpu_ns(p)).sum()
}

/// Why a block does not stand: what slices cannot share fell into it.
pub fn invalid(bench: &Bench<'_>, weather: &[ConditionWeather]) -> Vec<Disturbance> {
    let rounds: Vec<Weather> = weather.iter().flat_map(|w| w.rounds.clone()).collect();
    let mut found = judge::judge(&rounds, bench.watch.source());
    found.retain(|d| d.effect == Effect::Block);
    found
}

/// Speed of the subjects' first CPU; unknown where nothing can be pinned to it.
pub fn canary(bench: &Bench<'_>) -> Option<f64> {
    canary::sing(bench.layout.subject.first().copied()).ok()
}

/// Starts the timer that hears the machine's hiccups, on the generator's CPU.
pub fn hiccups(bench: &Bench<'_>, epoch: Instant) -> Option<Timer> {
    Timer::start(bench.layout.pinned().first().copied(), epoch).ok()
}

/// What it heard; nothing where it could not be started.
pub fn heard(timer: Option<Timer>) -> Hiccups {
    timer.map(Timer::stop).unwrap_or_default()
}
