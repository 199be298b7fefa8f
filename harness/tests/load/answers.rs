//! Servers whose answers come in odd shapes, and servers whose answers are wrong.

use super::truth::{self, ANSWER, Act, BODY, CHUNKED, Manner, Server, Turn, write};
use super::{assert_all_well, constant, measured, ms, options};
use harness::load::Load;
use harness::load::measure::Options;
use harness::load::tally::Counts;
use harness::scenario::{Expected, Request};
use std::sync::Arc;
use std::time::Instant;

/// Sends exactly `requests`, all answered well.
fn all_right(manner: impl Into<Manner>, connections: usize, requests: u64) {
    let server = Server::start(manner);
    let mut load =
        Load::open(&options(&server, 1, ms(0)).target, connections, 1, &[]).expect("opens");
    let slice = load.requests(requests).expect("runs");
    let tally = load.take_tally();
    let right = Counts { sent: requests, ok: requests, ..Counts::default() };
    assert_eq!(tally.counts, right, "{:?}", tally.offenders);
    assert_eq!((slice.ok, tally.latency.len()), (requests, requests));
    assert_eq!((server.requests(), server.pipelined()), (requests, 0));
    assert_eq!((tally.reconnects, tally.surplus), (0, 0));
}

/// One request for each place where an answer can be cut.
fn at_every_byte(wire: &'static str) {
    all_right(truth::split(wire), 4, wire.len() as u64 - 1);
    all_right(truth::trickle(wire), 2, 10);
}

#[test]
fn an_answer_split_at_every_byte() {
    at_every_byte(ANSWER);
}

#[test]
fn chunks_of_odd_sizes_split_at_every_byte() {
    at_every_byte(CHUNKED);
}

#[test]
fn header_names_in_any_case_and_spaces_around_values() {
    let odd = ANSWER.replace("Content-Length: 32", "cOnTeNt-LeNgTh:\t 32 ");
    all_right(move |_: &Turn| vec![write(odd.clone())], 2, 20);
}

#[test]
fn interim_answers_are_skipped() {
    let interim = |_: &Turn| {
        let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
        vec![
            write("HTTP/1.1 100 Continue\r\n\r\n"),
            Act::Wait(ms(2)),
            write(format!("{hints}{}", &ANSWER[..20])),
            Act::Wait(ms(2)),
            write(&ANSWER[20..]),
        ]
    };
    all_right(interim, 2, 20);
}

#[test]
fn answers_of_http_1_0_keep_a_connection_when_they_say_so() {
    let kept = truth::with_header("Connection: Keep-Alive").replace("HTTP/1.1", "HTTP/1.0");
    all_right(move |_: &Turn| vec![write(kept.clone())], 2, 20);
}

#[test]
fn answers_without_a_body() {
    let server =
        Server::start(|_: &Turn| vec![write("HTTP/1.1 204 No Content\r\nServer: truth\r\n\r\n")]);
    let mut options = options(&server, 2, ms(100));
    let bytes = truth::get().bytes;
    options.target.pool =
        Arc::from([Request { bytes, status: 204, body: Expected::Exact(Vec::new()) }]);
    assert_all_well(&server, &measured(&server, &options));
}

#[test]
fn one_percent_of_500s() {
    let error = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n";
    let server = Server::start(truth::instead(100, move |_| vec![write(error)]));
    let m = measured(&server, &options(&server, 8, ms(300)));
    let wrong = server.requests() / 100;
    assert!(wrong > 0);
    let sent = server.requests();
    let expected = Counts { sent, ok: sent - wrong, wrong_status: wrong, ..Counts::default() };
    assert_eq!(m.tally.counts, expected);
    assert_eq!(m.tally.wrong_status_by_code, [(500, wrong)].into());
    // Failures are no reason for a new connection, and have no part in throughput.
    assert_eq!(m.tally.reconnects, 0);
    assert!(m.slice.in_window <= sent - wrong);
    assert!(m.tally.offenders[0].starts_with("HTTP/1.1 500 Internal"));
}

#[test]
fn all_answers_are_404() {
    let missing = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    let server = Server::start(move |_: &Turn| vec![write(missing)]);
    let m = measured(&server, &options(&server, 2, ms(100)));
    assert_eq!(m.tally.counts.wrong_status, server.requests());
    assert_eq!(m.tally.wrong_status_by_code, [(404, server.requests())].into());
    assert_eq!((m.tally.counts.ok, m.throughput()), (0, 0.0));
    assert_eq!(m.tally.offenders.len(), 3);
}

