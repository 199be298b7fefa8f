//! Every implementation of the repository: builds, passes its own tests, keeps the
//! contract. One whose toolchain is missing is left out, by name.
#![expect(clippy::print_stderr, reason = "a skipped implementation must be seen")]

use crate::support::{harness, root, text};
use harness::manifest;
use harness::process::{Guard, Interrupt, command, toolchain};
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(15 * 60);

#[test]
fn each_builds_passes_its_tests_and_keeps_the_contract() {
    let guard = Guard::start(Path::new(env!("CARGO_BIN_EXE_harness"))).expect("a guard");
    let interrupt = Interrupt::default();
    let mut present = Vec::new();
    for implementation in manifest::load_all(&root(), &[]).expect("good manifests") {
        let name = &implementation.name;
        let missing = toolchain::check(&implementation, &guard, &interrupt)
            .into_iter()
            .find(|t| !t.sufficient);
        if let Some(missing) = missing {
            eprintln!("SKIPPED {name}: {}", missing.complaint());
            continue;
        }
        assert!(!implementation.tests.is_empty(), "{name} has no [[test]] of its own");
        for test in &implementation.tests {
            command::run(test, &implementation.dir, LIMIT, &guard, &interrupt)
                .unwrap_or_else(|e| panic!("{name}: {e:#}"));
        }
        present.push(name.clone());
    }
    assert!(!present.is_empty(), "no implementation has its toolchain");
    let output = harness().arg("verify").output().expect("runs");
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{said}");
    for name in present {
        assert!(said.contains(&name), "{name} was not verified:\n{said}");
    }
}

#[test]
fn list_and_doctor_know_every_implementation() {
    let all = manifest::load_all(&root(), &[]).expect("good manifests");
    for command in ["list", "doctor"] {
        for format in ["text", "markdown", "json"] {
            let output = harness().args([command, "--format", format]).output().expect("runs");
            assert!(output.status.success(), "{}", text(&output.stderr));
            let said = text(&output.stdout);
            for implementation in &all {
                assert!(said.contains(&implementation.name), "{command}: {said}");
            }
            if format == "json" {
                serde_json::from_str::<serde_json::Value>(&said).expect("JSON");
            }
        }
    }
}

#[test]
fn doctor_has_a_line_for_each_probe() {
    let output = harness().args(["doctor", "--format", "json"]).output().expect("runs");
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let noise = said["noise"].as_array().expect("findings");
    for probe in ["foreign CPU", "steal", "CPU quota", "SMT siblings", "governor", "turbo"] {
        let finding = noise.iter().find(|f| f["probe"] == probe).expect(probe);
        let known = finding["value"] != "unknown";
        assert_eq!(finding["verdict"] == "unknown", !known, "{finding}");
    }
}
