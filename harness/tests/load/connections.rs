//! Servers that close, refuse and die, and how many connections there are.

use super::truth::{self, Act, Manner, Server, Turn, write};
use super::{assert_all_well, constant, measured, ms, options};
use harness::load::limit::Limit;
use harness::load::measure::{self, Options};
use harness::load::tally::Counts;
use std::time::{Duration, Instant};

#[test]
fn fifty_connections_over_three_threads_are_fifty() {
    for (connections, threads) in [(50, 3), (7, 4), (2, 5), (65, 1)] {
        let server = Server::start(truth::delayed(ms(1)));
        let spread = Options { threads, ..options(&server, connections, ms(200)) };
        let m = measured(&server, &spread);
        assert_all_well(&server, &m);
        server.await_accepted(connections as u64);
        assert_eq!(server.used(), connections as u64);
        assert_eq!((m.opened, m.connect.len()), (connections, connections as u64));
        assert_eq!(m.slice.account.threads as usize, threads.min(connections));
    }
}

#[test]
fn an_announced_close_is_no_failure() {
    for every in [1, 7, 100] {
        let server = Server::start(truth::close_every(every, true));
        let m = measured(&server, &options(&server, 3, ms(200)));
        assert_all_well(&server, &m);
        assert_eq!(m.tally.server_closes, server.closed());
        assert!(server.closed() > 0 || every == 100);
        assert_eq!(m.tally.reconnects, server.closed());
        server.await_accepted(3 + server.closed());
    }
}

#[test]
fn http_1_0_closes_after_every_answer() {
    let old = truth::ANSWER.replace("HTTP/1.1", "HTTP/1.0");
    let server = Server::start(move |_: &Turn| vec![write(old.clone()), Act::Close]);
    let m = measured(&server, &options(&server, 3, ms(200)));
    assert_all_well(&server, &m);
    assert_eq!((m.tally.server_closes, m.tally.reconnects), (server.requests(), server.requests()));
}

/// The engine cannot know before the end of the stream is there: a request may have been sent
/// by then, and that one failed. Nothing is retried silently.
#[test]
fn an_unannounced_close_is_counted_once() {
    let server = Server::start(truth::close_every(10, false));
    let m = measured(&server, &options(&server, 3, ms(300)));
    let (c, closes) = (m.tally.counts, m.tally.server_closes);
    assert_eq!((c.ok, c.sent), (server.requests(), server.requests() + c.stale_close));
    assert_eq!(c.failures(), c.stale_close, "{c:?}");
    // The last close on a connection may come when nobody looks any more.
    let seen = c.stale_close + closes;
    assert!(server.closed() > 3);
    assert!((server.closed() - 3..=server.closed()).contains(&seen), "{seen}");
}

#[test]
fn an_unannounced_close_of_an_idle_connection_is_no_failure() {
    let server = Server::start(truth::close_every(5, false));
    let paced = Options { pace: constant(100.0), ..options(&server, 1, ms(500)) };
    let m = measured(&server, &paced);
    assert_all_well(&server, &m);
    assert_eq!((m.tally.counts.sent, server.closed()), (50, 10));
    assert!((9..=10).contains(&m.tally.server_closes), "{}", m.tally.server_closes);
}

#[test]
fn a_close_without_an_answer_is_stale() {
    let server = Server::start(truth::instead(10, |_| vec![Act::Close]));
    let m = measured(&server, &options(&server, 4, ms(200)));
    let (sent, closed) = (server.requests(), server.requests() / 10);
    assert!(closed > 0);
    let expected = Counts { sent, ok: sent - closed, stale_close: closed, ..Counts::default() };
    assert_eq!(m.tally.counts, expected);
    assert_eq!((m.tally.server_closes, m.tally.reconnects), (0, closed));
}

/// Linux accepts connections for a server until its queue is full and then ignores them.
#[cfg(target_os = "linux")]
#[test]
fn half_of_the_connections_are_not_enough() {
    let (_socket, address) = truth::full_queue(10);
    let any = Server::start(truth::right);
    let mut options = options(&any, 20, ms(100));
    options.target.address = address;
    options.target.open_timeout = ms(300);
    let error = measure::measure(&options, &mut || None).expect_err("too few");
    let message = error.to_string();
    assert!(
        message.starts_with("10 of 20 could be opened: the rest was not accepted"),
        "{message}"
    );
}

