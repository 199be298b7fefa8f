//! The runner of the contract against the fixture: honest, and breaking one rule at a time.
//! Faults that do not show at an address (processes, ready line) are tested elsewhere.
#![expect(clippy::unwrap_used, reason = "a test that unwraps says with its line what went wrong")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use harness::contract::{Contract, Report, Target, load, observed_table, run};
use harness::users::User;

struct Fixture {
    child: Child,
    address: SocketAddr,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// The users, and the folder that holds them as a file.
struct Seed {
    users: Vec<User>,
    dir: tempfile::TempDir,
}

impl Seed {
    fn new() -> Seed {
        let users: Vec<_> = (1..=10_000)
            .map(|id| User {
                id: id.to_string(),
                name: format!("User {id} Ångström"),
                email: format!("user{id}@example.org"),
            })
            .collect();
        let dir = tempfile::tempdir().unwrap();
        let text = serde_json::to_string(&users).unwrap();
        std::fs::write(dir.path().join("users.json"), text).unwrap();
        Seed { users, dir }
    }

    fn check(&self, contract: &Contract, rule: Option<&str>, shared_state: bool) -> Report {
        let fixture = start(&self.dir.path().join("users.json"), rule);
        let (users, address) = (self.users.as_slice(), fixture.address);
        run(contract, &Target { address, shared_state, users, seed: 7, stop: None })
    }
}

/// Cargo builds the examples beside the tests: `debug/deps/contract-…`, `debug/examples/fixture`.
fn fixture_path() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples/fixture");
    assert!(path.exists(), "{} is missing: `cargo build --examples` makes it", path.display());
    path
}

fn start(users: &Path, rule: Option<&str>) -> Fixture {
    let mut command = Command::new(fixture_path());
    command.args(rule.iter().flat_map(|rule| ["--break", rule]));
    command.env("HOST", "127.0.0.1").env("PORT", "0").env("USERS_FILE", users);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let output = child.stdout.take().unwrap();
    let mut fixture = Fixture { child, address: ([127, 0, 0, 1], 0).into() };
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).unwrap();
    let ready: serde_json::Value =
        serde_json::from_str(line.strip_prefix("ready ").unwrap_or_default()).unwrap();
    fixture.address.set_port(ready["port"].as_u64().unwrap().try_into().unwrap());
    fixture
}

fn contract() -> Contract {
    load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/contract")).unwrap()
}

/// How a broken rule must show itself.
struct Expected {
    rule: &'static str,
    /// Names of all failures in order, or of the first ones where `and_more`.
    failures: &'static [&'static str],
    and_more: bool,
    /// Within the sentence of the first failure.
    what: &'static str,
    /// Within its trace.
    trace: &'static str,
    stopped: Option<&'static str>,
}

