//! One whole measurement: open, warm up, measure, drain. What `harness load` does.

use super::limit::{self, Limit};
use super::pace::Pace;
use super::tally::{Counts, Tally};
use super::{Load, Slice, Target, Window};
use std::io;
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
    /// Opening them.
    pub connect: hdrhistogram::Histogram<u64>,
    /// Outcomes of the warm-up.
    pub warm_up: Counts,
    /// Window and account.
    pub slice: Slice,
    /// Outcomes and histograms of the window.
    pub tally: Tally,
    /// Why the figures may be the generator's and not the service's.
    pub limits: Vec<Limit>,
}

/// Measures. `edge` is called when the window begins and when it has been drained, and gives
/// the CPU time of the service so far, where that is known, ns.
///
/// # Errors
/// When fewer connections than asked for can be opened, or the system refuses to wait.
pub fn measure(
    options: &Options,
    edge: &mut dyn FnMut() -> Option<u64>,
) -> io::Result<Measurement> {
    let mut load =
        Load::open(&options.target, options.connections, options.threads, &options.cpus)?;
    let connect = load.take_tally().connect;
    if !options.warm_up.is_zero() {
        load.run(window(options.warm_up), options.pace)?;
    }
    let warm_up = load.take_tally().counts;
    let (before, began) = (edge(), Instant::now());
    let slice = load.run(window(options.duration), options.pace)?;
    let (after, took) = (edge(), began.elapsed());
    let tally = load.take_tally();
    let service_cpu_ns = before.zip(after).map(|(then, now)| now.saturating_sub(then));
    let limits = limit::find(options, &slice, &tally, service_cpu_ns, took);
    Ok(Measurement { opened: options.connections, connect, warm_up, slice, tally, limits })
}

fn window(length: Duration) -> Window {
    let start = Instant::now();
    Window { start, from: start, until: start + length, requests: None }
}

impl Measurement {
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
}