/// Every second connection is closed as soon as it is accepted, its replacement too.
#[test]
fn a_server_that_closes_half_of_the_connections_at_once() {
    for pace in [harness::load::Pace::Closed, constant(200.0)] {
        let manner =
            Manner { refuses: |connection| connection % 2 == 1, ..Manner::from(truth::right) };
        let server = Server::start(manner);
        let m = measured(&server, &Options { pace, ..options(&server, 4, ms(400)) });
        // 1 and 3 of 0 to 3; then 4 is served and 5 refused; then 6 is served.
        server.await_accepted(7);
        assert_eq!((server.refused(), server.used()), (3, 4));
        let c = m.tally.counts;
        assert_eq!(c.stale_close + m.tally.server_closes, 3);
        assert_eq!((c.ok, c.sent), (server.requests(), server.requests() + c.stale_close));
        assert_eq!(c.failures(), c.stale_close, "{c:?}");
    }
}

/// Ends the server after 200 ms of the measurement.
fn measured_until_death(server: &Server, options: &Options) -> (measure::Measurement, Duration) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(ms(200));
            server.end();
        });
        let began = Instant::now();
        (measured(server, options), began.elapsed())
    })
}

#[test]
fn a_server_that_dies_leaves_what_was_measured() {
    let server = Server::start(truth::delayed(ms(1)));
    let (m, took) = measured_until_death(&server, &options(&server, 4, ms(3_000)));
    let c = m.tally.counts;
    assert!(c.ok > 0);
    assert!(c.sent <= server.requests() + 4 && c.failures() <= 4, "{c:?}");
    // Nobody is left to ask: there is no reason to wait, and no window any more.
    assert!(took < ms(2_500), "{took:?}");
    assert_eq!((m.alive, m.tally.lost, m.tally.reconnects), (0, 4, 0));
    assert!(m.slice.window_ns < 1_000_000_000, "{} ns", m.slice.window_ns);
    assert_eq!(m.asked, ms(3_000));
}

#[test]
fn requests_for_a_dead_server_are_told_though_never_sent() {
    let server = Server::start(truth::right);
    let paced = Options { pace: constant(500.0), ..options(&server, 4, ms(2_000)) };
    let (m, _) = measured_until_death(&server, &paced);
    assert!(m.tally.counts.ok > 0);
    assert_eq!(m.tally.counts.sent + m.slice.account.never_sent, 1_000);
}

/// A service that closes connections and listens no more.
pub fn deserting() -> Manner {
    let answer = |turn: &Turn| match (turn.connection, turn.on_connection) {
        (2.., 4) => vec![write(truth::with_header("Connection: close")), Act::Close],
        _ => vec![Act::Wait(ms(1)), write(truth::ANSWER)],
    };
    Manner { listens_for: 10, ..Manner::from(answer) }
}

#[test]
fn connections_that_cannot_be_opened_again_are_counted() {
    for threads in [1, 2] {
        let server = Server::start(deserting());
        let m = measured(&server, &Options { threads, ..options(&server, 10, ms(300)) });
        assert_eq!((m.alive, m.tally.lost, m.tally.reconnects), (2, 8, 0));
        assert_eq!((m.tally.counts.failures(), m.tally.server_closes), (0, 8));
        // Those that are left are loaded to the end, and measured against themselves alone.
        assert_eq!(m.slice.window_ns, 300_000_000);
        let account = m.slice.account;
        let share = account.connected_ns as f64 / 3e9;
        assert!((0.19..0.35).contains(&share), "2 of 10 connections and a little: {share}");
        assert!(account.in_flight_ns <= account.connected_ns);
        let idle = m.limits.iter().any(|l| matches!(l, Limit::Idle { share } if *share < 0.5));
        assert!(!idle, "{:?}", m.limits);
    }
}
