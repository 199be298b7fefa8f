//! Signs that a figure is the generator's and not the service's. Thresholds are constants
//! here, each with its reason.

use super::pace::Pace;
use super::{Slice, Tally};
use std::fmt;

/// A thread that runs, or is ready to and waits for a CPU, for more of the window than this
/// has no time to notice that an answer came: its own queue becomes latency. In a constant
/// pace it says nothing, for the timer there spins up to a due time; lateness does.
pub const BUSY_PERMILLE: u32 = 900;
/// A service that keeps its CPUs busier than this is the limit itself, however busy the
/// generator is. `compare` knows how many CPUs a member can use and takes the share of them.
/// `load` does not and takes so many CPUs: right for a service of one process that does one
/// thing at a time. One with several workers passes it when only one of them is busy.
pub const SERVICE_BUSY: f64 = 0.9;
/// By Little's law throughput × mean latency is the number of requests under way, in a closed
/// pace that of open connections. What lacks was spent between an answer and the next request: in
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
        /// Requests under way, on average, for each open connection.
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
                    "a thread of the generator ran, or waited for a CPU, for {:.0} % of the time",
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

/// All signs. `service` is the number of CPUs that the service kept busy within the window.
pub fn find(pace: Pace, slice: &Slice, tally: &Tally, service: Option<f64>) -> Vec<Limit> {
    match pace {
        Pace::Closed => busy(slice, service).into_iter().chain(little(slice)).collect(),
        Pace::Constant { .. } => late(tally).into_iter().collect(),
    }
}

fn busy(slice: &Slice, service: Option<f64>) -> Option<Limit> {
    let permille = slice.account.busiest_permille?;
    (permille >= BUSY_PERMILLE && service.is_none_or(|cpus| cpus < SERVICE_BUSY))
        .then_some(Limit::Busy { permille, service })
}

/// Of the time for which connections were open: to open them anew is the service's doing.
fn little(slice: &Slice) -> Option<Limit> {
    let account = &slice.account;
    if account.connected_ns == 0 {
        return None;
    }
    let share = account.in_flight_ns as f64 / account.connected_ns as f64;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::connection::Flight;
    use crate::load::{Account, Arrivals};
    use std::time::{Duration, Instant};

    const CONSTANT: Pace = Pace::Constant { rate: 1.0, arrivals: Arrivals::Uniform };

    fn slice(permille: Option<u32>, in_flight_ns: u64, connected_ns: u64) -> Slice {
        let account = Account {
            busiest_permille: permille,
            in_flight_ns,
            connected_ns,
            ..Account::default()
        };
        Slice { window_ns: 1_000, account, ..Slice::default() }
    }

    #[test]
    fn a_busy_generator_beside_an_idle_service() {
        let table = [
            (Some(899), None, false),
            (Some(900), None, true),
            (Some(1_000), Some(0.89), true),
            (Some(1_000), Some(0.9), false),
            (Some(1_000), Some(4.0), false),
            (None, Some(0.1), false),
        ];
        for (permille, service, limited) in table {
            let slice = slice(permille, 100, 100);
            let found = find(Pace::Closed, &slice, &Tally::default(), service);
            assert_eq!(!found.is_empty(), limited, "{permille:?} {service:?}: {found:?}");
            // The timer of a constant pace spins.
            assert_eq!(find(CONSTANT, &slice, &Tally::default(), service), []);
        }
    }

    #[test]
    fn connections_that_sat_idle() {
        for (in_flight, connected, limited) in
            [(949, 1_000, true), (950, 1_000, false), (949, 998, false), (0, 0, false)]
        {
            let slice = slice(Some(0), in_flight, connected);
            // Neither a connection opened anew nor a request without an answer hides it.
            let mut tally = Tally { reconnects: 1, lost: 1, ..Tally::default() };
            tally.counts.unfinished = 1;
            let found = find(Pace::Closed, &slice, &tally, None);
            assert_eq!(!found.is_empty(), limited, "{in_flight} of {connected}: {found:?}");
            assert_eq!(find(CONSTANT, &slice, &tally, None), []);
        }
    }

    /// A hundred requests, of which so many were sent so late, a connection being free or not.
    fn late_requests(late: u32, by: Duration, connection_free: bool) -> Tally {
        let mut tally = Tally::default();
        tally.pace();
        let due = Instant::now();
        for i in 0..100 {
            let sent = if i < late { due + by } else { due };
            let free = if connection_free { due } else { sent };
            tally.succeed(&Flight { due, free, sent, measured: true }, sent);
        }
        tally
    }

    #[test]
    fn lateness_of_the_generator_in_a_constant_pace() {
        let us = Duration::from_micros;
        let table = [
            (0, us(0), true, false),
            (100, us(99), true, false),
            (1, us(5_000), true, false),
            (2, us(150), true, true),
            (6, us(5_000), true, true),
            // The service had no connection free.
            (100, us(5_000), false, false),
        ];
        for (late, by, free, limited) in table {
            let found =
                find(CONSTANT, &slice(Some(0), 0, 100), &late_requests(late, by, free), None);
            assert_eq!(!found.is_empty(), limited, "{late} by {by:?}: {found:?}");
        }
    }
}
