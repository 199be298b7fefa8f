//! A small record for tests: two subjects and their twin, one condition, three blocks of two
//! rounds, two memory runs each.

use super::folder::{Entry, RunFolder};
use super::*;
use crate::host::{facts::Host, layout::Layout};
use crate::load::tally::{Counts, Tally};
use crate::manifest::Kind;
use crate::plan::{Condition, Plan, Preset};
use crate::process::tree::Memory;
use std::borrow::Cow;
use std::path::Path;

const LABELS: [&str; 3] = ["a", "b", "a#twin"];

/// Before anything is measured.
pub fn begin() -> Benchmark {
    let preset = Preset { blocks: 3, rounds: 2, memory_repeats: 2, ..Preset::smoke() };
    let revision = Revision { commit: "c0ffee".to_owned(), dirty: Some(false) };
    let mut members: Vec<Member> = LABELS.map(member).to_vec();
    members[2].control = Some(Control::Twin);
    Benchmark {
        schema: SCHEMA,
        run: Run {
            id: "run".to_owned(),
            started: "2026-01-01T00:00:00Z".to_owned(),
            command: vec!["harness".to_owned(), "compare".to_owned()],
            seed: u64::MAX,
            users_sha256: "ab".repeat(32),
            layout: Layout { subject: vec![0], load: vec![1] },
            memory_load: MemoryLoad {
                connections: 2,
                scenarios: vec!["get".to_owned()],
                requests: 10,
            },
            forced: false,
            stopped_by: String::new(),
            preset: preset.clone(),
        },
        harness: Harness {
            version: "0.1.0".to_owned(),
            source: revision.clone(),
            build: "release".to_owned(),
        },
        repository: revision,
        host: Host {
            os: "an OS".to_owned(),
            kernel: "1.0".to_owned(),
            architecture: "x86_64".to_owned(),
            cpu_model: "a CPU".to_owned(),
            cpus: vec![0, 1],
            memory_bytes: Some(8 << 30),
            memory_available_bytes: Some(4 << 30),
            can_pin: true,
        },
        members,
        conditions: vec![Condition::closed("get", 2, &preset)],
        blocks: Vec::new(),
        rechecks: Vec::new(),
        memory: Vec::new(),
        events: Vec::new(),
        decisions: Vec::new(),
        results: Results::default(),
    }
}

fn member(label: &str) -> Member {
    Member {
        name: label.to_owned(),
        implementation: label.to_owned(),
        variant: "default".to_owned(),
        language: "L".to_owned(),
        stack: "s".to_owned(),
        kind: Kind::Framework,
        versions: Default::default(),
        runtime: None,
        workers: None,
        argv: vec!["./service".to_owned()],
        env: Default::default(),
        binary_sha256: None,
        control: None,
    }
}

/// The plan that [`begin`] is of.
pub fn plan() -> Plan {
    let b = begin();
    Plan {
        seed: b.run.seed,
        preset: b.run.preset,
        members: LABELS.map(str::to_owned).to_vec(),
        subjects: 2,
        ceiling: None,
        conditions: b.conditions,
    }
}

/// A block without latencies.
pub fn block(number: usize, attempt: usize) -> Block {
    let labels = LABELS.map(str::to_owned);
    Block {
        number,
        attempt,
        started: "2026-01-01T00:00:01Z".to_owned(),
        duration_ns: 1_000_000_000,
        start_order: labels.to_vec(),
        condition_order: vec!["get@2".to_owned()],
        time_to_ready_ns: labels.iter().map(|l| (l.clone(), 5_000_000)).collect(),
        cells: LABELS.map(cell).to_vec(),
        weather: Vec::new(),
        canary: Canary { before: Some(1.5), after: None },
        hiccups: Default::default(),
        invalid: Vec::new(),
        events: Vec::new(),
    }
}

fn cell(label: &str) -> Cell {
    let nothing = Latency::pack(&Tally::default());
    Cell {
        condition: "get@2".to_owned(),
        member: label.to_owned(),
        counts: Counts { sent: 11, ok: 10, wrong_status: 1, ..Counts::default() },
        complete: true,
        wrong_status_by_code: [(503, 1)].into(),
        warm_up: WarmUp {
            counts: Counts { sent: 7, ok: 7, ..Counts::default() },
            window_ns: 50_000_000,
            in_window: vec![2, 4],
        },
        server_closes: 0,
        reconnects: 0,
        surplus: 0,
        window_ns: 50_000_000,
        slices: Slices {
            in_window: vec![5, 4],
            ok: vec![5, 5],
            cpu_ns: vec![Some(100), None],
            spill_ns: vec![Some(1), None],
            wall_ns: vec![60_000_000, 61_000_000],
            in_flight_ns: vec![100_000_000, 100_000_000],
            generator_cpu_ns: vec![None, None],
            generator_busiest_permille: vec![None, None],
            generator_run_delay_ns: vec![None, None],
        },
        latency: nothing.clone(),
        max_at_ns: None,
        failed_latency: nothing.clone(),
        connect: nothing,
        offenders: Vec::new(),
    }
}

/// The memory run of that number in [`plan`].
pub fn memory(number: usize) -> MemoryRun {
    let plan = plan().memory()[number];
    let bytes = Some(1 << 20);
    let memory = Memory { pss_bytes: bytes, uss_bytes: bytes, rss_bytes: bytes, processes: 1 };
    MemoryRun {
        number,
        repeat: plan.repeat,
        member: LABELS[plan.member].to_owned(),
        started: "2026-01-01T00:01:00Z".to_owned(),
        idle: memory,
        loaded: memory,
        after: memory,
        peak_bytes: bytes,
        counts: Counts { sent: 10, ok: 10, ..Counts::default() },
    }
}

/// An event about the run.
pub fn event(kind: EventKind) -> Event {
    Event::of_run(kind, "a reason")
}

/// Entries of a run that was killed after its second block and first memory run.
pub fn entries() -> Vec<Entry<'static>> {
    let ready = Ready { member: "a".to_owned(), runtime: "r 1".to_owned(), workers: 1 };
    vec![
        Entry::Begin(Cow::Owned(begin())),
        Entry::Ready(vec![ready].into()),
        Entry::Block(Cow::Owned(block(0, 0))),
        Entry::Block(Cow::Owned(block(1, 0))),
        Entry::Recheck(Cow::Owned(block(3, 0))),
        Entry::Event(Cow::Owned(event(EventKind::MemoryFailed))),
        Entry::Memory(Cow::Owned(memory(1))),
    ]
}

/// Writes a run folder as the harness does.
pub fn write(folder: &Path, entries: &[Entry<'_>]) {
    let mut run = RunFolder::create(folder).expect("a new folder");
    run.write_plan(&plan()).expect("written");
    entries.iter().for_each(|entry| run.append(entry).expect("appended"));
}
