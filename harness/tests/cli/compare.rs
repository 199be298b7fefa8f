//! `harness compare` as a user types it, over fixture services: what it writes, what it
//! refuses, and what it keeps when it is interrupted or killed.
use crate::support::{
    Implementations, assert_keeps_schema, fixture_manifest, harness, processes_with, root, started,
    text,
};
use harness::record::{self, Benchmark, CautionKind, EventKind};
use harness::verdict::Verdict;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

fn read(run: &Path) -> Benchmark {
    record::read(run).expect("a good record")
}

#[test]
fn a_run_writes_everything_and_every_request_is_accounted_for() {
    let setup = Implementations::new().fixture("one", None).fixture("two", None);
    let run = setup.path("run");
    let output = harness()
        .args([
            "compare",
            "--concurrency",
            "3,8",
            "--scenario",
            "get,post,mixed,get-miss,post-invalid",
        ])
        .args(["--preset", "smoke", "--only", "one,two", "--seed", "7", "--out"])
        .arg(&run)
        .args(setup.args())
        .output()
        .expect("runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    for part in ["mixed@8", "NOT A MEASUREMENT", "memory", "req/s ÷ one"] {
        assert!(table.contains(part), "{part} is not in:\n{table}");
    }
    assert!(text(&output.stderr).contains("block 1 of 1"));

    let benchmark = read(&run);
    assert_keeps_schema(&run);
    assert_eq!(benchmark.schema, 1);
    assert_eq!(benchmark.run.seed, 7);
    assert_eq!(benchmark.run.stopped_by, "plan");
    assert_eq!(benchmark.conditions.len(), 10);
    assert_eq!(benchmark.blocks.len(), 1);
    // Two subjects, the twin and the null server.
    let names: Vec<&str> = benchmark.members.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(names, ["one", "two", "one#twin", "null"]);
    assert_eq!(benchmark.blocks[0].cells.len(), 40);
    assert_eq!(benchmark.blocks[0].weather.len(), 10);
    assert_eq!(benchmark.members[1].runtime.as_deref(), Some("fixture"));
    assert_eq!(benchmark.members[1].binary_sha256.as_ref().map(String::len), Some(64));
    for cell in &benchmark.blocks[0].cells {
        let at = format!("{} {}", cell.condition, cell.member);
        assert!(cell.counts.sent > 0 && cell.counts.is_conserved(), "{at}: {:?}", cell.counts);
        assert!(cell.warm_up.counts.sent > 0 && cell.warm_up.counts.is_conserved(), "{at}");
        assert_eq!(cell.counts.failures(), 0, "{at}: {:?}", cell.offenders);
        let rounds = if cell.member == "null" { 1 } else { benchmark.run.preset.rounds };
        assert_eq!(cell.slices.in_window.len(), rounds, "{at}");
        assert!(cell.slices.cpu_ns.iter().all(Option::is_some), "{at}");
        let histogram = cell.latency.unpack().expect(&at);
        assert!(histogram.len() <= cell.counts.ok, "{at}");
        // The null server's one slice of 50 ms may find a busy machine.
        if cell.member != "null" {
            assert!(!histogram.is_empty(), "{at}");
            assert!(cell.latency.max_ns.is_some_and(|max| max >= histogram.min()));
        }
    }
    assert_eq!(benchmark.memory.len(), 2);
    for run in &benchmark.memory {
        assert_eq!(run.counts.ok, benchmark.run.preset.memory_requests);
        for memory in [run.idle, run.loaded, run.after] {
            let (pss, rss) = (memory.pss_bytes.expect("PSS"), memory.rss_bytes.expect("RSS"));
            assert!(500_000 < pss && pss <= rss && rss < 500_000_000, "{memory:?}");
            assert!(memory.uss_bytes.expect("USS") <= pss);
            assert_eq!(memory.processes, 1);
        }
    }
    for metric in
        ["throughput", "p50", "p99", "max", "cpu-per-request", "time-to-ready", "memory-pss-loaded"]
    {
        assert!(benchmark.results.levels.iter().any(|l| l.metric == metric), "{metric}");
    }
    for ratio in &benchmark.results.ratios {
        assert!(ratio.b == "one" && ["two", "one#twin"].contains(&ratio.a.as_str()), "{ratio:?}");
        // One block claims nothing.
        assert!(ratio.low.is_none() && ratio.p_adjusted.is_none(), "{ratio:?}");
        assert!(!matches!(ratio.verdict, Verdict::Higher | Verdict::Lower | Verdict::Tie));
    }
    // The results are a function of the rest, and the journal holds what the roll-up holds.
    let again = harness::results::compute(&benchmark).expect("computes");
    assert!(again == benchmark.results, "results differ when computed again");
    let journal = fs::read_to_string(run.join("journal.jsonl")).expect("journal");
    assert_eq!(
        journal.lines().count(),
        5,
        "beginning, what the services said, block, two memory runs"
    );
    assert!(run.join("plan.json").is_file());
}

