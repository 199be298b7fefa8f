//! What became of the requests: counts of every outcome and histograms of latency.

use super::connection::Flight;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::time::{Duration, Instant};

/// Longest latency that a histogram can hold.
pub const MAX_LATENCY_NS: u64 = 60_000_000_000;
/// Offending answers kept as they came.
const KEPT_OFFENDERS: usize = 3;
const SAME_BOUNDS: &str = "histograms of one kind have the same bounds";
/// Characters kept of one.
const KEPT_OFFENDER_CHARS: usize = 500;

/// Why a request failed. Each request ends as exactly one of these, or well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// A complete answer with another status than the expected one.
    WrongStatus(u16),
    /// The right status with a wrong body.
    WrongBody,
    /// No answer that could be parsed.
    ProtocolError,
    /// The connection closed before any byte of the answer.
    StaleClose,
    /// The connection closed in the middle of the answer.
    Truncated,
    /// No complete answer within the time-out.
    TimedOut,
    /// Not answered when the measurement ended.
    Unfinished,
}

/// What a constant pace has besides latency, which there begins when a request was due.
#[derive(Debug, Clone)]
pub struct Paced {
    /// Of the same answers, from sending, ns.
    pub service_time: Histogram<u64>,
    /// Of the same requests, from due to sending, ns.
    pub slip: Histogram<u64>,
    /// Of the slip, what is the generator's own: from when a connection was free, ns.
    pub own_slip: Histogram<u64>,
    /// Exact longest service time, ns.
    pub service_time_max_ns: u64,
    /// Exact longest slip, ns.
    pub slip_max_ns: u64,
    /// Exact longest own slip, ns.
    pub own_slip_max_ns: u64,
}

/// Outcomes of requests. Each request ends as exactly one, so `sent` is the sum of the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Writing began.
    pub sent: u64,
    /// Complete, right answer.
    pub ok: u64,
    /// Complete answer, wrong status.
    pub wrong_status: u64,
    /// Right status, wrong body.
    pub wrong_body: u64,
    /// No parseable answer.
    pub protocol_error: u64,
    /// Closed before any byte of the answer.
    pub stale_close: u64,
    /// Closed within the answer.
    pub truncated: u64,
    /// No complete answer in time.
    pub timed_out: u64,
    /// Open when the measurement ended.
    pub unfinished: u64,
}

/// Counts and histograms of one member under one condition.
#[derive(Debug, Clone)]
pub struct Tally {
    /// Outcomes.
    pub counts: Counts,
    /// Statuses other than the expected one; their sum is `counts.wrong_status`.
    pub wrong_status_by_code: BTreeMap<u16, u64>,
    /// Connections that the service closed after a complete answer.
    pub server_closes: u64,
    /// Connections that were opened anew and are open again; how long that took is in
    /// `connect`.
    pub reconnects: u64,
    /// Connections that could not be opened anew.
    pub lost: u64,
    /// Bytes of all answers, heads included.
    pub bytes: u64,
    /// Reads that yielded bytes when no request was under way.
    pub surplus: u64,
    /// From beginning to open a connection until it was open, ns.
    pub connect: Histogram<u64>,
    /// In a constant pace, what tells the generator's lateness from the service's.
    pub paced: Option<Box<Paced>>,
    /// Latency of right answers to requests sent within a window, ns.
    pub latency: Histogram<u64>,
    /// Latency of failed requests, ns, whenever they were sent.
    pub failed_latency: Histogram<u64>,
    /// Exact longest of these, ns; 0 when there is none.
    pub failed_max_ns: u64,
    /// Latencies that `latency` could not hold; their exact size is in `max_ns`.
    pub out_of_range: u64,
    /// Exact longest latency in `latency` or out of its range, ns; 0 when there is none.
    pub max_ns: u64,
    /// When that answer was complete.
    pub max_at: Option<Instant>,
    /// The first answers that were wrong, escaped and cut.
    pub offenders: Vec<String>,
}

impl Counts {
    /// Requests that did not end well.
    pub fn failures(&self) -> u64 {
        self.wrong_status
            + self.wrong_body
            + self.protocol_error
            + self.stale_close
            + self.truncated
            + self.timed_out
            + self.unfinished
    }

    /// Every request ended as exactly one outcome.
    pub fn is_conserved(&self) -> bool {
        self.sent == self.ok + self.failures()
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.ok += other.ok;
        self.wrong_status += other.wrong_status;
        self.wrong_body += other.wrong_body;
        self.protocol_error += other.protocol_error;
        self.stale_close += other.stale_close;
        self.truncated += other.truncated;
        self.timed_out += other.timed_out;
        self.unfinished += other.unfinished;
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            counts: Counts::default(),
            wrong_status_by_code: BTreeMap::new(),
            server_closes: 0,
            reconnects: 0,
            lost: 0,
            bytes: 0,
            surplus: 0,
            connect: histogram(),
            paced: None,
            latency: histogram(),
            failed_latency: histogram(),
            failed_max_ns: 0,
            out_of_range: 0,
            max_ns: 0,
            max_at: None,
            offenders: Vec::new(),
        }
    }
}

