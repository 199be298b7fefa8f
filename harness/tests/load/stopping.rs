//! What happens when somebody asked to end, and what the end costs.

use super::truth::{self, Act, Server, Turn, write};
use super::{assert_all_well, assert_books_balance, constant, measured, ms, options};
use harness::load::Pace;
use harness::load::measure::{self, Measurement, Options};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Asks to end after `after`; gives what was measured and how long that took.
fn stopped(options: &Options, after: Duration) -> (io::Result<Measurement>, Duration) {
    let stop = Arc::new(AtomicBool::new(false));
    let mut options = options.clone();
    options.target.stop = Some(Arc::clone(&stop));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(after);
            stop.store(true, Ordering::SeqCst);
        });
        let began = Instant::now();
        (measure::measure(&options, &mut || None), began.elapsed())
    })
}

#[test]
fn in_the_window_what_is_under_way_is_awaited() {
    for threads in [1, 2] {
        let server = Server::start(truth::delayed(ms(5)));
        let long = Options { threads, ..options(&server, 4, ms(10_000)) };
        let (m, took) = stopped(&long, ms(200));
        let m = m.expect("measures");
        assert_books_balance(&m);
        assert_all_well(&server, &m);
        assert!(took < ms(1_000), "{took:?}");
        assert!((150_000_000..400_000_000).contains(&m.slice.window_ns), "{}", m.slice.window_ns);
        assert_eq!((m.asked, m.alive), (ms(10_000), 4));
    }
}

/// The service is hopelessly behind: its backlog would be sent for ten seconds.
#[test]
fn a_constant_pace_sends_nothing_more() {
    let server = Server::start(truth::delayed(ms(50)));
    let paced = Options { pace: constant(1_000.0), ..options(&server, 2, ms(5_000)) };
    let (m, took) = stopped(&paced, ms(400));
    let m = m.expect("measures");
    assert_books_balance(&m);
    assert_all_well(&server, &m);
    assert!(took < ms(1_000), "{took:?}");
    let (sent, never) = (m.tally.counts.sent, m.slice.account.never_sent);
    assert!(sent <= 24, "{sent}");
    // What was due by then; not what would have been due later.
    assert!((350..=600).contains(&(sent + never)), "{sent} + {never}");
}

#[test]
fn in_the_warm_up_nothing_is_measured() {
    for pace in [Pace::Closed, constant(100.0)] {
        let server = Server::start(truth::delayed(ms(1)));
        let warm = Options { pace, warm_up: ms(5_000), ..options(&server, 2, ms(5_000)) };
        let (m, took) = stopped(&warm, ms(200));
        let m = m.expect("measures");
        assert!(took < ms(1_000), "{took:?}");
        assert_books_balance(&m);
        assert!(m.warm_up.ok > 0);
        assert_eq!((m.slice.window_ns, m.tally.counts.sent, m.throughput()), (0, 0, 0.0));
        assert_eq!(m.limits, []);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn while_connecting_there_is_no_waiting() {
    let (_socket, address) = truth::full_queue(1);
    let any = Server::start(truth::right);
    let mut options = options(&any, 10, ms(100));
    options.target.address = address;
    for threads in [1, 2] {
        let threads = Options { threads, ..options.clone() };
        let (m, took) = stopped(&threads, ms(100));
        assert_eq!(m.expect_err("too few").kind(), io::ErrorKind::Interrupted);
        assert!(took < ms(1_000), "{took:?}");
    }
}

/// Waiting for answers is no work, at a constant pace either.
#[test]
fn a_drain_sleeps() {
    for pace in [Pace::Closed, constant(20.0)] {
        let server = Server::start(truth::hang_from(2));
        let mut options = Options { pace, ..options(&server, 4, ms(200)) };
        options.target.timeout = ms(600);
        let m = measured(&server, &options);
        assert!(m.tally.counts.unfinished > 0);
        // A look every 50 ms, and some hundred turns before each due time.
        let wakeups = m.slice.account.wakeups;
        assert!(wakeups < 5_000, "{wakeups}");
    }
}

/// CPU times are those of the window: the wait for one late answer is no idleness.
#[test]
fn the_service_is_read_when_the_window_ends() {
    let late = |turn: &Turn| match turn.request {
        20 => vec![Act::Wait(ms(700)), write(truth::ANSWER)],
        _ => vec![Act::Wait(ms(1)), write(truth::ANSWER)],
    };
    for threads in [1, 2] {
        let server = Server::start(late);
        let options = Options { threads, ..options(&server, 2, ms(300)) };
        let began = Instant::now();
        let mut read = Vec::new();
        let mut edge = || {
            read.push(began.elapsed());
            Some(read.len() as u64 * 1_000)
        };
        let m = measure::measure(&options, &mut edge).expect("measures");
        assert_books_balance(&m);
        assert_eq!((read.len(), m.service_cpu_ns), (2, Some(1_000)));
        let apart = read[1] - read[0];
        assert!(apart >= ms(295) && apart < ms(550), "{apart:?}");
        assert!(began.elapsed() > ms(650), "the last answer was awaited");
    }
}
