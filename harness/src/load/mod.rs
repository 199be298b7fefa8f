//! The load engine: keeps connections busy, checks every answer, accounts for itself.
//!
//! Event loops on the generator's CPUs, one thread each; a member's connections are
//! spread over them. Knows nothing of processes, plans or other members.

pub mod fleet;
pub mod response;
pub mod tally;

pub use fleet::{Slice, Window};
pub use tally::Tally;

use crate::host::affinity;
use crate::scenario::Request;
use fleet::Fleet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest that a run of a fixed number of requests may take.
const FIXED_NUMBER_LIMIT: Duration = Duration::from_secs(120);

/// All connections to one member under one condition.
pub struct Load {
    fleets: Vec<Fleet>,
    cpus: Vec<usize>,
}

impl Load {
    /// Opens exactly `connections`, spread over one thread for each of `cpus` (at least one
    /// thread; empty: one thread that is not pinned).
    ///
    /// # Errors
    /// When fewer than asked for can be opened.
    pub fn open(
        address: SocketAddr,
        connections: usize,
        pool: &Arc<[Request]>,
        open_timeout: Duration,
        request_timeout: Duration,
        cpus: &[usize],
    ) -> io::Result<Self> {
        let threads = cpus.len().clamp(1, connections.max(1));
        let mut fleets = Vec::with_capacity(threads);
        let mut offset = 0;
        for thread in 0..threads {
            let share = connections / threads + usize::from(thread < connections % threads);
            fleets.push(Fleet::open(
                address,
                share,
                offset,
                Arc::clone(pool),
                open_timeout,
                request_timeout,
            )?);
            offset += share;
        }
        Ok(Self { fleets, cpus: cpus.to_vec() })
    }

    /// Sends the requests of `pool` from now on.
    pub fn set_pool(&mut self, pool: &Arc<[Request]>) {
        for fleet in &mut self.fleets {
            fleet.set_pool(Arc::clone(pool));
        }
    }

    /// One slice: sends, leaves out `settle`, measures `window`, drains.
    ///
    /// # Errors
    /// When the system refuses to wait for events.
    pub fn slice(&mut self, settle: Duration, window: Duration) -> io::Result<Slice> {
        let from = Instant::now() + settle;
        self.run(Window { from, until: from + window, requests: None })
    }

    /// Sends exactly `requests` (fewer when the connections die), whatever time it takes.
    ///
    /// # Errors
    /// As [`Load::slice`].
    pub fn requests(&mut self, requests: u64) -> io::Result<Slice> {
        let now = Instant::now();
        self.run(Window { from: now, until: now + FIXED_NUMBER_LIMIT, requests: Some(requests) })
    }

    fn run(&mut self, window: Window) -> io::Result<Slice> {
        if let [only] = &mut self.fleets[..] {
            return only.run(window);
        }
        let cpus = &self.cpus;
        let threads = self.fleets.len() as u64;
        let share = |i: u64| Window {
            requests: window.requests.map(|n| n / threads + u64::from(i < n % threads)),
            ..window
        };
        let parts: Vec<io::Result<Slice>> = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .fleets
                .iter_mut()
                .enumerate()
                .map(|(i, fleet)| {
                    let window = share(i as u64);
                    scope.spawn(move || {
                        affinity::pin(&cpus[i..=i])?;
                        fleet.run(window)
                    })
                })
                .collect();
            let join = |t: std::thread::ScopedJoinHandle<'_, _>| {
                t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        });
        parts.into_iter().try_fold(
            Slice { generator_cpu_ns: Some(0), ..Slice::default() },
            |sum, part| {
                let part = part?;
                Ok(Slice {
                    in_window: sum.in_window + part.in_window,
                    ok: sum.ok + part.ok,
                    generator_cpu_ns: sum
                        .generator_cpu_ns
                        .zip(part.generator_cpu_ns)
                        .map(|(a, b)| a + b),
                })
            },
        )
    }

    /// What was counted since the last call, over all threads.
    pub fn take_tally(&mut self) -> Tally {
        let mut tally = Tally::default();
        for fleet in &mut self.fleets {
            tally.merge(&fleet.take_tally());
        }
        tally
    }

    /// Connections that can still carry a request.
    pub fn alive(&self) -> usize {
        self.fleets.iter().map(Fleet::alive).sum()
    }
}
