//! Servers that are slow in known ways, and what the clock must show.

use super::truth::{self, Server, get};
use super::{assert_all_well, constant, measured, ms, options};
use harness::load::Pace;
use harness::load::measure::Options;
use std::time::{Duration, Instant};

/// A histogram with three digits may show a value so much too low.
const ROUNDING: f64 = 0.999;

fn at_least(delay: Duration) -> f64 {
    delay.as_nanos() as f64 * ROUNDING
}

#[test]
fn a_fixed_delay_is_in_every_latency() {
    for delay in [Duration::from_micros(500), ms(5), ms(50)] {
        let server = Server::start(truth::delayed(delay));
        let m = measured(&server, &options(&server, 4, ms(300)));
        assert_all_well(&server, &m);
        assert!(m.tally.latency.min() as f64 >= at_least(delay));
        assert!(m.tally.latency.mean() >= at_least(delay));
        assert!(m.tally.max_ns as f64 >= m.tally.latency.mean());
        assert_eq!(m.slice.window_ns, 300_000_000);
        // Four connections cannot get more than this, nor leave more than four for the drain.
        let most = 4 * (ms(300).as_nanos() / delay.as_nanos() + 1) as u64;
        assert!(m.tally.counts.sent <= most, "{} of {most}", m.tally.counts.sent);
        assert!(m.tally.counts.ok - m.slice.in_window <= 4);
    }
}

#[test]
fn a_fixed_delay_at_constant_pace() {
    for delay in [Duration::from_micros(500), ms(5), ms(50)] {
        let server = Server::start(truth::delayed(delay));
        let slow = Options { pace: constant(200.0), ..options(&server, 16, ms(300)) };
        let m = measured(&server, &slow);
        assert_all_well(&server, &m);
        assert_eq!(m.tally.counts.sent, 60);
        let paced = m.tally.paced.as_ref().expect("paced");
        assert!(paced.service_time.min() as f64 >= at_least(delay));
        assert!(m.tally.latency.mean() >= paced.service_time.mean() * ROUNDING);
        assert_eq!(m.slice.account.never_sent, 0);
    }
}

/// The service does nothing for 2 s. In a closed pace nobody asks meanwhile but those four
/// who wait: four bad samples of thousands. On a schedule, a thousand requests were due.
#[test]
fn a_stall_hardly_shows_in_a_closed_pace() {
    let server = Server::start(truth::stall(ms(200), ms(2_000)));
    let m = measured(&server, &options(&server, 4, ms(2_500)));
    assert_all_well(&server, &m);
    let latency = &m.tally.latency;
    assert_eq!(latency.count_between(1_000_000_000, u64::MAX), 4);
    assert!(latency.len() > 400, "{}", latency.len());
    assert!(latency.value_at_quantile(0.99) < 1_000_000_000);
    assert!(m.tally.max_ns >= 1_900_000_000);
}

#[test]
fn a_stall_shows_at_constant_pace() {
    let server = Server::start(truth::stall(ms(200), ms(2_000)));
    let paced = Options { pace: constant(500.0), ..options(&server, 4, ms(2_500)) };
    let m = measured(&server, &paced);
    assert_all_well(&server, &m);
    // None is dropped: all that were due were sent, though late.
    assert_eq!((m.tally.counts.sent, m.slice.account.never_sent), (1_250, 0));
    let slow = m.tally.latency.count_between(1_000_000_000, u64::MAX);
    assert!(slow >= 490, "500 were due in the first second of the stall: {slow}");
    assert!(m.tally.latency.value_at_quantile(0.99) >= 1_000_000_000);
    // From sending, it looks as harmless as in a closed pace. Slip tells the two apart.
    let paced = m.tally.paced.as_ref().expect("paced");
    assert_eq!(paced.service_time.count_between(1_000_000_000, u64::MAX), 4);
    assert!(paced.slip.count_between(1_000_000_000, u64::MAX) >= 480);
    assert!(m.slice.account.backlog >= 900, "{}", m.slice.account.backlog);
    // It was the service that kept them waiting: the generator found no free connection.
    let own = paced.own_slip.count_between(100_000_000, u64::MAX);
    assert!(own <= 25, "{own} of 1,250 were late by the generator's own doing");
}

#[test]
fn enough_connections_show_a_stall_without_slip() {
    let server = Server::start(truth::stall(ms(200), ms(400)));
    let paced = Options { pace: constant(100.0), ..options(&server, 80, ms(700)) };
    let m = measured(&server, &paced);
    assert_all_well(&server, &m);
    assert_eq!(m.tally.counts.sent, 70);
    let paced = m.tally.paced.as_ref().expect("paced");
    let long = |h: &hdrhistogram::Histogram<u64>| h.count_between(200_000_000, u64::MAX);
    assert!(long(&paced.service_time) >= 19, "{}", long(&paced.service_time));
    assert_eq!(m.slice.account.backlog, 0);
}

