//! Nothing is allocated for a request: what a slice allocates is the same whether it sends
//! one request or a hundred thousand.

use harness::load::{Arrivals, Load, Pace, Target, Window, null};
use harness::scenario::{Expected, Request};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 16;
const REQUESTS: u64 = 100_000;
/// The bodies of the null server.
const USER: &str = "{\"id\":\"1\",\"name\":\"Ada Lovelace\",\"email\":\"ada@example.org\"}";
const AFTER_NEW_ID: &str = "\",\"name\":\"Ada King\",\"email\":\"ada@example.org\"}";
const NEW_USER: &str = "{\"name\":\"Ada King\",\"email\":\"ada@example.org\"}";

fn get() -> Request {
    Request {
        bytes: b"GET /users/1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".to_vec(),
        status: 200,
        body: Expected::Exact(USER.as_bytes().to_vec()),
    }
}

/// Its answer is parsed and judged every time: the id is another one.
fn post() -> Request {
    let head = format!(
        "POST /users HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {}\r\n\r\n",
        NEW_USER.len()
    );
    Request {
        bytes: (head + NEW_USER).into_bytes(),
        status: 201,
        body: Expected::Created(AFTER_NEW_ID.as_bytes().to_vec()),
    }
}

/// Ends the server however the test ends.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `body` with connections to a null server. They are driven by the calling thread, whose
/// allocations alone are counted.
fn with_load(pool: Vec<Request>, body: impl FnOnce(&mut Load)) {
    let server =
        null::Server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), null::Behaviour::default())
            .expect("a free port");
    let target = Target {
        address: server.address().expect("an address"),
        pool: Arc::from(pool),
        open_timeout: Duration::from_secs(5),
        throttle: None,
        timeout: Duration::from_secs(10),
        stop: None,
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| server.run(&stop).expect("answers"));
        let _stop = Stop(&stop);
        let mut load = Load::open(&target, CONNECTIONS, 1, &[]).expect("opens");
        // Every request of the pool has had an answer on every connection.
        load.requests(CONNECTIONS as u64 * 20).expect("runs");
        body(&mut load);
    });
}

/// Allocations of a slice of so many requests.
fn allocations(load: &mut Load, requests: u64) -> u64 {
    load.take_tally();
    let counted = allocation_counter::measure(|| {
        load.requests(requests).expect("runs");
    });
    let counts = load.take_tally().counts;
    assert_eq!((counts.sent, counts.ok), (requests, requests));
    counted.count_total
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocation_counter::measure(|| drop(vec![0; 10])).count_total, 1);
}

#[test]
fn a_closed_pace_allocates_nothing_for_a_request() {
    for pool in [vec![get()], vec![post()], vec![get(), post(), get()]] {
        with_load(pool, |load| {
            let one = allocations(load, 1);
            let many = allocations(load, REQUESTS + 1);
            assert_eq!(many - one, 0, "allocations for {REQUESTS} requests");
        });
    }
}

#[test]
fn a_constant_pace_allocates_nothing_for_a_request() {
    with_load(vec![get(), post()], |load| {
        let mut allocations = |window: Duration| {
            let start = Instant::now();
            let window = Window { start, from: start, until: start + window, requests: None };
            let pace = Pace::Constant { rate: 10_000.0, arrivals: Arrivals::Poisson { seed: 1 } };
            load.take_tally();
            // Its histograms are made once for a tally, not for a slice.
            load.run(Window { until: start, ..window }, pace, &mut || ()).expect("runs");
            let counted = allocation_counter::measure(|| {
                load.run(window, pace, &mut || ()).expect("runs");
            });
            (counted.count_total, load.take_tally().counts)
        };
        let (short, _) = allocations(Duration::from_millis(1));
        let (long, counts) = allocations(Duration::from_millis(1000));
        assert!(counts.sent > 9_000 && counts.ok == counts.sent, "{counts:?}");
        assert_eq!(long, short, "allocations for {} requests", counts.sent);
    });
}
