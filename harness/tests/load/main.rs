//! The load engine against truth servers: what it counts must be what they did.

mod answers;
mod command;
mod connections;
mod latency;
mod parser;
mod reference;
mod stopping;
mod truth;

use harness::load::measure::{self, Measurement, Options};
use harness::load::{Arrivals, Pace, Target};
use std::sync::Arc;
use std::time::Duration;
use truth::{Server, get};

/// Milliseconds.
const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Requests a second at even distances.
const fn constant(rate: f64) -> Pace {
    Pace::Constant { rate, arrivals: Arrivals::Uniform }
}

/// A GET in closed pace by one thread, without warm-up.
fn options(server: &Server, connections: usize, duration: Duration) -> Options {
    Options {
        target: Target {
            address: server.address,
            pool: Arc::from([get()]),
            open_timeout: ms(5_000),
            throttle: None,
            timeout: ms(10_000),
            stop: None,
        },
        connections,
        threads: 1,
        cpus: Vec::new(),
        pace: Pace::Closed,
        warm_up: Duration::ZERO,
        duration,
    }
}

/// Measures, and asserts what holds whatever the server does.
fn measured(server: &Server, options: &Options) -> Measurement {
    let m = measure::measure(options, &mut || None).expect("measures");
    assert_books_balance(&m);
    assert_eq!(server.pipelined(), 0, "one request in flight per connection");
    m
}

fn assert_books_balance(m: &Measurement) {
    let (t, c) = (&m.tally, &m.tally.counts);
    assert!(c.is_conserved() && m.warm_up.is_conserved(), "{c:?} {:?}", m.warm_up);
    assert_eq!(t.latency.len() + t.out_of_range, c.ok, "every good answer has a latency");
    assert_eq!(t.failed_latency.len(), c.failures(), "and every failure one of its own");
    assert_eq!(t.wrong_status_by_code.values().sum::<u64>(), c.wrong_status);
    assert_eq!(m.slice.ok, c.ok);
    assert!(m.slice.in_window <= c.ok);
    assert_eq!(m.slice.hung, c.timed_out + c.unfinished);
    // What makes a connection useless, and nothing else, replaces it, or loses it.
    let useless = t.server_closes + t.surplus + c.protocol_error + c.stale_close + c.truncated;
    assert_eq!(t.reconnects + t.lost, useless + c.timed_out + c.unfinished, "{c:?}");
    assert_eq!(m.alive as u64 + t.lost, m.opened as u64, "lost in the warm-up: none");
    if let Some(paced) = &t.paced {
        assert_eq!(paced.slip.len(), t.latency.len());
        assert_eq!(paced.service_time.len(), t.latency.len());
    }
}

/// All answers were right, and the server knows of as many requests.
fn assert_all_well(server: &Server, m: &Measurement) {
    assert_eq!(m.tally.counts.failures(), 0, "{:?} {:?}", m.tally.counts, m.tally.offenders);
    assert_eq!(m.tally.counts.sent + m.warm_up.sent, server.requests());
    assert!(m.tally.counts.ok > 0);
}
