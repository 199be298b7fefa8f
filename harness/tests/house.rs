//! The rules of the house, as `CONTRIBUTING.md` states them: which room may use which, who
//! may spawn and write, and that no room names a language.

use regex::Regex;
use std::fs;
use std::path::{Path, PathBuf};

/// Every room and the rooms below it that it may use. `cmd` may use all.
const ROOMS: [(&str, &[&str]); 19] = [
    ("toml_file", &[]),
    ("users", &[]),
    ("stats", &[]),
    ("verdict", &["stats"]),
    ("simulate", &["stats", "verdict"]),
    ("host", &[]),
    ("plan", &[]),
    ("manifest", &["toml_file"]),
    ("selection", &["manifest", "toml_file"]),
    ("scenario", &["toml_file", "users"]),
    ("contract", &["toml_file", "users"]),
    ("process", &["host", "manifest"]),
    ("load", &["host", "scenario"]),
    ("record", &["host", "load", "manifest", "plan", "process", "verdict"]),
    ("experiment", &["host", "load", "plan", "process", "record", "scenario"]),
    ("results", &["host", "load", "plan", "record", "stats", "verdict"]),
    ("goose", &["load", "manifest", "process", "record"]),
    ("calibrate", &["goose", "host", "load", "manifest", "process", "scenario", "stats"]),
    ("report", &["goose", "host", "load", "plan", "record", "stats", "verdict"]),
];

/// A source file: its room, its path, and its code without comments and unit tests.
struct Source {
    room: String,
    path: PathBuf,
    code: String,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files
        .into_iter()
        .filter(|path| !path.to_string_lossy().contains("tests.rs"))
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a source file");
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let code = code
                .lines()
                .map(|l| l.trim_start())
                .filter(|l| !l.starts_with("//"))
                .collect::<Vec<_>>()
                .join("\n");
            let relative = path.strip_prefix(&root).expect("below src");
            let room = relative.components().next().expect("a component").as_os_str();
            let room = room.to_string_lossy().trim_end_matches(".rs").to_owned();
            Source { room, path, code }
        })
        .collect()
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a folder").map(|e| e.expect("an entry")) {
        if entry.path().is_dir() {
            collect(&entry.path(), files);
        } else if entry.path().extension().is_some_and(|e| e == "rs") {
            files.push(entry.path());
        }
    }
}

/// Every place where `pattern` stands outside `rooms`.
fn strays(pattern: &str, rooms: &[&str]) -> Vec<String> {
    let pattern = Regex::new(pattern).expect("a pattern");
    sources()
        .iter()
        .filter(|s| !rooms.contains(&s.room.as_str()))
        .flat_map(|s| {
            pattern.find_iter(&s.code).map(|m| format!("{}: {}", s.path.display(), m.as_str()))
        })
        .collect()
}

const NOTHING: [String; 0] = [];

#[test]
fn arrows_run_downward_only() {
    let uses = Regex::new(r"\bcrate::(\w+)").expect("a pattern");
    let free = ["cmd", "cli", "main", "lib"];
    let mut seen = 0;
    for source in sources().iter().filter(|s| !free.contains(&s.room.as_str())) {
        let below = ROOMS.iter().find(|(room, _)| *room == source.room);
        let (_, below) = below.unwrap_or_else(|| panic!("{} has no rule", source.room));
        for used in uses.captures_iter(&source.code).map(|c| c[1].to_owned()) {
            seen += 1;
            assert!(
                used == source.room || below.contains(&used.as_str()),
                "{} may not use {used}",
                source.path.display()
            );
        }
    }
    assert!(seen > 30, "the pattern found only {seen} uses");
}

#[test]
fn only_process_spawns() {
    assert_eq!(strays(r"\bCommand::new", &["process"]), NOTHING);
    assert!(!strays(r"\bCommand::new", &[]).is_empty());
}

#[test]
fn only_record_writes_files_of_a_run() {
    // `cmd` writes documents and the seeded users, `host` its lock.
    let writes = r"fs::write|File::create|File::options|OpenOptions::new|create_dir";
    assert_eq!(strays(writes, &["record", "cmd", "host"]), NOTHING);
    assert_eq!(
        strays(r"fs::write|File::create|create_dir", &["record", "cmd"]),
        NOTHING,
        "the lock is all that `host` opens to write"
    );
    assert_eq!(strays(r#""(journal\.jsonl|benchmark\.json|plan\.json)"#, &["record"]), NOTHING);
}

#[test]
fn pure_rooms_do_no_input_or_output() {
    let others: Vec<String> = sources()
        .into_iter()
        .map(|s| s.room)
        .filter(|r| {
            !["stats", "plan", "results", "verdict", "simulate", "report"].contains(&r.as_str())
        })
        .collect();
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    assert_eq!(strays(r"std::(fs|io|net|process|env)\b|Instant::now", &others), NOTHING);
}

#[test]
fn no_room_names_a_language() {
    let names = r#"(?i)"[^"]*\b(rust|go|golang|node|nodejs|python|java|bun|deno|axum|hyper|uvicorn)\b[^"]*""#;
    assert_eq!(strays(names, &[]), NOTHING);
}

#[test]
fn files_stay_short() {
    for path in sources().iter().map(|s| &s.path) {
        let lines = fs::read_to_string(path).expect("a source file").lines().count();
        assert!(lines <= 500, "{}: {lines} lines", path.display());
    }
}