#[test]
fn what_cannot_be_measured_is_left_out_and_named() {
    let missing = "name = \"absent\"\nlanguage = \"L\"\nstack = \"s\"\nkind = \"framework\"\n\
        state = \"shared\"\n[[requires]]\ncommand = [\"no-such-tool\"]\n\
        pattern = '(?<version>\\d+)'\nminimum = \"1\"\nhint = \"get it at example.org\"\n\
        [run]\ncommand = [\"x\"]\n";
    let setup = Implementations::new()
        .fixture("good", None)
        .fixture("newline", Some("trailing-newline"))
        .manifest("absent", missing);
    let run = setup.path("run");
    let compare = |only: &str, out: &Path| {
        let mut command = harness();
        command.args(["compare", "--concurrency", "2", "--scenario", "get", "--preset", "smoke"]);
        command.args(["--only", only, "--out"]).arg(out).args(setup.args());
        command.output().expect("runs")
    };

    // Asked for by name, a missing toolchain is an error.
    let output = compare("good,absent", &setup.path("by-name"));
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("get it at example.org"), "{}", text(&output.stderr));
    assert!(!setup.path("by-name").exists(), "a run folder was left behind");

    // A service that breaks the contract is left out; the rest is measured.
    let output = compare("good,newline", &run);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("left out: newline"), "{}", text(&output.stderr));
    let benchmark = read(&run);
    assert_eq!(benchmark.members.len(), 3, "the good one and its controls");
    assert!(benchmark.events.iter().any(|e| e.kind == EventKind::Unverified));
    assert_eq!(benchmark.blocks[0].cells.len(), 3);

    // Not asked for by name, it is skipped with its hint, and that is no failure.
    let others = ["rust", "go", "node", "newline"].join(",");
    let out = setup.path("skip");
    let output = harness()
        .args(["compare", "--concurrency", "2", "--scenario", "get", "--preset", "smoke"])
        .args(["--skip", &others, "--out"])
        .arg(&out)
        .args(setup.args())
        .output()
        .expect("runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("skipped [absent]: `no-such-tool` was not found"));
    assert_eq!(read(&out).members.len(), 3);
}

#[test]
fn a_slow_generator_is_noticed_and_nothing_is_claimed() {
    let setup = Implementations::new().fixture("one", None).fixture("two", None);
    let run = setup.path("run");
    let output = harness()
        .args(["compare", "--concurrency", "4", "--scenario", "get", "--preset", "smoke"])
        // Ten times what an answer takes.
        .args(["--only", "one,two", "--set", "throttle-us=3000", "--out"])
        .arg(&run)
        .args(setup.args())
        .output()
        .expect("runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let results = read(&run).results;
    for member in ["one", "two"] {
        let limited = results.cautions.iter().any(|c| {
            c.kind == CautionKind::GeneratorLimited && c.member.as_deref() == Some(member)
        });
        assert!(limited, "{member}: {:?}", results.cautions);
    }
    for ratio in results.ratios.iter().filter(|r| r.condition == "get@4") {
        assert_eq!(ratio.verdict, Verdict::GeneratorLimited, "{ratio:?}");
    }
    let table = text(&output.stdout);
    assert!(table.contains("GENERATOR-LIMITED [get@4, one]"), "{table}");
    assert!(table.contains("≥ "), "{table}");
}

#[test]
fn without_controls_the_result_says_so() {
    let setup = Implementations::new().fixture("one", None);
    let run = setup.path("run");
    let output = harness()
        .args(["compare", "--concurrency", "2", "--scenario", "get", "--preset", "smoke"])
        .args(["--only", "one", "--no-controls", "--no-memory", "--out"])
        .arg(&run)
        .args(setup.args())
        .output()
        .expect("runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let benchmark = read(&run);
    assert_eq!((benchmark.members.len(), benchmark.memory.len()), (1, 0));
    assert!(text(&output.stdout).contains("NO CONTROLS"), "{}", text(&output.stdout));
}

#[test]
fn bad_input_ends_in_one_clear_message_and_the_designed_exit_code() {
    let setup = Implementations::new().fixture("good", None);
    let full = setup.path("full");
    fs::create_dir(&full).expect("a folder");
    fs::write(full.join("old.json"), "{}").expect("a file");
    let file = setup.path("file");
    fs::write(&file, "").expect("a file");
    let full = full.display().to_string();
    let below_file = file.join("run").display().to_string();
    let out = setup.path("run").display().to_string();
    let table: [(&[&str], &str); 14] = [
        (&["--concurrency", "2", "--only", "godo"], "did you mean `good`?"),
        (&["--concurrency", "2", "--only", "zzz"], "unknown implementation `zzz` (known: "),
        (&["--concurrency", "2", "--scenario", "pots"], "did you mean `post`?"),
        (&["--concurrency", "0"], "at least one connection"),
        (&["--concurrency", "abc"], "invalid value 'abc'"),
        (&["--concurrency", "-1"], "unexpected argument"),
        (&["--concurrency", "100000"], "ulimit -n"),
        (&["--concurrency", "18446744073709551615"], "ulimit -n"),
        (&["--concurrency", "2", "--out", &full], "is not empty"),
        (&["--concurrency", "2", "--out", &below_file], "cannot make the output folder"),
        (&["--concurrency", "2", "--preset", "qiuck"], "quick"),
        (&["--concurrency", "2", "--cpus", "subject=0"], "both subject and load"),
        (&["--concurrency", "2", "--preset", "quick"], "debug build"),
        (&[], "--concurrency"),
    ];
    for (args, part) in table {
        let mut command = harness();
        command.arg("compare").args(args).args(setup.args());
        if !args.contains(&"--only") {
            command.args(["--only", "good"]);
        }
        if !args.contains(&"--preset") {
            command.args(["--preset", "smoke"]);
        }
        if !args.contains(&"--out") {
            command.args(["--out", &out]);
        }
        let output = command.output().expect("runs");
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains(part), "{args:?}: {message}");
        assert!(!message.contains("panicked") && !message.contains("backtrace"), "{message}");
        assert!(output.stdout.is_empty());
        assert!(!Path::new(&out).exists(), "{args:?} left a run folder");
    }
}

#[test]
fn damaged_files_are_named() {
    let setup = Implementations::new().manifest("bad", "name = \"bad\"\nlangauge = \"L\"\n");
    let output = harness().arg("list").args(setup.args()).output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(message.contains("bad/impl.toml:2: unknown field `langauge`"), "{message}");
    assert!(message.contains("did you mean `language`?"), "{message}");

    // A repository whose users file is missing, then cut short.
    let setup = Implementations::new().fixture("good", None);
    let repository = setup.path("repository");
    fs::create_dir_all(repository.join("data")).expect("a folder");
    let data = root().join("data");
    for part in ["scenarios", "contract"] {
        std::os::unix::fs::symlink(data.join(part), repository.join("data").join(part))
            .expect("a link");
    }
    let users = fs::read_to_string(data.join("users.json")).expect("users");
    for cut in [None, Some(&users[..users.len() / 2])] {
        if let Some(cut) = cut {
            fs::write(repository.join("data/users.json"), cut).expect("write");
        }
        let output = harness()
            .args(["verify", "good", "--root"])
            .arg(&repository)
            .args(setup.args())
            .output()
            .expect("runs");
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("users.json"), "{message}");
        assert!(message.contains("cargo run --release -- users"), "{message}");
    }
}

