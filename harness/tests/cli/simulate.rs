//! `simulate`: every form of output, and its place in the documentation.

use super::support::{harness, root};
use std::fs;

/// Few enough for a debug build; shows the form, not the figures.
const SMALL: [&str; 5] = ["simulate", "--runs", "10", "--sd", "0.5"];

#[test]
fn it_prints_tables_or_json_and_the_same_for_the_same_seed() {
    let output = |more: &[&str]| {
        let assert = harness().args(SMALL).args(more).assert().success();
        String::from_utf8(assert.get_output().stdout.clone()).expect("UTF-8")
    };
    let text = output(&[]);
    assert!(
        text.contains("The interval covers the true ratio: share of 100 comparisons"),
        "{text}"
    );
    assert!(text.contains("0.5 %") && text.ends_with("Simulated from seed 1.\n"), "{text}");
    assert_eq!(text, output(&["--seed", "1"]));
    assert!(output(&["--format", "markdown"]).contains("| disturbed | blocks |"));
    let json: serde_json::Value =
        serde_json::from_str(&output(&["--format", "json"])).expect("JSON");
    assert_eq!(json["alike"][0]["sd"], 0.005);
    assert_eq!(json["coverage"][0]["nominal"], 0.968_75);
}

#[test]
fn it_writes_its_tables_into_the_documentation() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let copy = dir.path().join("METHOD.md");
    fs::copy(root().join("docs/METHOD.md"), &copy).expect("the document");
    harness().args(SMALL).arg("--write-docs").arg(&copy).assert().success().stdout("");
    let text = fs::read_to_string(&copy).expect("the document");
    assert!(text.contains("share of 100 comparisons"));
    assert!(text.contains("## Memory"), "the rest is still there");
}

#[test]
fn what_cannot_be_simulated_is_wrong_usage() {
    for (args, message) in [
        (&["--sd", "0"][..], "--sd 0: must be a positive percentage"),
        (&["--sd", "1,NaN"], "--sd NaN: must be a positive percentage"),
        (&["--sd", "inf"], "--sd inf: must be a positive percentage"),
        (&["--runs", "1"], "--runs 1: must be at least 10"),
        (&["--runs", "10", "--write-docs", "absent.md"], "--write-docs absent.md: cannot be read"),
    ] {
        let assert = harness().arg("simulate").args(args).assert().code(2);
        let error = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(error.contains(message), "{error}");
    }
}
