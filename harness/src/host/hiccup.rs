//! A timer that should fire every 5 ms, and how late it did: a hiccup of the machine that a
//! request's latency may have met.
//!
//! It runs on the generator's CPU, where latency is taken, and competes with it: lateness up
//! to a scheduler's slice (some 4 ms here) is the generator's own doing. A beat costs 16 µs on
//! a busy CPU and 27 µs on an idle one (a virtual machine, where setting a timer is dear), so
//! 0.3 to 0.5 % of it.

use super::{affinity, cpu_time};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two beats. A hiccup shows as shorter than it was by up to this: little beside one
/// that could explain a surprising maximum. At 1 ms the timer took 1.6 to 2.7 % of the CPU.
const BEAT: Duration = Duration::from_millis(5);
/// Less lateness than this is the timer's own (Linux lets timers slip by 50 µs, and waking
/// up takes its time), not the machine's.
const NOTABLE: Duration = Duration::from_millis(1);
/// Hiccups that are kept, the longest: whoever asks, asks about the longest latency.
const KEPT: usize = 256;

/// The timer thread while it runs.
#[derive(Debug)]
pub struct Timer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Hiccups>,
}

/// What the timer met.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Hiccups {
    /// Times that the timer fired.
    pub beats: u64,
    /// Hiccups of a millisecond or more.
    pub count: u64,
    /// The longest of them, in order of time.
    pub longest: Vec<Hiccup>,
    /// CPU time of the timer itself, ns.
    pub cpu_ns: Option<u64>,
}

/// The timer fired late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Hiccup {
    /// By how much, ns.
    pub late_ns: u64,
    /// When it should have fired, ns since the epoch of the timer, in a record the block's
    /// beginning. The hiccup began then or up to a beat before.
    pub due_ns: u64,
}

impl Timer {
    /// Starts the timer on `cpu`, or wherever the system puts it. Moments count from `epoch`
    /// on the monotonic clock.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(cpu: Option<usize>, epoch: Instant) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("hiccup".to_owned()).spawn(move || {
            // Elsewhere it still hears what stops the whole machine.
            let _ = cpu.map(|cpu| affinity::pin(&[cpu]));
            beat(&flag, epoch)
        })?;
        Ok(Self { stop, thread })
    }

    /// Ends it, after at most a beat, and gives what it met.
    pub fn stop(self) -> Hiccups {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn beat(stop: &AtomicBool, epoch: Instant) -> Hiccups {
    let mut tally = Tally::default();
    let mut due = Instant::now() + BEAT;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let now = Instant::now();
        tally.note(due.saturating_duration_since(epoch), now.saturating_duration_since(due));
        // Missed beats are not made up for: they were this one hiccup.
        due = now.max(due) + BEAT;
    }
    tally.finish(cpu_time::of_this_thread())
}

/// Counts all and keeps the longest, in bounded memory.
#[derive(Default)]
struct Tally {
    beats: u64,
    count: u64,
    longest: BinaryHeap<Reverse<Hiccup>>,
}

impl Tally {
    fn note(&mut self, due: Duration, late: Duration) {
        self.beats += 1;
        if late < NOTABLE {
            return;
        }
        self.count += 1;
        let ns = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        self.longest.push(Reverse(Hiccup { late_ns: ns(late), due_ns: ns(due) }));
        if self.longest.len() > KEPT {
            self.longest.pop();
        }
    }

    fn finish(self, cpu_ns: Option<u64>) -> Hiccups {
        let mut longest: Vec<Hiccup> = self.longest.into_iter().map(|Reverse(h)| h).collect();
        longest.sort_unstable_by_key(|h| h.due_ns);
        Hiccups { beats: self.beats, count: self.count, longest, cpu_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_are_kept_in_order_of_time() {
        let mut tally = Tally::default();
        for i in 0..1000_u64 {
            // 300 of them are notable; the longest come first.
            let late = Duration::from_millis(if i < 300 { 301 - i } else { 0 });
            tally.note(Duration::from_millis(i), late);
        }
        let met = tally.finish(None);
        assert_eq!((met.beats, met.count, met.longest.len()), (1000, 300, KEPT));
        assert_eq!(met.longest[0], Hiccup { late_ns: 301_000_000, due_ns: 0 });
        assert!(met.longest.is_sorted_by_key(|h| h.due_ns));
        assert_eq!(met.longest.last().map(|h| h.due_ns), Some(255_000_000));
    }

    #[test]
    fn it_starts_and_stops() {
        let timer = Timer::start(None, Instant::now()).expect("a thread");
        std::thread::sleep(Duration::from_millis(30));
        let met = timer.stop();
        assert!(met.beats > 0);
        assert!(met.cpu_ns.is_some_and(|ns| ns > 0));
    }
}
