//! One whole measurement: open, warm up, measure, drain. What `harness load` does.

use super::limit::{self, Limit};
use super::pace::Pace;
use super::tally::{Counts, Tally};
use super::{Load, Slice, Target, Window};
use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What to measure and how long.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where, and which requests.
    pub target: Target,
    /// Connections, all open before anything is timed.
    pub connections: usize,
    /// Threads of the generator.
    pub threads: usize,
    /// CPUs to pin them to; empty: none.
    pub cpus: Vec<usize>,
    /// When to send.
    pub pace: Pace,
    /// The same requests on the same connections before the window; not counted.
    pub warm_up: Duration,
    /// Length of the window.
    pub duration: Duration,
}

/// What was found.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// Connections that were opened before the warm-up.
    pub opened: usize,
    /// Connections that were open at the end.
    pub alive: usize,
    /// Opening them.
    pub connect: hdrhistogram::Histogram<u64>,
    /// Outcomes of the warm-up.
    pub warm_up: Counts,
    /// Length of the window that was asked for; the slice has the exact one.
    pub asked: Duration,
    /// Window and account.
    pub slice: Slice,
    /// Outcomes and histograms of the window.
    pub tally: Tally,
    /// CPU time that the service spent within the window, where known, ns.
    pub service_cpu_ns: Option<u64>,
    /// Why the figures may be the generator's and not the service's.
    pub limits: Vec<Limit>,
}

/// What a service had spent when.
struct Edge {
    at: Instant,
    cpu_ns: Option<u64>,
}

/// Measures. `service_cpu_ns` is called when the window begins and when it ends, and gives the
/// CPU time of the service so far, where that is known. It must be quick: answers wait
/// meanwhile.
///
/// # Errors
/// When fewer connections than asked for can be opened (of kind `Interrupted` when somebody
/// asked to end meanwhile), when the system refuses to wait, and when the engine lost count
/// of a request.
pub fn measure(
    options: &Options,
    service_cpu_ns: &mut (dyn FnMut() -> Option<u64> + Send),
) -> io::Result<Measurement> {
    let mut load =
        Load::open(&options.target, options.connections, options.threads, &options.cpus)?;
    let connect = load.take_tally().connect;
    if !options.warm_up.is_zero() {
        load.run(window(options.warm_up), options.pace, &mut || ())?;
    }
    let warm_up = load.take_tally().counts;
    let stop = options.target.stop.as_ref();
    let mut slice = Slice::default();
    let (mut service, mut cpus) = (None, None);
    // Who asks to end in the warm-up gets no window, rather than a moment of one.
    if !stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
        let mut edge = || Edge { at: Instant::now(), cpu_ns: service_cpu_ns() };
        let began = edge();
        let mut ended = None;
        slice = load.run(window(options.duration), options.pace, &mut || ended = Some(edge()))?;
        if let Some(ended) = ended {
            let took_ns = ended.at.duration_since(began.at).as_nanos().max(1) as f64;
            service = began.cpu_ns.zip(ended.cpu_ns).map(|(then, now)| now.saturating_sub(then));
            cpus = service.map(|ns| ns as f64 / took_ns);
        }
    }
    load.settle()?;
    let alive = load.alive();
    let tally = load.take_tally();
    for counts in [&warm_up, &tally.counts] {
        if !counts.is_conserved() {
            return Err(io::Error::other(format!("the engine lost count of requests: {counts:?}")));
        }
    }
    let limits = limit::find(options.pace, &slice, &tally, cpus);
    Ok(Measurement {
        opened: options.connections,
        alive,
        connect,
        warm_up,
        asked: options.duration,
        slice,
        tally,
        service_cpu_ns: service,
        limits,
    })
}

fn window(length: Duration) -> Window {
    let start = Instant::now();
    Window { start, from: start, until: start + length, requests: None }
}

impl Measurement {
    /// These outcomes on one connection, of a window that was over at once.
    #[cfg(test)]
    pub fn of(tally: Tally) -> Self {
        Self {
            opened: 1,
            alive: 1,
            connect: super::tally::histogram(),
            warm_up: Counts::default(),
            asked: Duration::from_secs(1),
            slice: Slice::default(),
            tally,
            service_cpu_ns: None,
            limits: Vec::new(),
        }
    }

    /// Right answers complete within the window, a second.
    pub fn throughput(&self) -> f64 {
        match self.slice.window_ns {
            0 => 0.0,
            ns => self.slice.in_window as f64 * 1e9 / ns as f64,
        }
    }

    /// CPU time of the generator for a request sent, ns.
    pub fn cpu_ns_per_request(&self) -> Option<f64> {
        let sent = self.tally.counts.sent;
        (sent > 0).then(|| Some(self.slice.account.cpu_ns? as f64 / sent as f64))?
    }

    /// CPU time of the service for an answer, right or wrong, where known, ns.
    pub fn service_cpu_ns_per_request(&self) -> Option<f64> {
        let counts = &self.tally.counts;
        let answers = self.slice.in_window + counts.wrong_status + counts.wrong_body;
        (answers > 0).then(|| Some(self.service_cpu_ns? as f64 / answers as f64))?
    }
}
