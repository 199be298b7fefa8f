//! The load engine: keeps connections busy, checks every answer, accounts for itself.
//!
//! Event loops on the generator's CPUs, one thread each; a member's connections are
//! spread over them. Knows nothing of processes, plans or other members.

pub mod account;
pub mod connection;
pub mod fleet;
pub mod floor;
pub mod limit;
pub mod measure;
pub mod null;
pub mod pace;
pub mod response;
pub mod slice;
pub mod tally;
mod timer;

pub use account::Account;
pub use pace::{Arrivals, Pace};
pub use slice::{Slice, Target, Window};
pub use tally::Tally;

use crate::host::affinity;
use crate::scenario::Request;
use fleet::{Fleet, OpenError};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest that a run of a fixed number of requests may take.
const FIXED_NUMBER_LIMIT: Duration = Duration::from_secs(120);

/// Longest that connections may take to be open again after the last slice. TCP repeats a
/// first attempt after a second.
const RECONNECT_PATIENCE: Duration = Duration::from_millis(1_500);

/// All connections to one service.
pub struct Load {
    fleets: Vec<Fleet>,
    cpus: Vec<usize>,
}

impl Load {
    /// Opens exactly `connections`, spread over `threads` threads. Threads are pinned to
    /// `cpus`, one each, when there are several and as many CPUs; a single thread runs where
    /// its caller runs.
    ///
    /// # Errors
    /// When fewer than asked for can be opened; says how many were. Of kind `Interrupted` when
    /// somebody asked to end meanwhile.
    pub fn open(
        target: &Target,
        connections: usize,
        threads: usize,
        cpus: &[usize],
    ) -> io::Result<Self> {
        let threads = threads.clamp(1, connections.max(1));
        let mut fleets = Vec::with_capacity(threads);
        let mut offset = 0;
        for thread in 0..threads {
            let share = connections / threads + usize::from(thread < connections % threads);
            let opened = Fleet::open(target, share, offset).map_err(|OpenError { open, error }| {
                let open = offset + open;
                let message = format!("{open} of {connections} could be opened: {error}");
                io::Error::new(error.kind(), message)
            });
            fleets.push(opened?);
            offset += share;
        }
        let cpus = if cpus.len() >= threads { cpus.to_vec() } else { Vec::new() };
        Ok(Self { fleets, cpus })
    }

    /// Sends the requests of `pool` from now on.
    pub fn set_pool(&mut self, pool: &Arc<[Request]>) {
        for fleet in &mut self.fleets {
            fleet.set_pool(Arc::clone(pool));
        }
    }

    /// One slice in closed pace: sends, leaves out `settle`, measures `window`, drains.
    ///
    /// # Errors
    /// When the system refuses to wait for events.
    pub fn slice(&mut self, settle: Duration, window: Duration) -> io::Result<Slice> {
        let start = Instant::now();
        let from = start + settle;
        let window = Window { start, from, until: from + window, requests: None };
        self.run(window, Pace::Closed, &mut || ())
    }

    /// Sends exactly `requests` in closed pace (fewer when the connections die), whatever time
    /// it takes.
    ///
    /// # Errors
    /// As [`Load::slice`].
    pub fn requests(&mut self, requests: u64) -> io::Result<Slice> {
        let start = Instant::now();
        let until = start + FIXED_NUMBER_LIMIT;
        let window = Window { start, from: start, until, requests: Some(requests) };
        self.run(window, Pace::Closed, &mut || ())
    }

    /// Sends at `pace` within `window`, then drains. `window_over` is called once, by the
    /// first thread, when its window ends; it must be quick, for answers wait meanwhile.
    ///
    /// # Errors
    /// As [`Load::slice`].
    pub fn run(
        &mut self,
        window: Window,
        pace: Pace,
        window_over: &mut (dyn FnMut() + Send),
    ) -> io::Result<Slice> {
        if let [only] = &mut self.fleets[..] {
            return only.run(window, pace, (0, 1), window_over);
        }
        let mut window_over = Some(window_over);
        let cpus = &self.cpus;
        let threads = self.fleets.len();
        let share = |i: usize| Window {
            requests: window
                .requests
                .map(|n| n / threads as u64 + u64::from((i as u64) < n % threads as u64)),
            ..window
        };
        let parts: Vec<io::Result<Slice>> = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .fleets
                .iter_mut()
                .enumerate()
                .map(|(i, fleet)| {
                    let (window, mut window_over) = (share(i), window_over.take());
                    scope.spawn(move || {
                        if let Some(cpu) = cpus.get(i) {
                            affinity::pin(&[*cpu])?;
                        }
                        fleet.run(window, pace, (i, threads), &mut || {
                            if let Some(window_over) = &mut window_over {
                                window_over();
                            }
                        })
                    })
                })
                .collect();
            let join = |t: std::thread::ScopedJoinHandle<'_, _>| {
                t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        });
        parts.into_iter().try_fold(Slice::default(), |sum, part| Ok(sum.merged(&part?)))
    }

    /// What was counted since the last call, over all threads.
    pub fn take_tally(&mut self) -> Tally {
        let mut tally = Tally::default();
        for fleet in &mut self.fleets {
            tally.merge(&fleet.take_tally());
        }
        tally
    }

    /// After the last slice: waits for connections that are being opened anew; what is not
    /// open soon is lost.
    ///
    /// # Errors
    /// As [`Load::slice`].
    pub fn settle(&mut self) -> io::Result<()> {
        self.fleets.iter_mut().try_for_each(|fleet| fleet.settle(RECONNECT_PATIENCE))
    }

    /// Connections that can still carry a request.
    pub fn alive(&self) -> usize {
        self.fleets.iter().map(Fleet::alive).sum()
    }
}