const BROKEN: [Expected; 10] = [
    Expected {
        rule: "chunked",
        failures: &["answers-are-not-chunked"],
        and_more: false,
        what: "the answer has Transfer-Encoding: chunked (in ",
        trace: "< Transfer-Encoding: chunked",
        stopped: None,
    },
    Expected {
        rule: "trailing-newline",
        failures: &["bodies-end-without-newline"],
        and_more: false,
        what: "the body differs at byte 71: expected",
        trace: "example.org\"}\\n",
        stopped: None,
    },
    Expected {
        rule: "html-escape",
        failures: &[
            "angle-brackets-and-ampersand-are-not-escaped",
            "angle-brackets-and-ampersand-are-read-back",
        ],
        and_more: false,
        what: "the body differs at byte 22: expected",
        trace: r#""name":"\u003cb\u003eR\u0026D"#,
        stopped: None,
    },
    Expected {
        rule: "key-order",
        failures: &["keys-come-in-order-id-name-email"],
        and_more: false,
        what: "the body differs at byte 2: expected `{\"id\":\"500\"",
        trace: "< {\"name\":\"User 500 Ångström\"",
        stopped: None,
    },
    Expected {
        rule: "created-200",
        failures: &["valid-post-is-201"],
        and_more: true,
        what: "the status is 200, expected 201",
        trace: "< HTTP/1.1 200 OK",
        stopped: None,
    },
    Expected {
        rule: "case-insensitive-keys",
        failures: &[
            "keys-in-other-case-are-extra-fields",
            "keys-are-case-sensitive-for-the-name",
            "keys-are-case-sensitive-for-the-email",
        ],
        and_more: false,
        what: "", // Which of the keys the fixture finds is its own affair.
        trace: "\"NAME\":\"Bob\"",
        stopped: None,
    },
    Expected {
        rule: "keep-alive-5s",
        failures: &["idle-connection-is-kept", "unused-connection-is-kept"],
        and_more: false,
        what: "after 6.5 s without a request: the service closed the connection before the first \
               byte of an answer",
        trace: "> GET /users/1 HTTP/1.1",
        stopped: None,
    },
    Expected {
        rule: "body-limit-exit",
        failures: &["body-over-64-kib-is-413"],
        and_more: false,
        what: "the service closed the connection before the first byte",
        trace: "… (cut, 65,",
        stopped: Some(
            "stopped at `body-over-64-kib-is-413`: a plain request over a new connection gets no \
             answer: 3 connects in a row were refused",
        ),
    },
    Expected {
        rule: "bare-404",
        failures: &["unknown-id-is-404-with-json"],
        and_more: true,
        what: "the body differs at byte 0: expected `{\"error\":\"not found\"}` (21 bytes), got `` (0",
        trace: "< Content-Length: 0",
        stopped: None,
    },
    Expected {
        rule: "cached-404",
        failures: &["not-found-is-not-remembered"],
        and_more: false,
        what: "asked for before it was created: the status is 404, expected 200",
        trace: "< HTTP/1.1 404 Not Found",
        stopped: None,
    },
];

#[test]
fn each_broken_rule_is_caught_by_its_name() {
    let (seed, contract) = (Seed::new(), contract());
    // All at once: most of the time is the wait of the idle connections.
    thread::scope(|scope| {
        scope.spawn(|| assert_silence_ends_the_run(&seed, &contract));
        for habit in HABITS {
            let (seed, contract) = (&seed, &contract);
            scope.spawn(move || assert_habit(seed, contract, habit));
        }
        for expected in &BROKEN {
            let (seed, contract) = (&seed, &contract);
            scope.spawn(move || {
                let report = seed.check(contract, Some(expected.rule), true);
                assert_report(expected, &report);
            });
        }
    });
}

/// Habits that the fixture has no rule for: what a service sends to every request, and the
/// rule that must come first.
const HABITS: [(&str, &str); 5] = [
    ("Content-Length: {n}\r\n\r\n{body}", "answers-have-one-content-type"),
    (
        "Content-Type: application/json; charset=utf-8\r\nContent-Length: {n}\r\n\r\n{body}",
        "answers-have-one-content-type",
    ),
    (
        "Content-Type: application/json\r\nContent-Length: {n}\r\nContent-Length: {n}\r\n\r\n{body}",
        "answers-have-one-content-length",
    ),
    (
        "Content-Type: application/json\r\nContent-Length: {n}\r\n\r\n{body}\r\n",
        "answers-end-with-their-body",
    ),
    (
        "Content-Type: application/json\r\nContent-Length: {n}\r\nConnection: close\r\n\r\n{body}",
        "connections-stay-usable",
    ),
];

