//! One block: a fresh process of every member, all alive at once, loaded in turn in short
//! slices, so that all of them meet the same weather.

use super::{Bench, REQUEST_TIMEOUT, Stopped, event, timestamp, weather};
use crate::load::tally::{self, nanoseconds};
use crate::load::{Load, Slice, Target};
use crate::plan::{BlockPlan, Design};
use crate::process::{Service, tree};
use crate::record::{
    Block, Canary, Cell, ConditionWeather, Event, EventKind, Latency, Slices, WarmUp,
};
use hdrhistogram::Histogram;
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// After draining, a member may go on (collect garbage, wake timers). The next slice waits
/// until its CPU clock stands nearly still, so that it pays itself and not its neighbour,
/// but not longer than this.
const QUIET_PATIENCE: Duration = Duration::from_millis(4);
/// Between two looks at that clock.
const QUIET_LOOK: Duration = Duration::from_micros(500);
/// CPU time between two looks that counts as standing still: 10 % of a core.
const QUIET_CPU_NS: u64 = 50_000;
/// So many slices with requests that timed out end a member's part in a condition.
const MAX_HANGING_SLICES: usize = 3;
/// Opening connections; generous, because a member opens them while others sit idle.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// A member while its block runs.
struct Running {
    service: Service,
    runtime: String,
    workers: u32,
}

/// A block's record, and what the running services said of themselves, by member.
pub struct Outcome {
    /// For the journal.
    pub block: Block,
    /// Runtime and workers of each member that ran.
    pub said: BTreeMap<usize, (String, u32)>,
}

/// Runs one block. `progress` is called between slices, never while a window is open.
///
/// # Errors
/// On interruption, and when the harness itself fails. What goes wrong with a member
/// becomes an event, and the others go on.
pub fn run(
    bench: &Bench<'_>,
    plan: &BlockPlan,
    attempt: usize,
    progress: &mut dyn FnMut(),
) -> Result<Outcome, Stopped> {
    let started = timestamp();
    let before = weather::canary(bench);
    let clock = Instant::now();
    let timer = weather::hiccups(bench, clock);
    let mut events = Vec::new();
    let mut running = start(bench, plan, &mut events)?;
    let mut cells = Vec::new();
    let mut weather = Vec::new();
    for (condition, rounds) in &plan.conditions {
        let condition = *condition;
        let (running, events) = (&mut running, &mut events);
        weather.push(
            Part { bench, condition, clock, running, events }
                .measure(rounds, progress, &mut cells)?,
        );
    }
    let name = |i: &usize| bench.plan.members[*i].clone();
    let present = |f: &dyn Fn(&Running) -> u64| {
        let some = running.iter().enumerate().filter_map(|(i, r)| Some((name(&i), f(r.as_ref()?))));
        some.collect::<BTreeMap<_, _>>()
    };
    let time_to_ready_ns = present(&|r| r.service.time_to_ready().as_nanos() as u64);
    let said = running
        .iter()
        .enumerate()
        .filter_map(|(i, r)| r.as_ref().map(|r| (i, (r.runtime.clone(), r.workers))))
        .collect();
    let hiccups = weather::heard(timer);
    let duration_ns = nanoseconds(clock.elapsed());
    stop(bench, running, &mut events);
    let block = Block {
        number: plan.number,
        attempt,
        started,
        duration_ns,
        start_order: plan.start_order.iter().map(name).collect(),
        condition_order: plan
            .conditions
            .iter()
            .map(|(c, _)| bench.plan.conditions[*c].name.clone())
            .collect(),
        time_to_ready_ns,
        cells,
        invalid: weather::invalid(bench, &weather),
        weather,
        canary: Canary { before, after: weather::canary(bench) },
        hiccups,
        events,
    };
    Ok(Outcome { block, said })
}

fn start(
    bench: &Bench<'_>,
    plan: &BlockPlan,
    events: &mut Vec<Event>,
) -> Result<Vec<Option<Running>>, Stopped> {
    let mut running: Vec<Option<Running>> = bench.specs.iter().map(|_| None).collect();
    for &member in &plan.start_order {
        let spec = &bench.specs[member];
        match Service::start(spec, bench.harness, bench.guard, bench.interrupt) {
            Ok(service) => {
                let ready = service.ready();
                let (runtime, workers) = (ready.runtime.clone(), ready.workers);
                running[member] = Some(Running { service, runtime, workers });
            }
            Err(_) if bench.interrupt.is_set() => return Err(Stopped::Interrupted),
            Err(e) => events.push(event(EventKind::StartFailed, &spec.label, None, e.to_string())),
        }
    }
    Ok(running)
}

