//! What is read of real processes whose memory is easily counted wrong: shared between
//! processes, held by one with many threads, given back before the load or during it.
//!
//! Margins leave room for what the fixture itself takes, some 14 MiB in a debug build.

use crate::support::{Implementations, fixture, harness, root, text};
use harness::manifest::Argv;
use harness::process::tree::{Peak, memory};
use harness::process::{Guard, Interrupt, Service, ServiceSpec};
use harness::record::{Benchmark, MemoryRun};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

const MIB: u64 = 1024 * 1024;
/// More than the fixture takes by itself.
const SLACK: u64 = 32 * MIB;

/// The fixture with `rule`, ready; its group ends with it.
fn service(rule: &str) -> Service {
    let program = Path::new(env!("CARGO_BIN_EXE_harness"));
    let guard = Guard::start(program).expect("a guard");
    let argv = [fixture().display().to_string(), "--break".to_owned(), rule.to_owned()];
    let spec = ServiceSpec {
        label: rule.to_owned(),
        command: Argv::new(argv.into()).expect("a command"),
        dir: root(),
        env: BTreeMap::new(),
        cpus: Vec::new(),
        users_file: root().join("data/users.json"),
        ready_timeout: Duration::from_secs(10),
        probe: ("/users/1".to_owned(), Vec::new()),
    };
    Service::start(&spec, program, &guard, &Interrupt::default()).expect("starts")
}

#[track_caller]
fn assert_about(bytes: Option<u64>, expected: u64) {
    let bytes = bytes.expect("a figure");
    assert!((expected..expected + SLACK).contains(&bytes), "{bytes} is not about {expected}");
}

#[test]
fn shared_pages_count_once_in_pss_and_for_each_process_in_rss() {
    let service = service("shared-memory");
    let read = memory(service.group());
    assert_eq!(read.processes, 4);
    assert_about(read.pss_bytes, 100 * MIB);
    assert_about(read.rss_bytes, 400 * MIB);
    assert!(read.uss_bytes.expect("USS") < SLACK, "{read:?}");
    assert_about(Peak::start(service.group()).bytes(), 400 * MIB);
}

#[test]
fn threads_are_no_processes() {
    let service = service("many-threads");
    let threads = fs::read_dir(format!("/proc/{}/task", service.group())).expect("threads");
    assert!(threads.count() > 50);
    let read = memory(service.group());
    assert_eq!(read.processes, 1);
    assert_about(read.rss_bytes, 50 * MIB);
    assert_about(read.pss_bytes, 50 * MIB);
    assert_about(Peak::start(service.group()).bytes(), 50 * MIB);
}

#[test]
fn a_peak_from_before_exec_is_not_reported() {
    let service = service("large-ancestor");
    let inherited: u64 = service.ready().runtime.parse().expect("bytes");
    assert!(inherited >= 200 * MIB, "the trap is not there: {inherited}");
    let peak = Peak::start(service.group()).bytes();
    assert!(peak.expect("a peak") < SLACK, "{peak:?}");
}

fn memory_run(benchmark: &Benchmark, member: &str) -> MemoryRun {
    benchmark.memory.iter().find(|run| run.member == member).expect("a memory run").clone()
}

#[test]
fn the_peak_is_that_of_the_load() {
    let setup = Implementations::new()
        .fixture("before", Some("large-before"))
        .fixture("moment", Some("large-moment"));
    let out = setup.path("run");
    let output = harness()
        .args(["compare", "--concurrency", "2", "--scenario", "post", "--preset", "smoke"])
        .args(["--only", "before,moment", "--out"])
        .arg(&out)
        .args(setup.args())
        .output()
        .expect("runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("RSS peak"), "{}", text(&output.stdout));
    let json = fs::read_to_string(out.join("benchmark.json")).expect("benchmark.json");
    let benchmark: Benchmark = serde_json::from_str(&json).expect("its schema");

    let before = memory_run(&benchmark, "before");
    let (peak, loaded) = (before.peak_bytes.expect("a peak"), before.loaded.rss_bytes);
    assert!(peak < SLACK && Some(peak) >= loaded, "{before:?}");
    let moment = memory_run(&benchmark, "moment");
    assert!(moment.loaded.rss_bytes.expect("RSS") < SLACK, "given back: {moment:?}");
    assert_about(moment.peak_bytes, 100 * MIB);
    let levels = &benchmark.results.levels;
    let level = levels.iter().find(|l| l.metric == "memory-peak" && l.member == "moment");
    let level = level.expect("a level");
    assert_eq!((level.value, level.unit.as_str()), (moment.peak_bytes.map(|b| b as f64), "bytes"));
}