/// 1 ns to 60 s with three significant digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, MAX_LATENCY_NS, 3)
        .unwrap_or_else(|e| unreachable!("the bounds are constants: {e}"))
}

impl Paced {
    fn record(&mut self, flight: &Flight, latency_ns: u64) {
        let slip_ns = nanoseconds(flight.sent.saturating_duration_since(flight.due));
        let own_ns = nanoseconds(flight.sent.saturating_duration_since(flight.free));
        let service_ns = latency_ns.saturating_sub(slip_ns);
        // What the histogram of latency can hold, those of its parts can; what it cannot is
        // counted there.
        let _ = self.slip.record(slip_ns);
        let _ = self.own_slip.record(own_ns);
        let _ = self.service_time.record(service_ns);
        self.slip_max_ns = self.slip_max_ns.max(slip_ns);
        self.own_slip_max_ns = self.own_slip_max_ns.max(own_ns);
        self.service_time_max_ns = self.service_time_max_ns.max(service_ns);
    }

    fn merge(&mut self, other: &Self) {
        self.service_time.add(&other.service_time).expect(SAME_BOUNDS);
        self.slip.add(&other.slip).expect(SAME_BOUNDS);
        self.own_slip.add(&other.own_slip).expect(SAME_BOUNDS);
        self.service_time_max_ns = self.service_time_max_ns.max(other.service_time_max_ns);
        self.slip_max_ns = self.slip_max_ns.max(other.slip_max_ns);
        self.own_slip_max_ns = self.own_slip_max_ns.max(other.own_slip_max_ns);
    }
}

impl Tally {
    /// A right answer to `flight`, complete at `now`.
    pub fn succeed(&mut self, flight: &Flight, now: Instant) {
        self.counts.ok += 1;
        if !flight.measured {
            return;
        }
        let latency_ns = nanoseconds(now.saturating_duration_since(flight.due));
        if self.latency.record(latency_ns).is_err() {
            self.out_of_range += 1;
        }
        if latency_ns > self.max_ns {
            (self.max_ns, self.max_at) = (latency_ns, Some(now));
        }
        if let Some(paced) = &mut self.paced {
            paced.record(flight, latency_ns);
        }
    }

    /// A connection was opened, within `took`.
    pub fn connected(&mut self, took: Duration) {
        // Longer than a minute is beyond every time-out.
        let _ = self.connect.record(nanoseconds(took));
    }

    /// From now on requests have due times.
    pub fn pace(&mut self) {
        self.paced.get_or_insert_with(|| {
            Box::new(Paced {
                service_time: histogram(),
                slip: histogram(),
                own_slip: histogram(),
                service_time_max_ns: 0,
                slip_max_ns: 0,
                own_slip_max_ns: 0,
            })
        });
    }

    /// A failed request; `offender` are the bytes that came, where some did.
    pub fn fail(&mut self, failure: Failure, latency_ns: u64, offender: &[u8]) {
        let counts = &mut self.counts;
        match failure {
            Failure::WrongStatus(status) => {
                counts.wrong_status += 1;
                *self.wrong_status_by_code.entry(status).or_default() += 1;
            }
            Failure::WrongBody => counts.wrong_body += 1,
            Failure::ProtocolError => counts.protocol_error += 1,
            Failure::StaleClose => counts.stale_close += 1,
            Failure::Truncated => counts.truncated += 1,
            Failure::TimedOut => counts.timed_out += 1,
            Failure::Unfinished => counts.unfinished += 1,
        }
        // Out of range here means a time-out of more than a minute: its count stands above.
        let _ = self.failed_latency.record(latency_ns);
        self.failed_max_ns = self.failed_max_ns.max(latency_ns);
        if !offender.is_empty() && self.offenders.len() < KEPT_OFFENDERS {
            // A character takes at most four bytes; the rest may be megabytes.
            let start = &offender[..offender.len().min(4 * KEPT_OFFENDER_CHARS)];
            let text = String::from_utf8_lossy(start);
            let text = text.escape_debug().take(KEPT_OFFENDER_CHARS).collect();
            self.offenders.push(text);
        }
    }

