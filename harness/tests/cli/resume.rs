//! `harness compare --resume`: a run that was killed, interrupted or out of disk goes on, and
//! one whose harness, services or machine have changed does not.
use crate::support::{Implementations, harness, root, started, text};
use harness::record::{self, Benchmark, EventKind};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn resume(setup: &Implementations, run: &Path) -> Output {
    harness().args(["compare", "--resume"]).arg(run).args(setup.args()).output().expect("runs")
}

/// A run of three blocks and a memory run that was killed when `until` was printed.
fn killed(setup: &Implementations, name: &str, until: &str) -> PathBuf {
    let run = setup.path(&format!("killed-{name}"));
    let mut child = started(setup, name, &run, &["--set", "blocks=3", "--seed", "11"], until);
    child.kill().expect("SIGKILL");
    child.wait().expect("ends");
    run
}

fn journal(run: &Path) -> String {
    fs::read_to_string(run.join("journal.jsonl")).expect("journal")
}

/// The finished run holds all of the plan and all that was there.
fn assert_whole(output: &Output, run: &Path, before: &str) -> Benchmark {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(journal(run).starts_with(before), "the journal was rewritten");
    let benchmark = record::read(run).expect("a good record");
    assert_eq!((benchmark.run.seed, benchmark.run.stopped_by.as_str()), (11, "plan"));
    let numbers: Vec<usize> = benchmark.blocks.iter().map(|b| b.number).collect();
    assert_eq!((numbers, benchmark.memory.len()), (vec![0, 1, 2], 1));
    assert!(benchmark.members.iter().all(|m| m.runtime.is_some() && m.workers.is_some()));
    let again = record::journal::read(run).expect("a good journal").benchmark;
    assert!(again.blocks == benchmark.blocks && again.memory == benchmark.memory);
    assert!(again.members == benchmark.members && again.events == benchmark.events);
    benchmark
}

#[test]
fn a_killed_run_goes_on_with_the_next_block() {
    let setup = Implementations::new().fixture("again", None);
    let run = killed(&setup, "again", "block 1 of 3");
    // It may have died within a line.
    let before = journal(&run);
    let cut = before.len() - usize::from(!before.ends_with('\n'));
    fs::write(run.join("journal.jsonl"), before.clone() + "{\"block\":{\"number\":1,")
        .expect("write");
    let output = resume(&setup, &run);
    let said = text(&output.stderr);
    assert!(said.contains("never finished (21 bytes); it is left out"), "{said}");
    assert!(!said.contains("block 1 of 3") && said.contains("block 3 of 3"), "{said}");
    let benchmark = assert_whole(&output, &run, &before[..cut]);
    let event = &benchmark.events[0];
    assert_eq!(event.kind, EventKind::Resumed);
    assert!(event.message.ends_with("after 1 block and 0 memory runs"), "{}", event.message);
    assert!(text(&output.stdout).contains("resumed"), "the table says it");

    // Once more: there is nothing to do, and nothing is done.
    let file = fs::read(run.join("benchmark.json")).expect("benchmark.json");
    let output = resume(&setup, &run);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("nothing is left to measure"));
    assert!(text(&output.stdout).contains("get@4"));
    assert_eq!(fs::read(run.join("benchmark.json")).expect("benchmark.json"), file);
    // A damaged roll-up is written anew.
    fs::write(run.join("benchmark.json"), &file[..file.len() / 2]).expect("write");
    let output = resume(&setup, &run);
    assert_whole(&output, &run, &before[..cut]);
}

#[test]
fn a_run_killed_before_its_memory_runs_and_one_interrupted_go_on() {
    let setup = Implementations::new().fixture("late", None).fixture("patient", None);
    let run = killed(&setup, "late", "block 3 of 3");
    let before = journal(&run);
    let output = resume(&setup, &run);
    assert!(!text(&output.stderr).contains("block 3 of 3"), "{}", text(&output.stderr));
    assert_whole(&output, &run, &before);

    let run = setup.path("interrupted");
    let extra = ["--set", "blocks=3", "--seed", "11"];
    let mut child = started(&setup, "patient", &run, &extra, "block 1 of 3");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("SIGINT");
    assert_eq!(child.wait().expect("ends").code(), Some(130));
    assert_eq!(record::read(&run).expect("a record").run.stopped_by, "interrupt");
    let before = journal(&run);
    assert_whole(&resume(&setup, &run), &run, &before);
}

/// Every file of a run folder, by name.
fn files(run: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = fs::read_dir(run)
        .expect("a folder")
        .map(|e| e.expect("an entry"))
        .map(|e| (e.file_name().to_string_lossy().into_owned(), fs::read(e.path()).expect("read")))
        .collect();
    all.sort();
    all
}