fn stop(bench: &Bench<'_>, running: Vec<Option<Running>>, events: &mut Vec<Event>) {
    for (member, running) in running.into_iter().enumerate() {
        let Some(mut running) = running else { continue };
        let label = &bench.specs[member].label;
        if let Some(death) = running.service.death() {
            events.push(event(EventKind::Died, label, None, death));
            continue;
        }
        let printed = running.service.output_bytes();
        if printed > 0 {
            let message =
                format!("printed {printed} bytes besides its ready line; the contract allows none");
            events.push(event(EventKind::Printed, label, None, message));
        }
        if let Some(complaint) = running.service.stop().complaint() {
            events.push(event(EventKind::BadEnd, label, None, complaint));
        }
    }
}

/// One condition of one block.
struct Part<'a> {
    bench: &'a Bench<'a>,
    condition: usize,
    /// The block's beginning.
    clock: Instant,
    running: &'a mut [Option<Running>],
    events: &'a mut Vec<Event>,
}

/// A member under the condition.
struct Loaded {
    load: Load,
    processes: Vec<Pid>,
    warm_up: WarmUp,
    connect: Histogram<u64>,
    slices: Slices,
    /// CPU time of the processes at the end of the last slice.
    cpu_before: Option<u64>,
    hanging: usize,
    /// Takes no further part: its connections are gone or it hangs.
    out: bool,
}

