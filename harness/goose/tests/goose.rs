//! `harness-goose` over the null server: every request is accounted for, and what is wrong
//! shows as that.

use harness::goose::{Order, Report, Request};
use harness::load::null::{Behaviour, GET_BODY, Server};
use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A null server on a thread of its own, until it is dropped.
struct Null {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Null {
    fn start(behaviour: Behaviour) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = Server::bind(any, behaviour).expect("a port");
        let (address, stop) = (server.address().expect("bound"), Arc::new(AtomicBool::new(false)));
        let asked = Arc::clone(&stop);
        let thread = Some(std::thread::spawn(move || server.run(&asked).expect("runs")));
        Self { address, stop, thread }
    }
}

impl Drop for Null {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(ended.is_some_and(|e| e.is_ok()));
    }
}

/// Gets a user with four connections, half a second long.
fn order(address: SocketAddr) -> Order {
    Order {
        address,
        connections: 4,
        threads: None,
        warm_up_ms: 100,
        window_ms: 500,
        timeout_ms: 5_000,
        request: Request {
            method: "GET".to_owned(),
            target: "/users/1?a=b".to_owned(),
            headers: vec![("X-Test".to_owned(), "yes".to_owned())],
            body: None,
            status: 200,
            expected_body: Some(String::from_utf8(GET_BODY.to_vec()).expect("text")),
        },
    }
}

fn output(input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_harness-goose"))
        // A proxy that is asked would refuse.
        .envs([("http_proxy", "http://127.0.0.1:1"), ("HTTP_PROXY", "http://127.0.0.1:1")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(input.as_bytes()).expect("is read");
    drop(pipe);
    child.wait_with_output().expect("ends")
}

/// The report, whose requests add up and whose histogram decodes.
fn report(order: &Order) -> Report {
    let output = output(&serde_json::to_string(order).expect("an order"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    let report: Report = serde_json::from_slice(&output.stdout).expect("a report, nothing else");
    let counts = report.counts;
    assert!(counts.is_conserved() && counts.sent > 0, "{counts:?}");
    assert_eq!(counts.wrong_status, report.wrong_status_by_code.values().sum::<u64>());
    assert_eq!(report.latency.unpack().expect("decodes").len(), counts.ok);
    assert!(report.ended > report.ended_in_window && report.ended_in_window >= report.in_window);
    report
}

#[test]
fn every_request_is_accounted_for() {
    let server = Null::start(Behaviour::default());
    let report = report(&order(server.address));
    assert_eq!(report.counts.failures(), 0, "{report:?}");
    assert_eq!(report.connections_used, 4, "one a user, kept");
    assert!(report.window_ns >= 500_000_000 && report.throughput() > 0.0);
    assert!(report.cpu_ns_per_request() > Some(0.0) && report.latency.max_ns > Some(0));
    assert!(report.version.starts_with(|c: char| c.is_ascii_digit()), "{}", report.version);
}

#[test]
fn a_body_is_sent() {
    let server = Null::start(Behaviour::default());
    let mut order = order(server.address);
    order.request.method = "POST".to_owned();
    order.request.body = Some(r#"{"name":"Ada","email":"a@b.example"}"#.to_owned());
    order.request.status = 201;
    order.request.expected_body = None;
    assert_eq!(report(&order).counts.failures(), 0);
}

#[test]
fn wrong_answers_are_counted_as_what_they_are() {
    let server = Null::start(Behaviour::default());
    let mut order = order(server.address);
    order.request.expected_body = Some("other".to_owned());
    let wrong_body = report(&order);
    assert_eq!(wrong_body.counts.wrong_body, wrong_body.counts.sent);
    assert_eq!((wrong_body.in_window, wrong_body.offenders.len()), (0, 3));
    order.request.status = 404;
    let wrong_status = report(&order);
    assert_eq!(wrong_status.counts.wrong_status, wrong_status.counts.sent);
    assert_eq!(wrong_status.wrong_status_by_code.keys().collect::<Vec<_>>(), [&200]);
}

#[test]
fn an_answer_that_does_not_come_in_time_is_a_failure() {
    let delay = Duration::from_millis(300);
    let server = Null::start(Behaviour { delay, stall: None });
    let report = report(&Order { timeout_ms: 50, ..order(server.address) });
    assert_eq!(report.counts.timed_out, report.counts.sent, "{report:?}");
}

#[test]
fn what_cannot_be_done_is_named() {
    let address = SocketAddr::from(([127, 0, 0, 1], 9));
    let with = |change: &dyn Fn(&mut Request)| {
        let mut order = order(address);
        change(&mut order.request);
        serde_json::to_string(&order).expect("an order")
    };
    let table = [
        ("{}".to_owned(), "standard input holds no order"),
        (with(&|r| r.method = "OPTIONS".to_owned()), "goose cannot send OPTIONS"),
        (with(&|r| r.target = "/a/../b".to_owned()), "goose would ask for /b instead"),
    ];
    for (input, message) in table {
        let output = output(&input);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty());
        assert!(said.contains(message), "{said}");
    }
}