/// Resuming is wrong usage, says all `parts` and changes nothing.
fn assert_refused(setup: &Implementations, run: &Path, parts: &[&str]) {
    let before = files(run);
    let output = resume(setup, run);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(parts.iter().all(|part| said.contains(part)), "{parts:?}: {said}");
    assert!(!said.contains("panicked") && output.stdout.is_empty(), "{said}");
    assert!(files(run) == before, "{said}: a file was changed");
}

/// Changes the record in the first line of the journal.
fn edit(run: &Path, pointer: &str, value: Value) {
    let text = journal(run);
    let (first, rest) = text.split_once('\n').expect("lines");
    let mut begin: Value = serde_json::from_str(first).expect("JSON");
    *begin.pointer_mut(&format!("/begin{pointer}")).expect(pointer) = value;
    fs::write(run.join("journal.jsonl"), format!("{begin}\n{rest}")).expect("write");
}

#[test]
fn a_run_does_not_go_on_with_something_else() {
    let setup = Implementations::new().fixture("same", None);
    let run = killed(&setup, "same", "block 1 of 3");
    let good = journal(&run);
    let sha = "0".repeat(64);
    let table = [
        ("/harness/version", json!("0.0.1"), "harness.version: from \"0.0.1\" to"),
        ("/harness/source/commit", json!("c0ffee"), "harness.source.commit: from \"c0ffee\""),
        ("/repository/commit", json!("c0ffee"), "repository.commit: from \"c0ffee\""),
        ("/host/kernel", json!("1.0"), "host.kernel: from \"1.0\" to"),
        ("/host/cpus", json!([0, 77]), "host.cpus: from [0,77] to"),
        ("/host/memory_bytes", json!(1 << 20), "host.memory_bytes: from 1048576 to"),
        ("/run/users_sha256", json!(sha), "users: from"),
        ("/run/seed", json!(12), "plan.seed: from 11 to 12"),
        ("/members/0/argv", json!(["x"]), "same.argv: from [\"x\"] to"),
        ("/members/0/env", json!({"A": "1"}), "same.env.A: from \"1\" to null"),
        ("/members/0/binary_sha256", json!(sha), "same.binary_sha256: from \"0000"),
        ("/schema", json!(2), "journal.jsonl:1: was written by a newer harness, schema 2"),
        ("/conditions/0/rounds", json!("x"), "journal.jsonl:1:"),
    ];
    for (pointer, value, part) in table {
        edit(&run, pointer, value);
        assert_refused(&setup, &run, &[part, "nothing was changed"]);
        fs::write(run.join("journal.jsonl"), &good).expect("write");
    }
    let none = Implementations::new();
    assert_refused(&none, &run, &["unknown implementation `same`", "nothing was changed"]);
    // What moves by itself is nothing else.
    edit(&run, "/host/memory_available_bytes", json!(1));
    let before = journal(&run);
    assert_whole(&resume(&setup, &run), &run, &before);
}

#[test]
fn a_folder_that_is_no_run_is_refused() {
    let setup = Implementations::new().fixture("same", None);
    let run = setup.path("run");
    fs::create_dir(&run).expect("a folder");
    assert_refused(&setup, &run, &["journal.jsonl: cannot be read: No such file"]);
    fs::write(run.join("journal.jsonl"), "").expect("write");
    assert_refused(&setup, &run, &["journal.jsonl: holds nothing", "start a new run"]);
    fs::write(run.join("journal.jsonl"), "{}\n").expect("write");
    assert_refused(&setup, &run, &["journal.jsonl:1:2: is damaged"]);
    for options in [&["--concurrency", "2"][..], &["--seed", "1"], &["--preset", "quick"]] {
        let mut command = harness();
        command.args(["compare", "--resume"]).arg(&run).args(options);
        let output = command.output().expect("runs");
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("cannot be used with"), "{}", text(&output.stderr));
    }
}

#[test]
fn a_full_disk_is_named_and_what_is_there_can_go_on() {
    let setup = Implementations::new().fixture("full", None);
    let run = setup.path("run");
    // A limit on the size of a file is the full disk that every user can have. With its
    // signal ignored, writing fails as it does there.
    let limited = "trap '' XFSZ; ulimit -f \"$1\"; shift; exec \"$@\"";
    let output = Command::new("bash")
        .current_dir(root())
        .args(["-c", limited, "limited", "16", env!("CARGO_BIN_EXE_harness")])
        .args(["compare", "--concurrency", "4", "--scenario", "get", "--preset", "smoke"])
        .args(["--set", "blocks=3", "--seed", "11", "--only", "full", "--out"])
        .arg(&run)
        .args(setup.args())
        .output()
        .expect("runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error: cannot append to") && said.contains("File too large"), "{said}");
    assert!(said.contains("goes on with the run"), "{said}");
    let before = journal(&run);
    assert!(before.ends_with('\n') && before.len() <= 16 * 1024, "a part of a line was left");
    assert!(!run.join("benchmark.json.part").exists());
    assert_whole(&resume(&setup, &run), &run, &before);
}