impl Part<'_> {
    fn measure(
        mut self,
        rounds: &[Vec<usize>],
        progress: &mut dyn FnMut(),
        cells: &mut Vec<Cell>,
    ) -> Result<ConditionWeather, Stopped> {
        let condition = &self.bench.plan.conditions[self.condition];
        let settle = Duration::from_millis(condition.settle_ms);
        let window = Duration::from_millis(condition.window_ms);
        let mut loaded = self.open()?;
        self.warm_up(&mut loaded, rounds, progress)?;
        let mut sky = weather::Rounds::begin(self.bench, self.processes());
        for round in rounds {
            for &member in round {
                self.bench.check_interrupt()?;
                if let Some(loaded) = loaded[member].as_mut().filter(|l| !l.out) {
                    loaded.slice(settle, window)?;
                    self.check(member, loaded);
                }
            }
            sky.round();
            progress();
        }
        for (member, loaded) in loaded.into_iter().enumerate() {
            if let Some(loaded) = loaded {
                cells.push(self.cell(member, loaded, window)?);
            }
        }
        Ok(sky.end(&self.bench.plan.conditions[self.condition].name))
    }

    /// Of all members, those that take no part included: they run too.
    fn processes(&self) -> Vec<Pid> {
        let running = self.running.iter().flatten();
        running.flat_map(|r| tree::processes(r.service.group())).collect()
    }

    fn open(&mut self) -> Result<Vec<Option<Loaded>>, Stopped> {
        let condition = &self.bench.plan.conditions[self.condition];
        let throttle = match self.bench.plan.preset.throttle_us {
            0 => None,
            us => Some(Duration::from_micros(us)),
        };
        let mut all = Vec::with_capacity(self.running.len());
        for (member, running) in self.running.iter_mut().enumerate() {
            self.bench.check_interrupt()?;
            let Some(running) = running else {
                all.push(None);
                continue;
            };
            let target = Target {
                address: running.service.address(),
                pool: self.bench.pool(self.condition, member),
                open_timeout: OPEN_TIMEOUT,
                timeout: REQUEST_TIMEOUT,
                throttle,
                stop: None,
            };
            let layout = self.bench.layout;
            let opened =
                Load::open(&target, condition.connections, layout.load_threads(), layout.pinned());
            all.push(match opened {
                Ok(load) => Some(Loaded::new(load)),
                Err(e) => {
                    let why = running.service.death().unwrap_or_else(|| e.to_string());
                    let message =
                        format!("{} connections could not be opened: {why}", condition.connections);
                    self.events.push(event(
                        EventKind::OpenFailed,
                        &self.bench.specs[member].label,
                        Some(&condition.name),
                        message,
                    ));
                    None
                }
            });
        }
        Ok(all)
    }

    fn warm_up(
        &mut self,
        loaded: &mut [Option<Loaded>],
        rounds: &[Vec<usize>],
        progress: &mut dyn FnMut(),
    ) -> Result<(), Stopped> {
        let preset = &self.bench.plan.preset;
        let window = Duration::from_millis(preset.warm_up_slice_ms);
        // As long as slices that had to grow, or connections would stay cold.
        let condition = &self.bench.plan.conditions[self.condition];
        let slice = Duration::from_millis(condition.window_ms);
        let window = match preset.design {
            Design::Slices => window.max(slice),
            Design::Sequential => window,
        };
        for round in rounds.iter().cycle().take(preset.warm_up_slices) {
            for &member in round {
                self.bench.check_interrupt()?;
                if let Some(loaded) = loaded[member].as_mut().filter(|l| !l.out) {
                    let slice =
                        loaded.load.slice(Duration::ZERO, window).map_err(anyhow::Error::from)?;
                    loaded.note(&slice);
                    loaded.warm_up.window_ns = slice.window_ns;
                    loaded.warm_up.in_window.push(slice.in_window);
                    self.check(member, loaded);
                }
            }
            progress();
        }
        for (loaded, running) in loaded.iter_mut().zip(self.running.iter()) {
            if let (Some(loaded), Some(running)) = (loaded, running) {
                let tally = loaded.load.take_tally();
                (loaded.warm_up.counts, loaded.connect) = (tally.counts, tally.connect);
                loaded.processes = tree::processes(running.service.group());
                loaded.cpu_before = loaded.cpu_ns();
            }
        }
        Ok(())
    }

    /// Takes a member out of the condition when going on makes no sense.
    fn check(&mut self, member: usize, loaded: &mut Loaded) {
        let condition = &self.bench.plan.conditions[self.condition];
        let label = &self.bench.specs[member].label;
        let alive = loaded.load.alive();
        let (kind, message) = if alive < condition.connections {
            let death = self.running[member].as_mut().and_then(|r| r.service.death());
            let message = death.unwrap_or_else(|| {
                format!("only {alive} of {} connections could be kept open", condition.connections)
            });
            (EventKind::ConnectionsLost, message)
        } else if loaded.hanging >= MAX_HANGING_SLICES {
            let seconds = REQUEST_TIMEOUT.as_secs();
            let message =
                format!("requests took longer than {seconds} s in {MAX_HANGING_SLICES} slices");
            (EventKind::Hanging, message)
        } else {
            return;
        };
        loaded.out = true;
        self.events.push(event(kind, label, Some(&condition.name), message));
    }

    fn cell(
        &mut self,
        member: usize,
        mut loaded: Loaded,
        window: Duration,
    ) -> Result<Cell, Stopped> {
        let condition = &self.bench.plan.conditions[self.condition];
        let label = &self.bench.specs[member].label;
        let tally = loaded.load.take_tally();
        let counts = tally.counts;
        if !counts.is_conserved() {
            let what = format!("{label}, {}: requests got lost: {counts:?}", condition.name);
            return Err(Stopped::Failed(anyhow::Error::msg(what)));
        }
        self.check_processes(member, &mut loaded);
        let condition = &self.bench.plan.conditions[self.condition];
        // More than 1 % of the connections: the cell also measured opening them.
        if tally.reconnects as usize * 100 > condition.connections {
            let message = format!(
                "{} connections had to be opened anew ({} closed by the service)",
                tally.reconnects, tally.server_closes
            );
            self.events.push(event(EventKind::Reconnects, label, Some(&condition.name), message));
        }
        if tally.surplus > 0 {
            let message = format!("{} times bytes came that nobody had asked for", tally.surplus);
            self.events.push(event(EventKind::Surplus, label, Some(&condition.name), message));
        }
        let warm_up = &loaded.warm_up.counts;
        if warm_up.failures() > 0 {
            let message = format!(
                "{} of {} requests of the warm-up failed",
                warm_up.failures(),
                warm_up.sent
            );
            self.events.push(event(EventKind::Failures, label, Some(&condition.name), message));
        }
        if counts.failures() > 0 {
            let message = format!("{} of {} requests failed", counts.failures(), counts.sent);
            self.events.push(event(EventKind::Failures, label, Some(&condition.name), message));
        }
        let latency = Latency::pack(&tally);
        Ok(Cell {
            condition: condition.name.clone(),
            member: label.clone(),
            counts,
            complete: !loaded.out,
            wrong_status_by_code: tally.wrong_status_by_code,
            warm_up: loaded.warm_up,
            server_closes: tally.server_closes,
            reconnects: tally.reconnects,
            surplus: tally.surplus,
            window_ns: window.as_nanos() as u64,
            slices: loaded.slices,
            latency,
            max_at_ns: tally.max_at.map(|at| nanoseconds(at.saturating_duration_since(self.clock))),
            failed_latency: Latency::of(&tally.failed_latency),
            connect: Latency::of(&loaded.connect),
            offenders: tally.offenders,
        })
    }

    /// CPU time is read of the processes that were there after the warm-up. If others are
    /// there now, it is not the service's.
    fn check_processes(&mut self, member: usize, loaded: &mut Loaded) {
        let Some(running) = &self.running[member] else { return };
        let mut now = tree::processes(running.service.group());
        let mut then = loaded.processes.clone();
        now.sort();
        then.sort();
        if now != then && !loaded.out {
            let condition = &self.bench.plan.conditions[self.condition];
            let message = format!(
                "had {} processes after the warm-up and has {} others now; its CPU time is unknown",
                then.len(),
                now.iter().filter(|p| !then.contains(p)).count()
            );
            let label = &self.bench.specs[member].label;
            self.events.push(event(EventKind::Processes, label, Some(&condition.name), message));
            loaded.slices.cpu_ns.fill(None);
            loaded.slices.spill_ns.fill(None);
        }
    }
}

