//! Run files that were cut, edited, damaged or written by another version.

use super::folder::{Entry, RunFolder, read_plan};
use super::sample::{block, entries, event, memory, plan, write};
use super::*;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A run folder with these entries.
fn run(entries: &[Entry<'_>]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("temporary folder");
    let run = dir.path().join("run");
    write(&run, entries);
    (dir, run)
}

fn journal_of(run: &Path) -> Vec<u8> {
    fs::read(run.join("journal.jsonl")).expect("journal")
}

/// The record that [`entries`] make.
fn record() -> Benchmark {
    let (_dir, run) = run(&entries());
    journal::read(&run).expect("reads").benchmark
}

#[test]
fn a_journal_reads_back_as_it_was_written() {
    let (_dir, run) = run(&entries());
    let read = journal::read(&run).expect("reads");
    let b = &read.benchmark;
    assert_eq!(read.cut_bytes, 0);
    assert_eq!(b.blocks, [block(0, 0), block(1, 0)]);
    assert_eq!(b.rechecks, [block(3, 0)]);
    assert_eq!(b.memory, [memory(1)]);
    assert_eq!(b.events, [event(EventKind::MemoryFailed)]);
    assert_eq!((b.members[0].runtime.as_deref(), b.members[0].workers), (Some("r 1"), Some(1)));
    assert_eq!(b.members[1].runtime, None);
    assert_eq!(read_plan(&run).expect("reads"), plan());
    check::benchmark(b).expect("hangs together");
}

#[test]
fn a_journal_cut_anywhere_keeps_its_whole_lines() {
    let (_dir, run) = run(&entries());
    let whole = journal_of(&run);
    let first = whole.iter().position(|&b| b == b'\n').expect("lines");
    // Every byte of the last lines, some of the others.
    for cut in (0..whole.len()).filter(|n| n % 397 == 0 || n + 500 > whole.len()) {
        fs::write(run.join("journal.jsonl"), &whole[..cut]).expect("write");
        let Ok(read) = journal::read(&run) else {
            assert!(cut < first, "cut at {cut}");
            continue;
        };
        let lines = whole[..cut].iter().filter(|&&b| b == b'\n').count();
        // One that lacks nothing but its end is whole.
        let lines = lines + usize::from(whole[cut] == b'\n');
        let b = &read.benchmark;
        let ready = usize::from(b.members[0].runtime.is_some());
        let found = 1 + ready + b.blocks.len() + b.rechecks.len() + b.events.len() + b.memory.len();
        assert_eq!(found, lines, "cut at {cut}");
        // It goes on with the next line.
        let mut again = RunFolder::reopen(&read).expect("opens");
        again.append(&Entry::Event(Cow::Owned(event(EventKind::Resumed)))).expect("appends");
        drop(again);
        let next = journal::read(&run).expect("reads again");
        assert_eq!((next.cut_bytes, next.benchmark.events.len()), (0, b.events.len() + 1));
    }
}

#[test]
fn two_never_write_to_one_journal() {
    let (_dir, run) = run(&entries());
    let read = journal::read(&run).expect("reads");
    let first = RunFolder::reopen(&read).expect("opens");
    let error = RunFolder::reopen(&read).expect_err("it is open");
    assert!(error.to_string().contains("still under way"), "{error}");
    drop(first);
    fs::write(run.join("journal.jsonl"), "other").expect("write");
    let error = RunFolder::reopen(&read).expect_err("it has changed");
    assert!(error.to_string().contains("has changed meanwhile"), "{error}");
    assert_eq!(journal_of(&run), b"other");
}

/// Error of reading a journal whose line (counted from 1) was changed.
fn changed(line: usize, change: &dyn Fn(&mut Value)) -> String {
    let (_dir, run) = run(&entries());
    let text = String::from_utf8(journal_of(&run)).expect("text");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut value: Value = serde_json::from_str(&lines[line - 1]).expect("JSON");
    change(&mut value);
    lines[line - 1] = value.to_string();
    rejected(&run, (lines.join("\n") + "\n").as_bytes())
}

/// Error of reading this journal, which stays as it is.
fn rejected(run: &Path, text: &[u8]) -> String {
    fs::write(run.join("journal.jsonl"), text).expect("write");
    let error = journal::read(run).map(drop).expect_err("damaged").to_string();
    assert_eq!(journal_of(run), text, "it was changed");
    error
}

#[test]
fn damaged_lines_are_named() {
    let (_dir, run) = run(&entries());
    let whole = journal_of(&run);
    assert!(rejected(&run, b"").contains("journal.jsonl: holds nothing"));
    assert!(rejected(&run, b"{\"begin\":").contains("journal.jsonl: holds nothing"));
    assert!(rejected(&run, b"\n").contains("journal.jsonl:1: is empty"));
    assert!(rejected(&run, b"[1]\n").contains("journal.jsonl:1:"));
    assert!(rejected(&run, b"\xff\n").contains("journal.jsonl:1:"));
    let mut lines: Vec<&[u8]> = whole.split_inclusive(|&b| b == b'\n').collect();
    for (damage, part) in [
        (&b"{\"block\":{\"number\":0\n"[..], "journal.jsonl:3:20: is cut short"),
        (b"\n", "journal.jsonl:3: is empty"),
        (b"{\"sweep\":{}}\n", "journal.jsonl:3:8: is damaged: unknown variant `sweep`"),
        (b"\0\0\0\n", "journal.jsonl:3:1: is damaged: no JSON here"),
    ] {
        lines[2] = damage;
        let error = rejected(&run, &lines.concat());
        assert!(error.contains(part), "{error}");
        assert!(error.contains("nothing was changed; take the line from a copy"), "{error}");
    }
    fs::remove_file(run.join("journal.jsonl")).expect("remove");
    let error = journal::read(&run).expect_err("missing").to_string();
    assert!(error.contains("journal.jsonl: cannot be read: No such file"), "{error}");
}

#[test]
fn edited_lines_are_named() {
    type Edit = &'static dyn Fn(&mut Value);
    let table: [(usize, Edit, &str); 20] = [
        (1, &|v| v["begin"]["schema"] = json!(2), "newer harness, schema 2; this one knows 1"),
        (1, &|v| v["begin"] = json!({"schema": 7, "x": 1}), "newer harness, schema 7"),
        (1, &|v| v["begin"]["members"] = json!([]), "the first member is no subject"),
        (1, &|v| v["begin"]["members"][1]["name"] = json!("a"), "two members are called `a`"),
        (1, &|v| v["begin"]["conditions"][0]["rounds"] = json!(0), "rounds or window are 0"),
        (1, &|v| v["begin"]["run"]["layout"]["load"] = json!([]), "without CPUs"),
        (1, &|v| v["begin"]["run"]["preset"]["blocks"] = json!(1e10 as u64), "no plausible"),
        (2, &|v| v["ready"][0]["member"] = json!("z"), "no member `z`"),
        (3, &|v| v["block"]["cells"][0]["member"] = json!("z"), "no member `z`"),
        (3, &|v| v["block"]["condition_order"][0] = json!("z@1"), "no condition `z@1`"),
        (3, &|v| v["block"]["number"] = json!(3), "block 3: the plan has 3, counted from 0"),
        (3, &|v| drop(v["block"].as_object_mut().map(|o| o.remove("cells"))), "missing field"),
        (3, &|v| v["block"]["canary"]["before"] = json!("NaN"), "invalid type: string"),
        (3, &|v| v["block"]["cells"][1]["counts"]["ok"] = json!(9), "`sent` is not the sum"),
        (3, &|v| v["block"]["cells"][1]["counts"]["sent"] = json!(u64::MAX), "no plausible"),
        (3, &|v| v["block"]["cells"][1]["latency"]["histogram"] = json!("AAAA"), "not decode"),
        (3, &|v| v["block"]["cells"][1]["latency"]["n"] = json!(1), "holds 0 values, not 1"),
        (3, &|v| v["block"]["cells"][1]["slices"]["ok"] = json!([1]), "unequal lengths"),
        (4, &|v| v["block"]["number"] = json!(0), "attempt 0 comes where attempt 1 is due"),
        (7, &|v| v["memory"]["number"] = json!(3), "one before it is missing"),
    ];
    for (line, edit, part) in table {
        let error = changed(line, edit);
        let place = format!("journal.jsonl:{line}:");
        assert!(error.contains(&place) && error.contains(part), "line {line}, {part}: {error}");
    }
}

#[test]
fn lines_in_a_wrong_place_are_named() {
    for (extra, part) in [
        (Entry::Begin(Cow::Owned(sample::begin())), "begins a second time"),
        (Entry::Block(Cow::Owned(block(1, 0))), "attempt 0 comes where attempt 1 is due"),
        (Entry::Recheck(Cow::Owned(block(3, 0))), "recheck 4 is due"),
        (Entry::Memory(Cow::Owned(memory(1))), "is there already"),
    ] {
        let mut all = entries();
        all.push(extra);
        let (_dir, run) = run(&all);
        let error = journal::read(&run).expect_err(part).to_string();
        assert!(error.contains("journal.jsonl:8: ") && error.contains(part), "{error}");
    }
    let (_dir, run) = run(&entries()[1..]);
    let error = journal::read(&run).expect_err("no beginning").to_string();
    assert!(error.contains("the first line is not the beginning of a run"), "{error}");
}

/// Writes this as `benchmark.json`; gives the error of reading it.
fn refused(text: &str) -> String {
    let dir = tempfile::tempdir().expect("temporary folder");
    fs::write(dir.path().join("benchmark.json"), text).expect("write");
    read(dir.path()).expect_err("damaged").to_string()
}

#[test]
fn benchmark_json_reads_back() {
    let (_dir, run) = run(&entries());
    let written = record();
    let file = {
        let error = read(&run).expect_err("not written yet").to_string();
        assert!(error.contains("the run has not ended; `harness compare --resume"), "{error}");
        let opened = RunFolder::reopen(&journal::read(&run).expect("reads")).expect("opens");
        opened.write_benchmark(&written).expect("written")
    };
    assert_eq!(read(&run).expect("by folder"), written);
    assert_eq!(read(&file).expect("by file"), written);
}

#[test]
fn a_damaged_benchmark_json_is_refused_with_its_place() {
    let whole = serde_json::to_string_pretty(&record()).expect("JSON");
    let cut = &whole[..whole.len() / 2];
    let huge = whole.replacen("1.5", "1e999", 1);
    let nan = whole.replacen("1.5", "NaN", 1);
    for (text, part) in [
        ("", "benchmark.json:1: is empty"),
        (" \n", "is empty"),
        (cut, "is cut short"),
        ("<html>", "benchmark.json:1:1: is damaged: no JSON here"),
        ("[]", "is damaged"),
        ("{}", "benchmark.json: has no field `schema`"),
        ("{\"schema\": 2}", "newer harness, schema 2; this one knows 1"),
        ("{\"schema\": 0}", "schema 0"),
        ("{\"schema\": 1}", "benchmark.json:1:13: is damaged: missing field `run`"),
        (&huge, "number out of range"),
        (&nan, "no JSON here"),
    ] {
        let error = refused(text);
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(refused(cut).contains("`harness compare --resume FOLDER` write it anew"));
    let error = read(Path::new("/no/such/run")).expect_err("missing").to_string();
    assert!(error.contains("/no/such/run: cannot be read"), "{error}");
}

#[test]
fn a_benchmark_json_that_does_not_hang_together_is_refused_by_name() {
    let level = json!({
        "metric": "p50", "condition": "get@2", "member": "a", "value": 1.0, "low": null,
        "high": null, "unit": "ns", "n": 3, "withheld": null, "marks": []
    });
    let ratio = json!({
        "metric": "p50", "condition": "start", "a": "b", "b": "a", "ratio": 1.0, "low": 0.9,
        "high": 1.1, "blocks": 6, "verdict": "tie", "reason": "", "p_adjusted": null,
        "exploratory": false
    });
    type Edit = &'static dyn Fn(&mut Value);
    let table: [(Edit, Option<&str>); 10] = [
        (&|_| (), None),
        (
            &|v| v["results"]["levels"][0]["member"] = json!("z"),
            Some("level p50 get@2 z: there is no member"),
        ),
        (&|v| v["results"]["levels"][0]["condition"] = json!("z"), Some("no condition `z`")),
        (&|v| v["results"]["levels"][0]["low"] = json!(1), Some("does not hold the value")),
        (&|v| v["results"]["ratios"][0]["b"] = json!("z"), Some("no member `z`")),
        (&|v| v["results"]["ratios"][0]["ratio"] = json!(2), Some("does not hold the value")),
        (&|v| v["results"]["ratios"][0]["verdict"] = json!("win"), Some("variant `win`")),
        (&|v| v["blocks"][1]["cells"][2]["member"] = json!("b"), Some("two such cells")),
        (&|v| v["blocks"][1]["cells"][2]["condition"] = json!("x"), Some("no condition `x`")),
        (&|v| v["rechecks"][0]["number"] = json!(0), Some("recheck 3 is due")),
    ];
    for (edit, part) in table {
        let mut value = serde_json::to_value(record()).expect("JSON");
        value["results"]["levels"] = json!([level]);
        value["results"]["ratios"] = json!([ratio]);
        edit(&mut value);
        let Some(part) = part else {
            let read: Benchmark = serde_json::from_value(value).expect("its shape");
            check::benchmark(&read).expect("hangs together");
            continue;
        };
        let error = refused(&value.to_string());
        assert!(error.contains(part), "{part}: {error}");
        assert!(error.contains("take it from a copy"), "{error}");
    }
}

#[test]
fn no_damage_ends_in_a_panic() {
    let (_dir, run) = run(&entries());
    let whole = journal_of(&run);
    let roll_up = serde_json::to_vec(&record()).expect("JSON");
    for (i, byte) in
        (0..whole.len().min(roll_up.len())).step_by(53).zip(b"0\"}9-e,n\n".iter().cycle())
    {
        let damaged = |text: &[u8]| {
            let mut text = text.to_vec();
            text[i] = *byte;
            text
        };
        fs::write(run.join("journal.jsonl"), damaged(&whole)).expect("write");
        let _ = journal::read(&run);
        fs::write(run.join("benchmark.json"), damaged(&roll_up)).expect("write");
        let _ = read(&run);
    }
}
