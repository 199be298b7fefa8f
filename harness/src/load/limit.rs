//! Signs that a figure is the generator's and not the service's. Thresholds are constants
//! here, each with its reason.

use super::measure::Options;
use super::pace::Pace;
use super::{Slice, Tally};
use std::fmt;
use std::time::Duration;

/// A thread that is busier than this has no time to notice that an answer came: its own
/// queue becomes latency.
pub const BUSY_PERMILLE: u32 = 900;
/// A service that keeps its CPUs busier than this is the limit itself, however busy the
/// generator is.
pub const SERVICE_BUSY: f64 = 0.9;
/// By Little's law throughput × mean latency is the number of requests under way, in a closed
/// pace that of connections. What lacks was spent between an answer and the next request: in
/// the generator. Both sides are summed up exactly, so that no edge of a window matters.
pub const LITTLE: f64 = 0.95;
/// A service that reaches this share of the null server's throughput may be as fast as the
/// generator lets it.
pub const CEILING_SHARE: f64 = 0.85;
/// Lateness that a reader would take for the service's.
const SLIP_P99_NS: u64 = 100_000;
/// A request is late when it was sent later than that; so many of them are too many.
const LATE_SHARE: f64 = 0.05;

/// A reason to read the figures as "at least".
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// A thread of the generator was busy and the service was not, or is not known to have been.
    Busy {
        /// Of the busiest thread.
        permille: u32,
        /// CPUs that the service kept busy; `None`: unknown.
        service: Option<f64>,
    },
    /// Connections sat idle between an answer and the next request.
    Idle {
        /// Requests under way, on average, for each connection.
        share: f64,
    },
    /// Requests were sent late though a connection was free. Where none was, the service is
    /// behind, and that is a finding.
    Late {
        /// 99th percentile of that lateness, ns.
        slip_p99_ns: u64,
        /// Of all requests.
        share: f64,
    },
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Busy { permille, service } => {
                write!(
                    f,
                    "a thread of the generator was {:.0} % busy",
                    f64::from(*permille) / 10.0
                )?;
                match service {
                    Some(cpus) => write!(f, ", the service kept {cpus:.2} CPUs busy"),
                    None => f.write_str("; how busy the service was is unknown"),
                }
            }
            Limit::Idle { share } => write!(
                f,
                "connections were in use only {:.0} % of the time (Little's law)",
                share * 100.0
            ),
            Limit::Late { slip_p99_ns, share } => write!(
                f,
                "requests were sent late though a connection was free: 99th percentile {} µs, {:.1} % by more than {} µs",
                slip_p99_ns / 1000,
                share * 100.0,
                SLIP_P99_NS / 1000
            ),
        }
    }
}

/// All signs. `took` is the time over which `service_cpu_ns` was spent.
pub fn find(
    options: &Options,
    slice: &Slice,
    tally: &Tally,
    service_cpu_ns: Option<u64>,
    took: Duration,
) -> Vec<Limit> {
    let mut limits = Vec::new();
    let service = service_cpu_ns.map(|ns| ns as f64 / took.as_nanos().max(1) as f64);
    let permille = slice.account.busiest_permille.unwrap_or(0);
    if permille >= BUSY_PERMILLE && service.is_none_or(|cpus| cpus < SERVICE_BUSY) {
        limits.push(Limit::Busy { permille, service });
    }
    match options.pace {
        Pace::Closed => limits.extend(little(options, slice, tally)),
        Pace::Constant { .. } => limits.extend(late(tally)),
    }
    limits
}

/// Not where connections had to be opened anew: that takes time too, and is the service's.
fn little(options: &Options, slice: &Slice, tally: &Tally) -> Option<Limit> {
    if slice.window_ns == 0 || tally.counts.sent == 0 || tally.reconnects > 0 {
        return None;
    }
    let whole_ns = slice.window_ns as f64 * options.connections as f64;
    let share = slice.account.in_flight_ns as f64 / whole_ns;
    (share < LITTLE).then_some(Limit::Idle { share })
}

fn late(tally: &Tally) -> Option<Limit> {
    let slip = &tally.paced.as_ref()?.own_slip;
    if slip.is_empty() {
        return None;
    }
    let slip_p99_ns = slip.value_at_quantile(0.99);
    let on_time = slip.count_between(0, SLIP_P99_NS);
    let share = 1.0 - on_time as f64 / slip.len() as f64;
    (slip_p99_ns > SLIP_P99_NS || share > LATE_SHARE).then_some(Limit::Late { slip_p99_ns, share })
}
