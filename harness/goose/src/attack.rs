//! Drives Goose: its settings, and the phases from hatching to the end of the window.

use crate::user::{self, LOOK, Phase, Shared};
use anyhow::{Context, Error, anyhow, ensure};
use goose::client::GooseClientBuilder;
use goose::config::GooseConfiguration;
use goose::prelude::{GooseAttack, GooseCoordinatedOmissionMitigation};
use harness::goose::{Order, Report};
use harness::host::{cpu_time, limits};
use harness::load::tally::nanoseconds;
use harness::record::Latency;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub fn run(order: &Order) -> anyhow::Result<Report> {
    limits::ensure_descriptors(order.connections as u64).map_err(Error::msg)?;
    let shared = Arc::new(Shared::new(order)?);
    let attack = attack(order)?.register_scenario(user::scenario(&shared));
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = order.threads {
        runtime.worker_threads(threads);
    }
    let runtime = runtime.enable_all().build()?;
    let (window, outcome) = std::thread::scope(|scope| {
        let conductor = scope.spawn(|| conduct(&shared, order));
        let outcome = runtime.block_on(attack.execute());
        shared.ended.store(true, Ordering::Relaxed);
        (conductor.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), outcome)
    });
    outcome.map_err(|e| anyhow!("{e}")).context("goose failed")?;
    let counted = shared.counted();
    if let Some(why) = &counted.stillborn {
        return Err(anyhow!("a user could not start: {why}"));
    }
    let (length, cpu_ns) = window.context("interrupted")?;
    let tally = &counted.tally;
    ensure!(tally.counts.is_conserved(), "requests are missing: {:?}", tally.counts);
    Ok(Report {
        version: crate::version(),
        connections_used: counted.connections_used,
        ended: counted.ended,
        window_ns: nanoseconds(length),
        ended_in_window: counted.ended_in_window,
        in_window: counted.in_window,
        cpu_ns,
        counts: tally.counts,
        wrong_status_by_code: tally.wrong_status_by_code.clone(),
        latency: Latency::pack(tally),
        offenders: tally.offenders.clone(),
    })
}

/// Goose with all that is not load off. Every default that matters is spelt out, so that a
/// new version cannot turn one on.
fn attack(order: &Order) -> anyhow::Result<GooseAttack> {
    let mut is = GooseConfiguration::default();
    is.host = Some(format!("http://{}", order.address));
    is.users = Some(order.connections);
    // Users start at this rate a second, in effect at once.
    is.increase_rate = Some("100000".to_owned());
    // It runs until it is told to end: its own clock knows whole seconds only.
    is.run_time = None;
    is.throttle_requests = Some(0);
    is.co_mitigation = Some(GooseCoordinatedOmissionMitigation::Disabled);
    // Controllers and dashboard. `no_websocket` would only warn that it is the default.
    is.no_telnet = true;
    is.websocket = false;
    is.dashboard = false;
    is.no_autostart = false;
    // Metrics nobody reads, and printing. `no_reset_metrics` prints; resetting does not.
    is.no_metrics = true;
    is.no_transaction_metrics = true;
    is.no_scenario_metrics = true;
    is.no_status_codes = true;
    is.no_error_summary = true;
    is.no_print_metrics = true;
    is.no_reset_metrics = false;
    is.running_metrics = None;
    is.quiet = 1;
    // Requests as plain as the first engine's.
    is.no_gzip = true;
    is.sticky_follow = false;
    // One client for all until each makes its own in `hatch`. Over plain HTTP nothing is
    // verified, but without this every client would load the system's certificates.
    let clients = GooseClientBuilder::new().without_cookies().accept_invalid_certs(true);
    GooseAttack::initialize_with_config(is)
        .and_then(|attack| attack.set_client_builder_without_cookies(clients))
        .map_err(|e| anyhow!("{e}"))
}

/// Moves through the phases, then tells Goose to end until it has. Gives the true length of
/// the window, shorter when Goose ended early, as its own handler makes it at Ctrl-C, and the
/// CPU time within it; nothing when it ended before the window.
fn conduct(shared: &Shared, order: &Order) -> Option<(Duration, Option<u64>)> {
    let stopped = || goose::is_killswitch_triggered() || shared.ended.load(Ordering::Relaxed);
    let rest = |length_ms| {
        let until = Instant::now() + Duration::from_millis(length_ms);
        while !stopped() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(LOOK));
        }
    };
    while shared.hatched.load(Ordering::Relaxed) < order.connections && !stopped() {
        std::thread::sleep(LOOK);
    }
    shared.enter(Phase::WarmUp);
    rest(order.warm_up_ms);
    let begun = !stopped();
    let (from, cpu) = (Instant::now(), cpu_time::of_this_process());
    shared.enter(Phase::Window);
    rest(order.window_ms);
    shared.enter(Phase::Over);
    let length = from.elapsed();
    let cpu_ns = cpu_time::of_this_process().zip(cpu).map(|(after, before)| after - before);
    let window = begun.then_some((length, cpu_ns));
    while !shared.ended.load(Ordering::Relaxed) {
        // Again and again: Goose forgets what it is told before it has begun.
        goose::trigger_killswitch("the window is over");
        std::thread::sleep(LOOK);
    }
    window
}
