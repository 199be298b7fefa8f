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
    /// Of all members, with their CPU time at the last look.
    processes: Vec<(Pid, u64)>,
    before: Reading,
    rounds: Vec<Weather>,
}

impl<'a> Rounds<'a> {
    /// The first round begins now. `processes`: those of all members that run.
    pub fn begin(bench: &'a Bench<'a>, processes: Vec<Pid>) -> Self {
        let processes = still_there(processes.into_iter());
        Self { bench, processes, before: bench.watch.read(), rounds: Vec::new() }
    }

    /// A round is over and the next begins.
    pub fn round(&mut self) {
        // One that has ended is left out from now on: its last round passes for foreign CPU,
        // and the others are watched all the same.
        let now = still_there(self.processes.iter().map(|p| p.0));
        let reading = self.bench.watch.read();
        let then = |pid: Pid| self.processes.iter().find(|p| p.0 == pid).map_or(0, |p| p.1);
        let spent = now.iter().map(|&(pid, ns)| ns.saturating_sub(then(pid))).sum();
        let spent = (!now.is_empty()).then_some(spent);
        self.rounds.push(self.before.until(&reading).weather(self.bench.layout, spent));
        (self.before, self.processes) = (reading, now);
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

/// Processes with their CPU time, ns.
fn still_there(processes: impl Iterator<Item = Pid>) -> Vec<(Pid, u64)> {
    processes.filter_map(|pid| Some((pid, tree::cpu_ns(pid)?))).collect()
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