#[test]
fn a_slow_first_connection_is_one_latency_or_the_warm_ups() {
    let server = Server::start(truth::slow_first(ms(300)));
    let m = measured(&server, &options(&server, 8, ms(100)));
    assert_all_well(&server, &m);
    assert_eq!(m.connect.len(), 8);
    assert!(m.tally.max_ns >= 300_000_000);
    assert_eq!(m.tally.latency.count_between(299_000_000, u64::MAX), 1);

    let server = Server::start(truth::slow_first(ms(300)));
    let warm = Options { warm_up: ms(50), ..options(&server, 8, ms(100)) };
    let m = measured(&server, &warm);
    assert_all_well(&server, &m);
    assert!(m.warm_up.ok >= 8);
    assert_eq!((m.connect.len(), m.tally.connect.len()), (8, 0));
    server.await_accepted(8);
}

/// Cut at the deadline, these would vanish together with the hang.
#[test]
fn answers_after_the_end_count_for_latency_and_not_for_throughput() {
    let server = Server::start(truth::stall(ms(200), ms(600)));
    let m = measured(&server, &options(&server, 4, ms(400)));
    assert_all_well(&server, &m);
    assert_eq!(m.tally.counts.ok - m.slice.in_window, 4);
    assert_eq!(m.tally.latency.count_between(390_000_000, u64::MAX), 4);
    assert_eq!(m.slice.window_ns, 400_000_000);
}

#[test]
fn a_hang_at_the_end_leaves_requests_unfinished() {
    let server = Server::start(truth::hang_from(200));
    let mut options = options(&server, 4, ms(500));
    options.target.timeout = ms(800);
    let began = Instant::now();
    let m = measured(&server, &options);
    let took = began.elapsed();
    let c = m.tally.counts;
    assert_eq!((c.sent, c.ok, c.unfinished), (204, 200, 4));
    assert_eq!(server.requests(), 204);
    assert!(m.tally.failed_latency.min() as f64 >= at_least(ms(800)));
    // The window is as long as asked for, the run as long as that and the time-out.
    assert_eq!(m.slice.window_ns, 500_000_000);
    assert!(took >= ms(1_300) && took < ms(3_000), "{took:?}");
    assert!(u128::from(m.tally.failed_latency.max()) <= took.as_nanos() * 1001 / 1000);
}

#[test]
fn requests_beyond_the_time_out_fail_and_get_a_new_connection() {
    for pace in [Pace::Closed, constant(1000.0)] {
        let server = Server::start(truth::hang_from(0));
        let mut options = Options { pace, ..options(&server, 3, ms(700)) };
        options.target.timeout = ms(400);
        let m = measured(&server, &options);
        let c = m.tally.counts;
        // Once in the window, and once more when that is over.
        assert_eq!((c.sent, c.timed_out, c.unfinished), (6, 3, 3));
        assert_eq!(server.requests(), 6);
        assert_eq!(m.throughput(), 0.0);
        assert!(m.tally.failed_latency.min() as f64 >= at_least(ms(400)));
        if pace != Pace::Closed {
            assert_eq!(c.sent + m.slice.account.never_sent, 700);
        }
        server.await_accepted(9);
    }
}

/// The service fills its own queue of new connections before it closes one, so that the
/// engine's next attempt is ignored; by the rules of TCP the one after that comes 1 s later.
#[cfg(target_os = "linux")]
#[test]
fn the_time_to_reconnect_is_no_latency() {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    let (socket, address) = truth::full_queue(1);
    let listener = std::net::TcpListener::from(socket);
    let server = std::thread::spawn(move || {
        for round in 0..2 {
            let (mut stream, _) = listener.accept().expect("a connection");
            let n = stream.read(&mut [0; 1024]).expect("a request");
            assert_eq!(n, get().bytes.len());
            let plug = (round == 0).then(|| TcpStream::connect(address).expect("connects"));
            stream.write_all(truth::with_header("Connection: close").as_bytes()).expect("writes");
            drop(stream);
            if plug.is_some() {
                std::thread::sleep(ms(200));
                drop(listener.accept().expect("the plug"));
            }
        }
    });
    let any = Server::start(truth::right);
    let target = harness::load::Target { address, ..options(&any, 1, ms(0)).target };
    let mut load = harness::load::Load::open(&target, 1, 1, &[]).expect("opens");
    let slice = load.requests(2).expect("runs");
    let tally = load.take_tally();
    server.join().expect("no panic");
    assert_eq!((slice.ok, tally.counts.sent, tally.server_closes), (2, 2, 2));
    assert_eq!(tally.connect.len(), 2);
    assert!(tally.connect.max() as f64 >= at_least(ms(900)), "{}", tally.connect.max());
    assert!(tally.max_ns < tally.connect.max() / 2, "{} ns", tally.max_ns);
}
