//! `harness load` as a user types it, against truth servers.

use super::ms;
use super::truth::{self, Server, write};
use assert_cmd::Command;
use serde_json::Value;

fn load(server: &Server, args: &[&str]) -> std::process::Output {
    load_at(server.address, args)
}

fn load_at(address: std::net::SocketAddr, args: &[&str]) -> std::process::Output {
    let url = format!("http://{address}/users/1");
    let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
    command.args(["load", &url, "--warm-up", "0"]).args(args).timeout(ms(20_000));
    command.output().expect("runs")
}

fn json(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// `sent` is `ok` and all failures.
fn assert_conserved(report: &Value) {
    let failures = report["failures"].as_object().expect("an object");
    let failed: u64 = failures.values().map(|n| n.as_u64().expect("a count")).sum();
    assert_eq!(report["sent"].as_u64(), report["ok"].as_u64().map(|ok| ok + failed));
}

#[test]
fn the_report_says_what_the_server_did() {
    let error = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    let server = Server::start(truth::instead(20, move |_| vec![write(error)]));
    let output = load(&server, &["-c", "4", "-d", "300ms", "--format", "json"]);
    assert!(output.status.success(), "{output:?}");
    let report = json(&output);
    assert_conserved(&report);
    let wrong = server.requests() / 20;
    assert_eq!(report["sent"], server.requests());
    assert_eq!(report["failures"]["wrong_status"], wrong);
    assert_eq!(report["wrong_status_by_code"]["503"], wrong);
    assert_eq!(report["latency_ns"]["n"], server.requests() - wrong);
    assert_eq!(report["duration_ns"], 300_000_000);
    assert_eq!(report["connections"]["opened"], 4);
    server.await_accepted(4);
}

#[test]
fn a_constant_pace_has_slip_and_service_time() {
    let server = Server::start(truth::delayed(ms(5)));
    let output = load(&server, &["-c", "4", "-d", "500ms", "-r", "100", "--format", "json"]);
    assert!(output.status.success(), "{output:?}");
    let report = json(&output);
    assert_conserved(&report);
    assert_eq!((report["sent"].as_u64(), server.requests()), (Some(50), 50));
    for kind in ["latency_ns", "service_time_ns"] {
        assert_eq!(report[kind]["n"], 50);
        assert!(report[kind]["mean"].as_f64() > Some(4.99e6), "{}", report[kind]);
    }
    assert_eq!(report["slip_ns"]["n"], 50);
    assert!(report["latency_ns"]["p99"].is_null());
    assert!(report["latency_ns"]["withheld"]["p99"].is_string());
}

/// Nothing is divided by the number of answers.
#[test]
fn without_a_single_answer_every_format_has_only_numbers() {
    std::thread::scope(|scope| {
        for format in ["json", "oha", "hgrm", "text"] {
            for rate in [&[][..], &["-r", "10"]] {
                scope.spawn(move || without_an_answer(format, rate));
            }
        }
    });
}

fn without_an_answer(format: &str, rate: &[&str]) {
    let server = Server::start(truth::hang_from(0));
    let mut args = vec!["-c", "2", "-d", "300ms", "--timeout", "200ms", "--format", format];
    args.extend(rate);
    let output = load(&server, &args);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let text = String::from_utf8(output.stdout.clone()).expect("text");
    for odd in ["NaN", "nan", "inf", "Infinity"] {
        assert!(!text.contains(odd), "{text}");
    }
    assert!(!text.is_empty());
    if format == "json" {
        let report = json(&output);
        assert_conserved(&report);
        assert_eq!((&report["sent"], &report["ok"]), (&server.requests().into(), &0.into()));
        assert_eq!((&report["throughput"], &report["lower_bound"]), (&0.0.into(), &true.into()));
        for figure in ["mean", "p50", "p90", "p99", "p99.9", "max"] {
            assert!(report["latency_ns"][figure].is_null(), "{report}");
            assert!(report["latency_ns"]["withheld"][figure].is_string(), "{report}");
        }
    }
}

#[test]
fn a_port_where_nobody_listens() {
    let server = Server::start(truth::right);
    server.end();
    let output = load(&server, &["-c", "3", "-d", "100ms", "--format", "json"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("0 of 3 could be opened"), "{message}");
    assert!(output.stdout.is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn half_of_the_connections_are_not_enough() {
    let (_socket, address) = truth::full_queue(5);
    let output = load_at(address, &["-c", "10", "-d", "100ms", "--timeout", "300ms"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("5 of 10 could be opened"), "{message}");
}

/// What several threads opened is put together.
#[cfg(target_os = "linux")]
#[test]
fn connections_of_all_threads_are_told() {
    for (queue, said) in [(7, "7 of 10 could be opened"), (3, "3 of 10 could be opened")] {
        let (_socket, address) = truth::full_queue(queue);
        let output =
            load_at(address, &["-c", "10", "-t", "2", "-d", "100ms", "--timeout", "300ms"]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains(said), "{message}");
    }
}

#[test]
fn lost_connections_are_told_and_fail_the_command() {
    for (format, counted) in [("json", "\"lost\": 8"), ("text", "0 opened anew, 8 lost")] {
        let server = Server::start(super::connections::deserting());
        let output = load(&server, &["-c", "10", "-d", "300ms", "--format", format]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(shown.contains(counted), "{shown}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains("only 2 of 10 connections could be kept open"), "{message}");
    }
}

/// Before anything is built for it.
#[test]
fn what_the_second_engine_cannot_do_is_refused() {
    let server = Server::start(truth::right);
    let table = [
        (&["-r", "100"][..], 2, "a closed pace only"),
        (&["--format", "oha"], 2, "of the lean engine only"),
        (&["--method", "OPTIONS"], 2, "goose knows DELETE, GET"),
        (&["--root", "/"], 2, "/ is not the repository"),
    ];
    for (args, code, message) in table {
        let output = load(&server, &[args, &["--engine", "goose"]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(message) && !said.contains("building"), "{said}");
    }
    server.end();
    let output = load(&server, &["--engine", "goose"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("nothing accepts connections there"), "{said}");
}

/// Formats of other tools have no place for what their reader must know.
#[test]
fn warnings_are_told_beside_foreign_formats() {
    for format in ["hgrm", "oha"] {
        let error = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
        let server = Server::start(truth::instead(20, move |_| vec![write(error)]));
        let output = load(&server, &["-c", "4", "-d", "300ms", "--format", format]);
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        let failed = server.requests() / 20;
        assert!(
            said.contains(&format!("warning: {} of ", harness::report::number::count(failed))),
            "{said}"
        );
        if format == "oha" {
            let statuses = &json(&output)["statusCodeDistribution"];
            assert_eq!(statuses["503"], failed);
            assert_eq!(statuses["200"], server.requests() - failed);
        }
    }
}

#[test]
fn failures_and_reconnects_have_times_of_their_own() {
    let server = Server::start(truth::instead(10, |_| vec![truth::Act::Close]));
    let output = load(&server, &["-c", "4", "-d", "300ms", "--format", "json"]);
    let report = json(&output);
    let closed = server.requests() / 10;
    assert_eq!(report["failed_latency_ns"]["n"], closed);
    assert!(report["failed_latency_ns"]["max"].is_u64());
    assert_eq!(report["connections"]["reconnects"], closed);
    assert_eq!(report["connections"]["reconnect_ns"]["n"], closed);
    assert_eq!(report["connections"]["many_reconnects"], true);
    if cfg!(target_os = "linux") {
        // The service is this process.
        assert!(report["service_cpu_ns_per_request"].as_f64() > Some(0.0), "{report}");
    }
}

#[test]
fn bytes_that_nobody_asked_for_fail_the_command() {
    let answer = truth::ANSWER;
    let twice = move |_: &truth::Turn| vec![write(answer), truth::Act::Wait(ms(5)), write(answer)];
    let server = Server::start(twice);
    let output = load(&server, &["-c", "1", "-r", "10", "-d", "500ms"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let (shown, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let surplus = "5 times bytes came that nobody had asked for";
    assert!(shown.contains(surplus) && said.contains(surplus), "{shown}{said}");
}

/// Nothing is measured, and each message names what is wrong.
#[test]
fn what_cannot_be_measured_is_refused() {
    let server = Server::start(truth::right);
    let table = [
        (&["-r", "0"][..], "--rate 0"),
        (&["-r", "NaN"], "--rate NaN"),
        (&["-r", "inf"], "--rate inf"),
        (&["-r", "1e12"], "--rate 1000000000000"),
        (&["-r=-5"], "--rate -5"),
        (&["-d", "0"], "--duration 0"),
        (&["-d", "0s"], "--duration 0"),
        (&["-d", "tomorrow"], "--duration tomorrow"),
        (&["-d", "48h"], "at most a day"),
        (&["--timeout", "0"], "--timeout 0"),
        (&["-c", "0"], "--connections 0"),
        (&["-c", "99999999999"], "open files"),
        (&["-t", "0"], "--threads 0"),
        (&["--method", "G T"], "--method G T"),
        (&["--method", "HEAD"], "--method HEAD"),
        (&["--expect-status", "99"], "--expect-status 99"),
        (&["--header", "none"], "--header none"),
        (&["--header", "Content-Length: 3"], "follows from --body"),
    ];
    for (args, message) in table {
        let output = load(&server, args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(message) && output.stdout.is_empty(), "{args:?}: {said}");
    }
    let port = server.address.port();
    let urls = [
        (format!("https://127.0.0.1:{port}/"), "TLS"),
        (format!("127.0.0.1:{port}"), "must begin with http://"),
        (format!("http://127.0.0.1:+{port}/"), "is no port"),
        ("http://127.0.0.1:/".to_owned(), "is no port"),
        ("http://127.0.0.1:99999/".to_owned(), "is no port"),
        ("http://".to_owned(), "is no host"),
        ("http://no-such-host.invalid/".to_owned(), "cannot be resolved"),
    ];
    for (url, message) in urls {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
        let output = command.args(["load", &url]).timeout(ms(20_000)).output().expect("runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{url}: {said}");
        assert!(said.contains(message), "{url}: {said}");
    }
    assert_eq!(server.requests(), 0);
}

/// Without a length some services wait for a body, and others refuse.
#[test]
fn a_post_without_a_body_says_so() {
    for (method, lengths) in [("POST", 1), ("PUT", 1), ("PATCH", 1), ("GET", 0), ("DELETE", 0)] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let server = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut request = vec![0; 1024];
            let n = stream.read(&mut request).expect("a request");
            let close = truth::with_header("Connection: close");
            stream.write_all(close.as_bytes()).expect("writes");
            String::from_utf8_lossy(&request[..n]).into_owned()
        });
        load_at(address, &["-c", "1", "-d", "50ms", "--method", method]);
        let request = server.join().expect("no panic");
        assert!(request.starts_with(method), "{request}");
        assert_eq!(request.matches("Content-Length: 0\r\n").count(), lengths, "{request}");
    }
}

/// Few connections need few descriptors.
#[test]
fn a_low_limit_of_descriptors_is_enough_for_one_connection() {
    let server = Server::start(truth::right);
    let url = format!("http://{}/users/1", server.address);
    let harness = env!("CARGO_BIN_EXE_harness");
    for (connections, code) in [("1", 0), ("200", 2)] {
        let script = format!(
            "ulimit -Sn 100; ulimit -Hn 200; exec {harness} load {url} -c {connections} -d 50ms --warm-up 0"
        );
        let mut command = Command::new("sh");
        let output = command.args(["-c", &script]).timeout(ms(20_000)).output().expect("runs");
        assert_eq!(output.status.code(), Some(code), "{output:?}");
    }
}

/// Found out before minutes of measuring, not after.
#[test]
fn a_document_that_cannot_be_written_is_told_first() {
    let dir = tempfile::tempdir().expect("a folder");
    let without_markers = dir.path().join("empty.md");
    std::fs::write(&without_markers, "# Empty\n").expect("a file");
    let nowhere = dir.path().join("none/there.json");
    let table = [
        (["pace", "--write-docs"], &without_markers, "has no line"),
        (["pace", "--write-docs"], &nowhere, "cannot be read"),
        (["calibrate", "--write-docs"], &without_markers, "has no line"),
        (["calibrate", "--out"], &nowhere, "cannot be written"),
    ];
    for (args, file, message) in table {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
        let output = command.args(args).arg(file).timeout(ms(20_000)).output().expect("runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(message) && !said.contains("debug build"), "{said}");
    }
    assert!(!nowhere.exists());
}
