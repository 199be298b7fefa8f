//! `harness verify` over services that each break one rule of starting or answering: which
//! rule it was must stand in what a user sees.
use crate::support::{Implementations, fixture_manifest, harness, processes_with, text};
use std::time::{Duration, Instant};

/// Runs `verify` on a fixture that breaks `rule`; gives exit code, both outputs together.
fn verify(name: &str, rule: Option<&str>) -> (Option<i32>, String) {
    let setup = Implementations::new().fixture(name, rule);
    let output = harness().args(["verify", name]).args(setup.args()).output().expect("runs");
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

fn assert_red(rule: &str, parts: &[&str]) {
    let name = format!("f-{rule}");
    let (code, said) = verify(&name, Some(rule));
    assert_eq!(code, Some(3), "{rule}: {said}");
    for part in parts {
        assert!(said.contains(part), "{rule}: {part:?} is not in:\n{said}");
    }
    assert!(said.contains("BROKEN") && said.contains(&name), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn an_honest_service_is_green() {
    let (code, said) = verify("honest", None);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("kept") && !said.contains("BROKEN"), "{said}");
}

// What the runner finds case by case is tested in `contract.rs`; here, that it reaches the
// user with the wire trace.
#[test]
fn a_broken_answer_comes_with_its_wire_trace() {
    let parts =
        ["unknown-id-is-404-with-json", "why it matters", "> GET /users/", "< HTTP/1.1 404"];
    assert_red("bare-404", &parts);
}

#[test]
fn a_broken_first_answer_is_named_by_its_case_too() {
    assert_red("chunked", &["answers-are-not-chunked"]);
    assert_red("trailing-newline", &["bodies-end-without-newline"]);
    assert_red("key-order", &["keys-come-in-order-id-name-email"]);
}

#[test]
fn a_service_that_dies_of_a_request_is_named_with_that_request() {
    assert_red("body-limit-exit", &["body-over-64-kib-is-413", "stopped early"]);
}

#[test]
fn faults_of_starting_each_have_their_own_message() {
    let table: [(&str, &[&str]); 7] = [
        ("never-ready", &["no ready line within 1500 ms"]),
        (
            "exit-at-once",
            &["ended before it could be used (exit status: 7)", "| fixture: giving up"],
        ),
        ("flood-stderr-never-ready", &["no ready line within 1500 ms", "    | "]),
        ("garbage-before-ready", &["printed \"hello\" where its ready line was expected"]),
        ("ready-wrong-port", &["says that it listens on 127.0.0.1:", "but was told"]),
        ("wrong-workers", &["reports 64 workers"]),
        ("ipv6-only", &["::1", "but was told 127.0.0.1:"]),
    ];
    for (rule, parts) in table {
        assert_red(rule, parts);
        assert!(processes_with(rule).is_empty(), "{rule} is still there");
    }
}

#[test]
fn an_answer_from_another_process_does_not_count() {
    assert_red("other-process", &["is not who listens on 127.0.0.1:", "(fixture)"]);
    // The stranger left our group on purpose; it ends by itself once its parent has.
    let until = Instant::now() + Duration::from_secs(5);
    while !processes_with("detached-listener").is_empty() {
        assert!(Instant::now() < until, "the fixture's other process is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_service_without_its_program_says_how_to_start_it() {
    let manifest = fixture_manifest("gone", None).replace("examples/fixture", "examples/nothing");
    let setup = Implementations::new().manifest("gone", &manifest);
    let output = harness().args(["verify", "gone"]).args(setup.args()).output().expect("runs");
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("cannot start") && said.contains("examples/nothing"), "{said}");
    assert!(said.contains("No such file"), "{said}");
}

#[test]
fn a_service_that_floods_standard_error_is_served_all_the_same() {
    let (code, said) = verify("flood", Some("flood-stderr"));
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_service_that_ignores_sigterm_is_killed() {
    let (code, said) = verify("slow", Some("slow-stop"));
    assert!(processes_with("slow-stop").is_empty(), "still there");
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("ends-at-sigterm"), "{said}");
}
