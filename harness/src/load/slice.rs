//! What a slice is given and what it yields.

use super::account::Account;
use crate::scenario::Request;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// What every connection of a load has in common.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where the service listens.
    pub address: SocketAddr,
    /// The requests, one after the other, then from the beginning.
    pub pool: Arc<[Request]>,
    /// Longest that a group of connections may take to open.
    pub open_timeout: Duration,
    /// Longest that an answer may take.
    pub timeout: Duration,
    /// The generator sleeps so long after each wake-up: to see that a slow one is noticed.
    pub throttle: Option<Duration>,
    /// Set when somebody asked to end: sending stops, what is under way is awaited.
    pub stop: Option<Arc<AtomicBool>>,
}

/// When to send and what of it counts. All instants are on the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Sending begins; a schedule's time 0.
    pub start: Instant,
    /// Requests due from here on count for latency, answers for throughput.
    pub from: Instant,
    /// Until here; then nothing more is sent.
    pub until: Instant,
    /// Stop sending after so many requests, whatever the time.
    pub requests: Option<u64>,
}

/// What a slice yielded, besides the tally.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slice {
    /// Right answers that were complete within the window.
    pub in_window: u64,
    /// Right answers, within the window or not.
    pub ok: u64,
    /// Requests without an answer in time.
    pub hung: u64,
    /// Exact length of the window, ns: shorter than asked for when somebody asked to end, or
    /// no connection was left.
    pub window_ns: u64,
    /// What the generator spent.
    pub account: Account,
}

impl Slice {
    /// The slices of two threads together.
    pub fn merged(&self, other: &Self) -> Self {
        Self {
            in_window: self.in_window + other.in_window,
            ok: self.ok + other.ok,
            hung: self.hung + other.hung,
            // All threads have the same window but for the moment in which they learn that
            // somebody wants to end, or that their last connection is lost.
            window_ns: self.window_ns.max(other.window_ns),
            account: self.account.merged(&other.account),
        }
    }
}