/// Answers every request with the same bytes.
fn parrot(answer: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let answer = answer.clone();
            thread::spawn(move || {
                let mut buffer = [0; 128 * 1024];
                while stream.read(&mut buffer).is_ok_and(|length| length > 0) {
                    if stream.write_all(answer.as_bytes()).is_err() || answer.contains(": close") {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn assert_habit(seed: &Seed, contract: &Contract, (answer, rule): (&str, &str)) {
    let users = &seed.users[499..500];
    let body = serde_json::to_string(&users[0]).unwrap();
    let text = answer.replace("{n}", &body.len().to_string()).replace("{body}", &body);
    let address = parrot(format!("HTTP/1.1 200 OK\r\n{text}"));
    let mut contract = contract.clone();
    contract.cases.retain(|case| case.name == "known-user-is-200");
    let report =
        run(&contract, &Target { address, shared_state: true, users, seed: 7, stop: None });
    let first = &report.failures[0];
    assert_eq!(first.case, rule, "{answer:?}: {first:#?}");
    assert!(first.what.contains("`known-user-is-200`"), "{}", first.what);
}

/// Connects are completed by the system, accepted by nobody.
fn assert_silence_ends_the_run(seed: &Seed, contract: &Contract) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let target = Target { address, shared_state: true, users: &seed.users, seed: 7, stop: None };
    let report = run(contract, &target);
    assert_eq!((report.passed, report.failed), (0, 3));
    let stopped = report.stopped.as_deref().unwrap();
    assert!(stopped.contains("gets no answer: no answer within 2s"), "{stopped}");
    assert!(report.failures[0].what.starts_with("no answer within 2s"), "{report:?}");
}

fn assert_report(expected: &Expected, report: &Report) {
    let Expected { rule, failures, and_more, what, trace, stopped } = expected;
    let names: Vec<_> = report.failures.iter().map(|failure| failure.case.as_str()).collect();
    if *and_more {
        assert!(names.starts_with(failures), "{rule}: {names:?}");
    } else {
        assert_eq!(&names, failures, "{rule}: {:#?}", report.failures);
    }
    let first = &report.failures[0];
    assert!(first.what.contains(what), "{rule}: {}", first.what);
    assert!(first.trace.iter().any(|line| line.contains(trace)), "{rule}: {:#?}", first.trace);
    assert_eq!(report.failed, report.failures.len());
    assert_eq!(report.stopped.as_deref(), *stopped, "{rule}");
    assert!(!report.is_kept());
    let made = report.passed + report.failed;
    assert!(if stopped.is_some() { made < report.total } else { made == report.total }, "{rule}");
}

#[test]
fn the_honest_fixture_keeps_everything() {
    let (seed, contract) = (Seed::new(), contract());
    let (shared, separate) = thread::scope(|scope| {
        let separate = scope.spawn(|| seed.check(&contract, None, false));
        (seed.check(&contract, None, true), separate.join().unwrap())
    });
    for report in [&shared, &separate] {
        assert!(report.is_kept(), "{:?} {:#?}", report.stopped, report.failures);
        assert_eq!((report.passed, report.failed), (report.total, 0));
        assert_eq!(report.observed, shared.observed, "outcomes do not depend on the run");
    }
    assert_eq!(shared.total, separate.total + 3, "three checks need shared state");
    let outcome = |case: &str| {
        let found = shared.observed.iter().find(|observation| observation.case == case);
        found.unwrap_or_else(|| panic!("{case} is not observed")).outcome.as_str()
    };
    assert_eq!(outcome("pipelining"), "200, user 1; then 200, user 2");
    assert_eq!(outcome("head"), "404 without body");
    assert_eq!(outcome("id-with-leading-zero"), "404 not found");
    assert_eq!(outcome("http-1-0"), "200, user 500, connection closed");
    assert!(outcome("expect-100-continue").starts_with("100; then 201, "));
    assert_eq!(outcome("large-body-announced-and-not-sent"), "no answer, connection open");
    assert_eq!(outcome("lone-surrogate"), "400 invalid json");
    let columns = [("a".to_owned(), &shared), ("b".to_owned(), &separate)];
    let table = observed_table(&columns);
    assert_eq!(table.lines().count(), shared.observed.len() + 2);
    assert!(table.contains("| pipelining | "));
}

#[test]
fn a_service_that_is_not_there_is_told_in_one_sentence() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let users = [User { id: "1".to_owned(), name: "Ada".to_owned(), email: "a@b".to_owned() }];
    let target = Target { address, shared_state: true, users: &users, seed: 7, stop: None };
    // A contract without users in it: the seed here has only one.
    let report = run(&Contract { cases: Vec::new() }, &target);
    assert_eq!((report.passed, report.failed), (0, 0));
    let stopped = report.stopped.unwrap();
    assert!(stopped.ends_with("3 connects in a row were refused"), "{stopped}");
}