#[test]
fn wrong_bodies() {
    // Another letter, a byte less, a byte more, none; the length always says so.
    let wrong = |nth: u64| {
        let bodies = [&BODY.replace("Ada", "Bda"), &BODY[1..], &format!("{BODY}\n"), ""];
        let body = bodies[nth as usize % 4];
        vec![write(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()))]
    };
    let server = Server::start(truth::instead(10, wrong));
    let m = measured(&server, &options(&server, 4, ms(300)));
    let (sent, wrong) = (server.requests(), server.requests() / 10);
    assert!(wrong >= 4, "{wrong}");
    let expected = Counts { sent, ok: sent - wrong, wrong_body: wrong, ..Counts::default() };
    assert_eq!(m.tally.counts, expected);
    assert_eq!((m.tally.offenders.len(), m.tally.reconnects), (3, 0));
}

#[test]
fn missing_length() {
    let unframed = ANSWER.replace("Content-Length: 32\r\n", "");
    for closes in [false, true] {
        let unframed = unframed.clone();
        let server = Server::start(move |_: &Turn| {
            let mut acts = vec![write(unframed.clone())];
            acts.extend(closes.then_some(Act::Close));
            acts
        });
        let m = measured(&server, &options(&server, 2, ms(100)));
        let sent = server.requests();
        assert!(sent > 0);
        assert_eq!(m.tally.counts, Counts { sent, protocol_error: sent, ..Counts::default() });
        assert_eq!(m.tally.offenders.len() as u64, sent.min(3));
        server.await_accepted(2 + sent);
    }
}

#[test]
fn truncated_answers() {
    // Within the status line, the header and the body.
    let cut = |nth: u64| {
        let at = 1 + nth as usize * 7 % (ANSWER.len() - 1);
        vec![write(&ANSWER[..at]), Act::Close]
    };
    let server = Server::start(truth::instead(10, cut));
    let m = measured(&server, &options(&server, 4, ms(300)));
    let (sent, cut) = (server.requests(), server.requests() / 10);
    assert!(cut > 0);
    let expected = Counts { sent, ok: sent - cut, truncated: cut, ..Counts::default() };
    assert_eq!(m.tally.counts, expected);
    assert_eq!((m.tally.reconnects, server.closed()), (cut, cut));
    server.await_accepted(4 + cut);
}

/// The second answer would be taken for the answer to the next request.
#[test]
fn two_answers_in_one_read() {
    for second in [ANSWER, &ANSWER[..17], "\r\n"] {
        let twice = format!("{ANSWER}{second}");
        let server = Server::start(move |_: &Turn| vec![write(twice.clone())]);
        let m = measured(&server, &options(&server, 2, ms(100)));
        let sent = server.requests();
        assert!(sent > 0);
        assert_eq!(m.tally.counts, Counts { sent, protocol_error: sent, ..Counts::default() });
    }
}

#[test]
fn a_second_answer_that_nobody_waits_for() {
    let server = Server::start(|_: &Turn| vec![write(ANSWER), Act::Wait(ms(5)), write(ANSWER)]);
    let paced = Options { pace: constant(10.0), ..options(&server, 1, ms(500)) };
    let m = measured(&server, &paced);
    assert_eq!(m.tally.counts, Counts { sent: 5, ok: 5, ..Counts::default() });
    assert_eq!((m.tally.surplus, m.tally.reconnects, m.tally.server_closes), (5, 5, 0));
    assert_eq!(server.requests(), 5);
    server.await_accepted(6);
}

/// It answers when the first bytes of a request are in and never reads the rest.
#[test]
fn an_answer_before_the_request_is_complete() {
    let early = |_: &Turn| vec![write(ANSWER), Act::Hang];
    let server = Server::start(Manner { impatient: true, ..Manner::from(early) });
    let mut options = options(&server, 2, ms(200));
    // More than the buffers of the system can take.
    let body = 32 * 1024 * 1024;
    let head = format!("POST /users HTTP/1.1\r\nHost: x\r\nContent-Length: {body}\r\n\r\n");
    let mut bytes = head.into_bytes();
    bytes.resize(bytes.len() + body, b'x');
    options.target.pool = Arc::from([Request { bytes, ..truth::get() }]);
    let m = measured(&server, &options);
    let sent = server.requests();
    assert!(sent >= 2);
    assert_eq!(m.tally.counts, Counts { sent, protocol_error: sent, ..Counts::default() });
    assert!(m.tally.offenders.is_empty() || m.tally.offenders[0].starts_with("HTTP/1.1 200"));
}

