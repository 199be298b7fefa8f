//! What the generator itself spent: the instrument's own error has to be known.

use std::time::{Duration, Instant};

/// The account of one or more threads over a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// Threads.
    pub threads: u32,
    /// CPU time of all, ns; `None` where the system does not tell.
    pub cpu_ns: Option<u64>,
    /// Of the busiest, in thousandths of its time.
    pub busiest_permille: Option<u32>,
    /// Time that they were ready to run and did not, ns.
    pub run_delay_ns: Option<u64>,
    /// Times that they woke up.
    pub wakeups: u64,
    /// Events that they found then.
    pub events: u64,
    /// Sum of the gaps between an answer and the next request on its connection, ns.
    pub gap_ns: u64,
    /// Gaps.
    pub gaps: u64,
    /// Sum over all connections of the time that a request was under way, from the first
    /// sending to the end of the window, ns.
    pub in_flight_ns: u64,
    /// Greatest number of requests that were due and had no connection.
    pub backlog: u64,
    /// Requests that were due and never found one.
    pub never_sent: u64,
}

/// A thread's clocks at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Thread {
    at: Instant,
    cpu_ns: Option<u64>,
    run_delay_ns: Option<u64>,
}

impl Thread {
    /// Of the calling thread.
    pub fn now() -> Self {
        let (cpu_ns, run_delay_ns) = (cpu_ns(), run_delay_ns());
        Self { at: Instant::now(), cpu_ns, run_delay_ns }
    }
}

impl Account {
    /// Adds what a thread spent between two moments.
    pub fn add_thread(&mut self, before: &Thread, after: &Thread) {
        let since = |then: Option<u64>, now: Option<u64>| Some(now?.saturating_sub(then?));
        let cpu_ns = since(before.cpu_ns, after.cpu_ns);
        let wall_ns = (after.at - before.at).as_nanos().max(1) as u64;
        *self = self.merged(&Self {
            threads: 1,
            cpu_ns,
            busiest_permille: cpu_ns.map(|cpu| (cpu.saturating_mul(1000) / wall_ns) as u32),
            run_delay_ns: since(before.run_delay_ns, after.run_delay_ns),
            ..Self::default()
        });
    }

    /// Notes the gap between an answer and the next request.
    pub fn gap(&mut self, gap: Duration) {
        self.gap_ns += gap.as_nanos() as u64;
        self.gaps += 1;
    }

    /// The account of both. A sum is unknown when a part is.
    pub fn merged(&self, other: &Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        Self {
            threads: self.threads + other.threads,
            cpu_ns: sum(self.cpu_ns, other.cpu_ns),
            busiest_permille: self.busiest_permille.max(other.busiest_permille),
            run_delay_ns: sum(self.run_delay_ns, other.run_delay_ns),
            wakeups: self.wakeups + other.wakeups,
            events: self.events + other.events,
            gap_ns: self.gap_ns + other.gap_ns,
            gaps: self.gaps + other.gaps,
            in_flight_ns: self.in_flight_ns + other.in_flight_ns,
            backlog: self.backlog + other.backlog,
            never_sent: self.never_sent + other.never_sent,
        }
    }
}

impl Default for Account {
    /// Of no thread: nothing is spent, and nothing unknown.
    fn default() -> Self {
        Self {
            threads: 0,
            cpu_ns: Some(0),
            busiest_permille: None,
            run_delay_ns: Some(0),
            wakeups: 0,
            events: 0,
            gap_ns: 0,
            gaps: 0,
            in_flight_ns: 0,
            backlog: 0,
            never_sent: 0,
        }
    }
}

/// CPU time of the calling thread.
fn cpu_ns() -> Option<u64> {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID).ok()?;
    Some(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// Second field of `/proc/thread-self/schedstat`; zero there means that the kernel does not
/// count.
#[cfg(target_os = "linux")]
fn run_delay_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn run_delay_ns() -> Option<u64> {
    None
}