impl Loaded {
    fn new(load: Load) -> Self {
        Self {
            load,
            processes: Vec::new(),
            warm_up: WarmUp::default(),
            connect: tally::histogram(),
            slices: Slices::default(),
            cpu_before: None,
            hanging: 0,
            out: false,
        }
    }

    fn cpu_ns(&self) -> Option<u64> {
        if self.processes.is_empty() {
            return None;
        }
        self.processes.iter().map(|&p| tree::cpu_ns(p)).sum()
    }

    fn slice(&mut self, settle: Duration, window: Duration) -> Result<(), Stopped> {
        let before = self.cpu_ns();
        let began = Instant::now();
        let slice = self.load.slice(settle, window).map_err(anyhow::Error::from)?;
        let wall = began.elapsed();
        let after = self.await_quiet();
        self.note(&slice);
        let since = |then: Option<u64>, now: Option<u64>| Some(now?.saturating_sub(then?));
        self.slices.in_window.push(slice.in_window);
        self.slices.ok.push(slice.ok);
        self.slices.cpu_ns.push(since(before, after));
        self.slices.spill_ns.push(since(self.cpu_before, before));
        self.slices.wall_ns.push(nanoseconds(wall));
        self.slices.in_flight_ns.push(slice.account.in_flight_ns);
        self.slices.generator_cpu_ns.push(slice.account.cpu_ns);
        self.slices.generator_busiest_permille.push(slice.account.busiest_permille);
        self.slices.generator_run_delay_ns.push(slice.account.run_delay_ns);
        self.cpu_before = after;
        Ok(())
    }

    fn note(&mut self, slice: &Slice) {
        self.hanging += usize::from(slice.hung > 0);
    }

    /// Waits until the member's CPU clock stands nearly still; gives its last reading.
    fn await_quiet(&self) -> Option<u64> {
        let until = Instant::now() + QUIET_PATIENCE;
        let mut last = self.cpu_ns()?;
        while Instant::now() < until {
            std::thread::sleep(QUIET_LOOK);
            let now = self.cpu_ns()?;
            let moved = now.saturating_sub(last);
            last = now;
            if moved < QUIET_CPU_NS {
                break;
            }
        }
        Some(last)
    }
}