/// What a service that reads late gets is the whole request all the same.
#[test]
fn a_large_request_is_written_to_its_end() {
    let server = Server::start(truth::right);
    let mut options = options(&server, 2, ms(100));
    let body = 8 * 1024 * 1024;
    let head = format!("POST /users HTTP/1.1\r\nHost: x\r\nContent-Length: {body}\r\n\r\n");
    let mut bytes = head.into_bytes();
    bytes.resize(bytes.len() + body, b'x');
    options.target.pool = Arc::from([Request { bytes, ..truth::get() }]);
    assert_all_well(&server, &measured(&server, &options));
}

/// Connections go through the pool in its order, each from a place of its own.
#[test]
fn an_answer_is_judged_by_its_own_request() {
    let server = Server::start(|turn: &Turn| {
        let id = turn.on_connection % 5;
        vec![write(format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{id}"))]
    });
    let pool = |shift: u64| {
        (0..5u64).map(move |i| Request {
            body: Expected::Exact(((i + shift) % 5).to_string().into_bytes()),
            ..truth::get()
        })
    };
    let mut options = options(&server, 1, ms(100));
    options.target.pool = pool(0).collect();
    assert_all_well(&server, &measured(&server, &options));
    let server = Server::start(|_: &Turn| {
        vec![write("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n0".to_owned())]
    });
    options.target.address = server.address;
    options.target.pool = pool(1).collect();
    let m = measured(&server, &options);
    // Only the last of the five expects a 0.
    assert_eq!(m.tally.counts.ok, server.requests() / 5);
    assert_eq!(m.tally.counts.wrong_body, server.requests() - server.requests() / 5);
}

/// Neither the memory of the engine nor its clock may be at their mercy.
#[test]
fn answers_without_end() {
    let kib = "x".repeat(1024);
    let chunk = format!("400\r\n{kib}\r\n").repeat(64).into_bytes();
    let table = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", kib.repeat(64).into_bytes()),
        ("HTTP/1.1 200 OK\r\nX: ", kib.clone().into_bytes()),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunk),
    ];
    for (head, flood) in table {
        // One connection is flooded, and so is its successor; the other three are not.
        let server = Server::start(move |turn: &Turn| match turn.connection {
            0 | 4 => vec![write(head), Act::Flood(flood.clone())],
            _ => truth::right(turn),
        });
        let began = Instant::now();
        let m = measured(&server, &options(&server, 4, ms(400)));
        let c = m.tally.counts;
        assert!(began.elapsed() < ms(3_000), "{head}: {:?}", began.elapsed());
        assert_eq!((c.protocol_error, c.failures()), (2, 2), "{head}: {c:?}");
        assert!(c.ok > 100, "{head}: the others had their turn: {c:?}");
        // Most of what was sent was never read, and none of it is kept but its beginning.
        assert!(m.tally.bytes < c.ok * 100 + (40 << 20), "{head}: {}", m.tally.bytes);
        assert!(m.tally.offenders.iter().all(|o| o.len() <= 2_000), "{head}");
    }
}

/// Beyond what is read at one event.
#[test]
fn large_answers_are_taken_to_their_end() {
    let body = "0123456789abcdef".repeat(256 * 1024);
    let by_length = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunked = format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for (wire, close) in [(&by_length, false), (&chunked, false), (&by_length, true)] {
        let wire = wire.clone();
        let server = Server::start(move |_: &Turn| {
            let mut acts = vec![write(wire.clone())];
            acts.extend(close.then_some(Act::Close));
            acts
        });
        let mut options = options(&server, 2, ms(200));
        let body = Expected::Exact(body.clone().into_bytes());
        options.target.pool = Arc::from([Request { body, ..truth::get() }]);
        let m = measured(&server, &options);
        assert_eq!(m.tally.counts.ok, m.tally.counts.sent - m.tally.counts.stale_close);
        assert!(m.tally.counts.ok > 1, "{:?}", m.tally.counts);
    }
}