#[test]
fn a_failed_build_shows_its_last_lines() {
    let manifest = fixture_manifest("unbuilt", None)
        + "\n[[build]]\ncommand = [\"sh\", \"-c\", \"echo line one; echo syntax error >&2; exit 4\"]\n";
    let setup = Implementations::new().manifest("unbuilt", &manifest);
    let output = harness().args(["build", "unbuilt"]).args(setup.args()).output().expect("runs");
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{message}");
    assert!(message.contains("exit status: 4") && message.contains("| syntax error"), "{message}");
}

fn assert_gone(needle: &str) {
    let until = Instant::now() + Duration::from_secs(5);
    while !processes_with(needle).is_empty() {
        assert!(Instant::now() < until, "left behind: {:?}", processes_with(needle));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn nothing_is_left_behind_when_the_harness_is_killed() {
    // The service has a child of its own, which no parent-death signal of ours reaches.
    let setup = Implementations::new().fixture("family", Some("spawn-child"));
    let is_running = |needle: &str| !processes_with(needle).is_empty();
    for i in 0..8 {
        let run = setup.path(&format!("run{i}"));
        let mut child = started(&setup, "family", &run, &[], "measuring");
        let until = Instant::now() + Duration::from_secs(10);
        while !(is_running("spawn-child") && is_running("--break sleep")) {
            assert!(Instant::now() < until, "the service was never seen");
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_millis(i * 60));
        child.kill().expect("SIGKILL");
        child.wait().expect("ends");
        assert_gone("spawn-child");
        assert_gone("--break sleep");
    }
}

#[test]
fn an_interrupted_run_keeps_and_prints_what_it_has() {
    let setup = Implementations::new().fixture("patient", None);
    let run = setup.path("run");
    let child = started(&setup, "patient", &run, &[], "block 1 of 1");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("SIGINT");
    let output = child.wait_with_output().expect("ends");
    let table = text(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{table}");
    assert!(table.contains("get@4") && table.contains("interrupted: 1 of 1 blocks"), "{table}");
    let benchmark = read(&run);
    assert_eq!(benchmark.run.stopped_by, "interrupt");
    assert_eq!(benchmark.blocks.len(), 1);
    assert_gone(&setup.path("").display().to_string());
}
