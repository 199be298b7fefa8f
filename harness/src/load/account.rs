//! What the generator itself spent: the instrument's own error has to be known.

use crate::host::cpu_time;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// The account of one or more threads over a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// Threads.
    pub threads: u32,
    /// CPU time of all, ns; `None` where the system does not tell.
    pub cpu_ns: Option<u64>,
    /// How busy the busiest was until the window ended: the time for which it ran, or was
    /// ready to and waited for a CPU, in thousandths.
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
    /// Sum over all connections of the time that they were open, over the same span, ns.
    pub connected_ns: u64,
    /// Greatest number of requests that were due and had no connection.
    pub backlog: u64,
    /// Requests that were due and never found one.
    pub never_sent: u64,
}

/// The clocks of one thread. Made by it, and read by nobody else.
#[derive(Debug)]
pub struct Clock {
    /// Kept open: reading it then is one system call.
    schedstat: Option<File>,
}

/// A thread's clocks at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Thread {
    at: Instant,
    cpu_ns: Option<u64>,
    run_delay_ns: Option<u64>,
}

impl Clock {
    /// Of the calling thread.
    pub fn of_this_thread() -> Self {
        Self { schedstat: File::open("/proc/thread-self/schedstat").ok() }
    }

    /// What they show now.
    pub fn now(&self) -> Thread {
        Thread {
            at: Instant::now(),
            cpu_ns: cpu_time::of_this_thread(),
            run_delay_ns: self.run_delay_ns(),
        }
    }

    /// Second field of schedstat, which only Linux has.
    fn run_delay_ns(&self) -> Option<u64> {
        let mut bytes = [0; 96];
        let n = self.schedstat.as_ref()?.read_at(&mut bytes, 0).ok()?;
        let text = std::str::from_utf8(&bytes[..n]).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse().ok()
    }
}

impl Account {
    /// Adds what a thread spent from `began` until `ended`. How busy it was is judged until
    /// `window_over`: afterwards it only waits for the last answers.
    pub fn add_thread(&mut self, began: &Thread, window_over: &Thread, ended: &Thread) {
        let since = |then: Option<u64>, now: Option<u64>| Some(now?.saturating_sub(then?));
        let wall_ns = (window_over.at - began.at).as_nanos().max(1) as u64;
        let waited = since(began.run_delay_ns, window_over.run_delay_ns).unwrap_or(0);
        let busy = since(began.cpu_ns, window_over.cpu_ns).map(|cpu| cpu + waited);
        *self = self.merged(&Self {
            threads: 1,
            cpu_ns: since(began.cpu_ns, ended.cpu_ns),
            busiest_permille: busy.map(|ns| (ns.saturating_mul(1000) / wall_ns) as u32),
            run_delay_ns: since(began.run_delay_ns, ended.run_delay_ns),
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
            connected_ns: self.connected_ns + other.connected_ns,
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
            connected_ns: 0,
            backlog: 0,
            never_sent: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the clocks show after so many ms: on the wall, of CPU, of waiting for one.
    fn at(start: Instant, wall: u64, cpu: Option<u64>, waited: Option<u64>) -> Thread {
        let ns = |ms: Option<u64>| ms.map(|ms| ms * 1_000_000);
        let at = start + Duration::from_millis(wall);
        Thread { at, cpu_ns: ns(cpu), run_delay_ns: ns(waited) }
    }

    #[test]
    fn busy_is_running_or_waiting_for_a_cpu_until_the_window_ends() {
        let start = Instant::now();
        let table = [
            (Some(50), Some(0), Some(500)),
            (Some(50), Some(45), Some(950)),
            (Some(50), None, Some(500)),
            (None, Some(45), None),
        ];
        for (cpu, waited, busy) in table {
            let mut account = Account::default();
            let known = |value: Option<u64>| value.map(|_| 0);
            let began = at(start, 0, known(cpu), known(waited));
            let ended = at(start, 10_000, cpu.map(|ms| ms + 1), waited);
            account.add_thread(&began, &at(start, 100, cpu, waited), &ended);
            assert_eq!(account.busiest_permille, busy, "a drain of ten seconds does not matter");
            assert_eq!(account.cpu_ns, cpu.map(|ms| (ms + 1) * 1_000_000));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_clocks_of_a_thread_go_on() {
        let clock = Clock::of_this_thread();
        let before = clock.now();
        let until = Instant::now() + Duration::from_millis(5);
        while Instant::now() < until {}
        let after = clock.now();
        assert!(after.cpu_ns > before.cpu_ns);
        assert!(after.run_delay_ns >= before.run_delay_ns && before.run_delay_ns.is_some());
    }
}