    /// Adds what another thread counted.
    pub fn merge(&mut self, other: &Tally) {
        self.counts += other.counts;
        for (status, n) in &other.wrong_status_by_code {
            *self.wrong_status_by_code.entry(*status).or_default() += n;
        }
        self.server_closes += other.server_closes;
        self.reconnects += other.reconnects;
        self.lost += other.lost;
        if let Some(other) = &other.paced {
            self.pace();
            if let Some(paced) = &mut self.paced {
                paced.merge(other);
            }
        }
        self.bytes += other.bytes;
        self.surplus += other.surplus;
        self.connect.add(&other.connect).expect(SAME_BOUNDS);
        self.latency.add(&other.latency).expect(SAME_BOUNDS);
        self.failed_latency.add(&other.failed_latency).expect(SAME_BOUNDS);
        self.failed_max_ns = self.failed_max_ns.max(other.failed_max_ns);
        self.out_of_range += other.out_of_range;
        if other.max_ns > self.max_ns {
            (self.max_ns, self.max_at) = (other.max_ns, other.max_at);
        }
        let room = KEPT_OFFENDERS - self.offenders.len();
        self.offenders.extend(other.offenders.iter().take(room).cloned());
    }
}

/// Whole nanoseconds.
pub fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tally of right answers that took so many seconds.
    fn tally(seconds: &[u64]) -> Tally {
        let mut tally = Tally::default();
        let sent = Instant::now();
        for &s in seconds {
            tally.counts.sent += 1;
            let flight = Flight::unpaced(sent);
            tally.succeed(&flight, sent + Duration::from_secs(s));
        }
        tally
    }

    #[test]
    fn latencies_beyond_the_histogram_are_counted_and_the_longest_is_exact() {
        let mut tally = tally(&[1, 70, 3_600, 2]);
        assert_eq!((tally.counts.ok, tally.latency.len(), tally.out_of_range), (4, 2, 2));
        assert_eq!(tally.max_ns, 3_600_000_000_000);
        // Not as something that it can hold.
        assert!(tally.latency.max() < 2_010_000_000);
        tally.merge(&self::tally(&[7_200]));
        assert_eq!((tally.counts.ok, tally.latency.len(), tally.out_of_range), (5, 2, 3));
        assert_eq!(tally.max_ns, 7_200_000_000_000);
        assert!(tally.counts.is_conserved());
        // A histogram may have room just beyond its bound; nothing is lost either way.
        let just = self::tally(&[61]);
        assert_eq!((just.latency.len() + just.out_of_range, just.max_ns), (1, 61_000_000_000));
    }

    #[test]
    fn failures_beyond_the_histogram_are_counted() {
        let mut tally = Tally::default();
        tally.counts.sent = 1;
        tally.fail(Failure::TimedOut, 61_000_000_000, b"");
        assert_eq!((tally.counts.timed_out, tally.max_ns, tally.latency.len()), (1, 0, 0));
        assert_eq!(tally.failed_max_ns, 61_000_000_000);
        assert!(tally.counts.is_conserved());
    }

    #[test]
    fn latency_from_due_is_slip_and_service_time() {
        let mut tally = Tally::default();
        tally.pace();
        let due = Instant::now();
        let sent = due + Duration::from_millis(30);
        // Due 30 ms before it was sent, of which it waited 20 for a connection.
        let flight = Flight { due, free: due + Duration::from_millis(20), sent, measured: true };
        tally.succeed(&flight, sent + Duration::from_millis(10));
        let paced = tally.paced.as_ref().expect("paced");
        let ms = |h: &Histogram<u64>| (h.mean() / 1e6).round() as u64;
        assert_eq!((ms(&tally.latency), ms(&paced.slip), ms(&paced.service_time)), (40, 30, 10));
        assert_eq!(ms(&paced.own_slip), 10);
        let longest = (paced.slip_max_ns, paced.own_slip_max_ns, paced.service_time_max_ns);
        assert_eq!(longest, (30_000_000, 10_000_000, 10_000_000));
    }

    #[test]
    fn what_was_sent_before_the_window_has_no_latency() {
        let mut tally = Tally::default();
        let sent = Instant::now();
        tally.succeed(&Flight { measured: false, ..Flight::unpaced(sent) }, sent);
        assert_eq!((tally.counts.ok, tally.latency.len(), tally.max_ns), (1, 0, 0));
    }

    #[test]
    fn three_offenders_are_kept_of_all_threads() {
        let mut a = Tally::default();
        let mut b = Tally::default();
        for i in 0..2 {
            a.fail(Failure::WrongBody, 1, format!("a{i}\r\n").as_bytes());
            b.fail(Failure::WrongStatus(500 + i), 1, &[b'b'; 5_000]);
        }
        a.merge(&b);
        assert_eq!(a.offenders[..2], ["a0\\r\\n", "a1\\r\\n"]);
        assert_eq!(a.offenders[2], "b".repeat(KEPT_OFFENDER_CHARS));
        assert_eq!(a.offenders.len(), KEPT_OFFENDERS);
        assert_eq!(a.wrong_status_by_code, BTreeMap::from([(500, 1), (501, 1)]));
    }
}
