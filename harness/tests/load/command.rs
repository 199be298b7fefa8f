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
