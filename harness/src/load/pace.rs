//! When requests are due. Pure: offsets from the beginning of a measurement, no clock.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;
use std::time::Duration;

/// When to send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Each connection sends as soon as its answer is in.
    Closed,
    /// On a schedule fixed beforehand, whatever the service does.
    Constant {
        /// Requests a second over all threads; positive and finite.
        rate: f64,
        /// How the due times lie.
        arrivals: Arrivals,
    },
}

/// How the due times of a constant pace lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// Request i is due at i / rate.
    Uniform,
    /// Gaps are exponentially distributed: as many independent users would send.
    Poisson {
        /// Every gap follows from it.
        seed: u64,
    },
}

/// One thread's part of a schedule: the due times of its requests, one after the other.
#[derive(Debug, Clone)]
pub struct Schedule {
    due_ns: f64,
    gap_ns: f64,
    rng: Option<ChaCha8Rng>,
}

impl Schedule {
    /// The part of thread `thread` of `threads`. All parts together are a schedule of `rate`
    /// requests a second: uniform ones interleave, and a sum of Poisson processes is one.
    pub fn new(rate: f64, arrivals: Arrivals, thread: usize, threads: usize) -> Self {
        let gap_ns = 1e9 / rate;
        let own_gap_ns = gap_ns * threads as f64;
        match arrivals {
            Arrivals::Uniform => {
                Self { due_ns: gap_ns * thread as f64, gap_ns: own_gap_ns, rng: None }
            }
            Arrivals::Poisson { seed } => {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                rng.set_stream(thread as u64);
                let mut schedule = Self { due_ns: 0.0, gap_ns: own_gap_ns, rng: Some(rng) };
                schedule.advance();
                schedule
            }
        }
    }

    /// When the next request is due. Exact to the nanosecond for the first 100 days.
    pub fn due(&self) -> Duration {
        Duration::from_nanos(self.due_ns as u64)
    }

    /// Goes on to the request after that.
    pub fn advance(&mut self) {
        self.due_ns += match &mut self.rng {
            None => self.gap_ns,
            Some(rng) => exponential(rng) * self.gap_ns,
        };
    }
}

/// When a request should have been sent, and when it could have been: when a connection was
/// free, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// The former.
    pub at: Duration,
    /// The latter.
    pub free: Duration,
}

/// Which requests of a schedule are due and which connections could carry them.
#[derive(Debug)]
pub struct Queue {
    /// Next to be sent.
    next: Schedule,
    /// Next to fall due.
    arriving: Schedule,
    /// Due and not sent.
    waiting: u64,
    /// Connections that have nothing to do and since when, the longest idle first.
    idle: VecDeque<(usize, Duration)>,
}

impl Queue {
    /// Nothing is due yet; `idle` are the connections.
    pub fn new(schedule: Schedule, idle: VecDeque<(usize, Duration)>) -> Self {
        Self { next: schedule.clone(), arriving: schedule, waiting: 0, idle }
    }

    /// What is due before `until` waits from now on; gives how many wait.
    pub fn fall_due(&mut self, until: Duration) -> u64 {
        while self.arriving.due() < until {
            self.arriving.advance();
            self.waiting += 1;
        }
        self.waiting
    }

    /// Due requests for which there is no connection.
    pub fn backlog(&self) -> u64 {
        self.waiting.saturating_sub(self.idle.len() as u64)
    }

    /// A connection has nothing to do, from `since` on.
    pub fn free(&mut self, connection: usize, since: Duration) {
        self.idle.push_back((connection, since));
    }

    /// A connection for the longest waiting request, if there are both, and since when it is
    /// idle. The request is only
    /// taken by [`Queue::take`]: the connection may have been closed since it fell idle.
    pub fn pair(&mut self) -> Option<(usize, Duration)> {
        if self.waiting == 0 { None } else { self.idle.pop_front() }
    }

    /// Takes the longest waiting request, for a connection that is idle since then.
    pub fn take(&mut self, idle_since: Duration) -> Due {
        let at = self.next.due();
        self.next.advance();
        self.waiting -= 1;
        Due { at, free: at.max(idle_since) }
    }

    /// When the next request is due for which there will be a connection; `None` where an
    /// answer has to come first.
    pub fn next_due(&self) -> Option<Duration> {
        (!self.idle.is_empty()).then(|| self.next.due())
    }
}

/// Exponentially distributed with mean 1, by inversion.
fn exponential(rng: &mut impl Rng) -> f64 {
    let uniform: f64 = rng.random(); // in [0, 1): 1 − u is never 0
    -(1.0 - uniform).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dues(mut schedule: Schedule, n: usize) -> Vec<u64> {
        let mut next = || {
            let due = schedule.due().as_nanos() as u64;
            schedule.advance();
            due
        };
        (0..n).map(|_| next()).collect()
    }

    #[test]
    fn a_uniform_schedule_is_i_over_rate() {
        let all = dues(Schedule::new(1000.0, Arrivals::Uniform, 0, 1), 4);
        assert_eq!(all, [0, 1_000_000, 2_000_000, 3_000_000]);
        let million = dues(Schedule::new(8.0, Arrivals::Uniform, 0, 1), 1_000_001);
        assert_eq!(million[1_000_000], 125_000_000_000_000);
    }

    #[test]
    fn what_finds_no_connection_waits_and_is_sent_in_order() {
        let ms = Duration::from_millis;
        let schedule = Schedule::new(1000.0, Arrivals::Uniform, 0, 1);
        let mut queue = Queue::new(schedule, VecDeque::from([(7, ms(0))]));
        assert_eq!(queue.next_due(), Some(ms(0)));
        assert_eq!(queue.pair(), None, "nothing is due yet");
        assert_eq!(queue.fall_due(ms(3)), 3);
        assert_eq!(queue.backlog(), 2);
        assert_eq!(queue.pair(), Some((7, ms(0))));
        assert_eq!(queue.take(ms(0)), Due { at: ms(0), free: ms(0) });
        assert_eq!((queue.pair(), queue.next_due()), (None, None), "no connection");
        queue.free(4, ms(2));
        assert_eq!(queue.pair(), Some((4, ms(2))));
        assert_eq!(queue.take(ms(2)), Due { at: ms(1), free: ms(2) });
        assert_eq!(queue.fall_due(ms(3)), 1, "due times are counted once");
    }

    #[test]
    fn threads_interleave_to_the_same_schedule() {
        let mut parts: Vec<u64> = (0..3)
            .flat_map(|thread| dues(Schedule::new(250.0, Arrivals::Uniform, thread, 3), 5))
            .collect();
        parts.sort_unstable();
        assert_eq!(parts, dues(Schedule::new(250.0, Arrivals::Uniform, 0, 1), 15));
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_spread_of_an_exponential() {
        let n = 100_000;
        let all = dues(Schedule::new(1000.0, Arrivals::Poisson { seed: 1 }, 0, 1), n);
        let gaps: Vec<f64> = all.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance =
            gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / (gaps.len() - 1) as f64;
        // Mean 1 ms with a standard error of 0.003; the standard deviation is the mean.
        assert!((mean - 1.0).abs() < 0.015, "{mean}");
        assert!((variance.sqrt() - 1.0).abs() < 0.03, "{variance}");
        let again = dues(Schedule::new(1000.0, Arrivals::Poisson { seed: 1 }, 0, 1), n);
        assert_eq!(all, again);
        let other = dues(Schedule::new(1000.0, Arrivals::Poisson { seed: 1 }, 1, 2), 3);
        assert_ne!(other, all[..3]);
    }
}
