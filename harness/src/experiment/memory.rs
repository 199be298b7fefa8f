//! Memory of a fresh process, alone on the machine: idle, loaded, after, and the peak of the
//! load. No sampler runs in between, and no latency is taken from here.

use super::{Bench, REQUEST_TIMEOUT, Stopped, event, timestamp};
use crate::load::{Load, Tally, Target};
use crate::plan::MemoryPlan;
use crate::process::{Service, tree};
use crate::record::{Event, EventKind, MemoryLoad, MemoryRun};
use crate::scenario::Request;
use std::sync::Arc;
use std::time::Duration;

/// Opening connections.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs one fresh process through the three readings. The requests of `pools` are sent one
/// pool after the other, on the same connections, a fixed number in all: a faster service
/// must not be charged for having stored more users.
///
/// # Errors
/// On interruption, and when the harness itself fails. What goes wrong with the member is
/// the event.
pub fn run(
    bench: &Bench<'_>,
    plan: &MemoryPlan,
    load: &MemoryLoad,
    pools: &[Arc<[Request]>],
) -> Result<Result<MemoryRun, Event>, Stopped> {
    let spec = &bench.specs[plan.member];
    let preset = &bench.plan.preset;
    let failed = |what: String| {
        Ok(Err(event(
            EventKind::MemoryFailed,
            &spec.label,
            Some(crate::plan::MEMORY_CONDITION),
            what,
        )))
    };
    let started = timestamp();
    let mut service = match Service::start(spec, bench.harness, bench.guard, bench.interrupt) {
        Ok(service) => service,
        Err(_) if bench.interrupt.is_set() => return Err(Stopped::Interrupted),
        Err(e) => return failed(e.to_string()),
    };
    bench.sleep(Duration::from_millis(preset.memory_idle_ms))?;
    let idle = tree::memory(service.group());
    let peak = tree::Peak::start(service.group());
    let target = Target {
        address: service.address(),
        pool: Arc::clone(&pools[0]),
        open_timeout: OPEN_TIMEOUT,
        timeout: REQUEST_TIMEOUT,
        throttle: None,
        stop: Some(bench.interrupt.flag()),
    };
    let layout = bench.layout;
    let opened = Load::open(&target, load.connections, layout.load_threads(), layout.pinned());
    bench.check_interrupt()?;
    let mut connections = match opened {
        Ok(connections) => connections,
        Err(e) => {
            return failed(format!("{} connections could not be opened: {e}", load.connections));
        }
    };
    let mut tally = Tally::default();
    for (i, pool) in pools.iter().enumerate() {
        bench.check_interrupt()?;
        connections.set_pool(pool);
        let (n, parts) = (load.requests, pools.len() as u64);
        let share = n / parts + u64::from((i as u64) < n % parts);
        connections.requests(share).map_err(anyhow::Error::from)?;
        bench.check_interrupt()?;
        tally.merge(&connections.take_tally());
    }
    let loaded = tree::memory(service.group());
    // The kernel's peak may lag some pages behind (proc_pid_status(5)), a reading does not.
    let peak_bytes = peak.bytes().zip(loaded.rss_bytes).map(|(high, now)| high.max(now));
    drop(connections);
    bench.sleep(Duration::from_millis(preset.memory_after_ms))?;
    let after = tree::memory(service.group());
    let counts = tally.counts;
    if let Some(death) = service.death() {
        return failed(death);
    }
    if let Some(complaint) = service.stop().complaint() {
        return failed(complaint);
    }
    if counts.ok != load.requests {
        return failed(format!(
            "{} of {} requests were answered correctly; memory under another load is not comparable",
            counts.ok, load.requests
        ));
    }
    Ok(Ok(MemoryRun {
        number: plan.number,
        repeat: plan.repeat,
        member: spec.label.clone(),
        started,
        idle,
        loaded,
        after,
        peak_bytes,
        counts,
    }))
}
