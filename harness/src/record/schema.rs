//! The shape of `benchmark.json`, version 1. Base units: nanoseconds, bytes, requests.
//!
//! Everything that a report shows can be computed from these fields alone.

use super::event::{Event, EventKind};
use super::findings::{Decision, Results};
use super::latency::Latency;
use crate::host::hiccup::Hiccups;
use crate::host::interval::Weather;
use crate::host::judge::Disturbance;
use crate::host::{facts::Host, layout::Layout};
use crate::load::tally::Counts;
use crate::manifest::Kind;
use crate::plan::{Condition, Preset};
use crate::process::tree::Memory;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the schema that this harness writes.
pub const SCHEMA: u32 = 1;

/// The condition under which `time-to-ready` appears among the results.
pub const START_CONDITION: &str = "start";

/// More failures than this, and a cell is no measurement of the service doing its work.
pub const FAILED_SHARE: f64 = 0.01;

/// The whole of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Benchmark {
    /// Version of the schema.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    pub schema: u32,
    /// The run as such.
    pub run: Run,
    /// The harness that measured.
    pub harness: Harness,
    /// The repository from which the services were built.
    pub repository: Revision,
    /// The machine.
    pub host: Host,
    /// Who was measured.
    pub members: Vec<Member>,
    /// What they were loaded with.
    pub conditions: Vec<Condition>,
    /// Fresh processes of every member, in the order in which they ran.
    pub blocks: Vec<Block>,
    /// Further blocks of some conditions, to see whether a surprising maximum repeats; in no
    /// level and no ratio.
    pub rechecks: Vec<Block>,
    /// Memory runs, in the order in which they ran.
    pub memory: Vec<MemoryRun>,
    /// What happened besides.
    pub events: Vec<Event>,
    /// What was done about strange figures.
    pub decisions: Vec<Decision>,
    /// What follows from the rest.
    pub results: Results,
}

/// The run as such.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Name of the run folder when it was made.
    pub id: String,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// The command line.
    pub command: Vec<String>,
    /// How much was to be measured.
    pub preset: Preset,
    /// Every order and request follows from it.
    pub seed: u64,
    /// SHA-256 of the seeded users.
    pub users_sha256: String,
    /// Which CPUs were whose.
    pub layout: Layout,
    /// Connections and requests of the memory runs.
    pub memory_load: MemoryLoad,
    /// The machine was found unfit, and the run was wanted all the same.
    pub forced: bool,
    /// Why it ended: `plan`, `width` (narrow enough), `cap` (as many blocks as it may have),
    /// `interrupt` or `failure`; empty while it runs.
    pub stopped_by: String,
}

/// What memory runs are loaded with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MemoryLoad {
    /// Connections, open until the loaded reading is taken.
    pub connections: usize,
    /// Scenarios, one after the other.
    pub scenarios: Vec<String>,
    /// Requests of all scenarios together.
    pub requests: u64,
}

/// The harness that measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Harness {
    /// Version of the package.
    pub version: String,
    /// What it was built from.
    pub source: Revision,
    /// `release` or `debug`.
    pub build: String,
}

/// A state of the repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Revision {
    /// Commit, or `unknown`.
    pub commit: String,
    /// Whether the files differed from it; unknown is null.
    pub dirty: Option<bool>,
}

/// Who was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Label: `rust`, `rust:hyper`.
    pub name: String,
    /// Folder that it comes from, by name.
    pub implementation: String,
    /// Way to run it.
    pub variant: String,
    /// Language as people write it.
    pub language: String,
    /// What speaks HTTP.
    pub stack: String,
    /// Sort of code.
    pub kind: Kind,
    /// Toolchains found before building, by command.
    pub versions: BTreeMap<String, String>,
    /// Runtime as the running service names it; null when it never ran.
    pub runtime: Option<String>,
    /// Workers as the running service counts them; null when it never ran.
    pub workers: Option<u32>,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Environment from the manifest.
    pub env: BTreeMap<String, String>,
    /// SHA-256 of the program file where the manifest names one by path; else null.
    pub binary_sha256: Option<String>,
    /// What kind of control it is; null for a subject.
    pub control: Option<Control>,
}

/// A member that is there to judge the measurement by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Control {
    /// The first subject a second time: whatever differs between the two is error.
    Twin,
    /// The null server: what the generator reaches against it, it can reach at most.
    Ceiling,
}

/// Fresh processes of every member, loaded in rounds of slices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Counted from 0; its orders follow from it.
    pub number: usize,
    /// Counted from 0; the last attempt at a number is the one that is used.
    pub attempt: usize,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// How long it took with starting and stopping.
    pub duration_ns: u64,
    /// Members in the order of their start.
    pub start_order: Vec<String>,
    /// Conditions in their order.
    pub condition_order: Vec<String>,
    /// From start to the first correct answer, by member.
    pub time_to_ready_ns: BTreeMap<String, u64>,
    /// One a member and condition.
    pub cells: Vec<Cell>,
    /// What the machine did meanwhile, by condition, in their order.
    pub weather: Vec<ConditionWeather>,
    /// Speed of the subjects' first CPU before and after.
    pub canary: Canary,
    /// Lateness of a timer on the generator's CPU.
    pub hiccups: Hiccups,
    /// Why it does not stand; empty: it does.
    pub invalid: Vec<Disturbance>,
    /// What went wrong or was strange.
    pub events: Vec<Event>,
}

/// What the machine did under one condition of a block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ConditionWeather {
    /// Name of the condition.
    pub condition: String,
    /// One a round, in order.
    pub rounds: Vec<Weather>,
    /// What that did to the figures.
    pub disturbances: Vec<Disturbance>,
}

/// Speed of a CPU: iterations of a fixed computation in a millisecond; null where it could not
/// be measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Canary {
    /// Before the members were started.
    pub before: Option<f64>,
    /// After they were ended.
    pub after: Option<f64>,
}

/// One member under one condition in one block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Name of the condition.
    pub condition: String,
    /// Name of the member.
    pub member: String,
    /// Outcomes of all requests of the rounds, settling and draining included:
    /// sent is the sum of the others.
    pub counts: Counts,
    /// The member was there to the end of the last round.
    pub complete: bool,
    /// Statuses other than the expected one; their sum is `counts.wrong_status`.
    pub wrong_status_by_code: BTreeMap<u16, u64>,
    /// What came before the rounds.
    pub warm_up: WarmUp,
    /// Connections closed by the service after a complete answer.
    pub server_closes: u64,
    /// Connections opened anew.
    pub reconnects: u64,
    /// Reads that yielded bytes when no request was under way.
    pub surplus: u64,
    /// Length of every slice's window.
    pub window_ns: u64,
    /// One a round, in order.
    pub slices: Slices,
    /// Latency of right answers to requests sent within the windows.
    pub latency: Latency,
    /// When the longest of them was complete, from the block's beginning, ns.
    pub max_at_ns: Option<u64>,
    /// Latency of all failed requests.
    pub failed_latency: Latency,
    /// Opening the connections.
    pub connect: Latency,
    /// First wrong answers, escaped and cut.
    pub offenders: Vec<String>,
}

/// Slices that count for nothing: a service is slow at first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WarmUp {
    /// Outcomes of their requests.
    pub counts: Counts,
    /// Length of each window.
    pub window_ns: u64,
    /// Right answers complete within the window, one element a slice, in order.
    pub in_window: Vec<u64>,
}

/// What each slice yielded; vectors of one length, one element a round.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Slices {
    /// Right answers complete within the window.
    pub in_window: Vec<u64>,
    /// Right answers, settling and draining included.
    pub ok: Vec<u64>,
    /// CPU time of the member's process group from before sending until it fell quiet.
    pub cpu_ns: Vec<Option<u64>>,
    /// CPU time of the member between the end of its previous slice and this one.
    pub spill_ns: Vec<Option<u64>>,
    /// From before sending until the last answer: over this time `generator_cpu_ns` was spent.
    pub wall_ns: Vec<u64>,
    /// Sum over the connections of the time that a request was under way, from the first
    /// sending to the end of the window.
    pub in_flight_ns: Vec<u64>,
    /// CPU time of the generator's threads.
    pub generator_cpu_ns: Vec<Option<u64>>,
    /// Time until the window ended for which the busiest of them ran, or was ready to and
    /// waited for a CPU, in thousandths.
    pub generator_busiest_permille: Vec<Option<u32>>,
    /// Time that they were ready to run and did not.
    pub generator_run_delay_ns: Vec<Option<u64>>,
}

/// Memory of a fresh process at three moments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MemoryRun {
    /// Counted from 0.
    pub number: usize,
    /// Counted from 0; a repeat has one run of every member, and pairs them.
    pub repeat: usize,
    /// Name of the member.
    pub member: String,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// Some time after it was ready, before any load.
    pub idle: Memory,
    /// Right after the last answer, connections open.
    pub loaded: Memory,
    /// Some time after the connections were closed.
    pub after: Memory,
    /// Highest RSS of each process from right after the idle reading to the loaded one, summed
    /// over processes; null when it is unknown for one of them.
    pub peak_bytes: Option<u64>,
    /// Outcomes of the requests.
    pub counts: Counts,
}

impl Cell {
    /// Whether its figures are those of the service doing its work.
    pub fn is_usable(&self) -> bool {
        let failed = self.counts.failures() as f64 / self.counts.sent.max(1) as f64;
        self.complete && self.counts.ok > 0 && failed <= FAILED_SHARE
    }
}

impl Block {
    /// The cell of `member` under `condition`, where it took part.
    pub fn cell(&self, condition: &str, member: &str) -> Option<&Cell> {
        self.cells.iter().find(|c| c.condition == condition && c.member == member)
    }
}

impl Benchmark {
    /// The cells of `member` under `condition` in the blocks that are used.
    pub fn used_cells(&self, condition: &str, member: &str) -> impl Iterator<Item = &Cell> {
        self.used_blocks().filter_map(move |b| b.cell(condition, member))
    }

    /// Of every number the last attempt: the one that stands, or that nobody repeated.
    pub fn used_blocks(&self) -> impl Iterator<Item = &Block> {
        let last =
            |b: &&Block| !self.blocks.iter().any(|o| o.number == b.number && o.attempt > b.attempt);
        self.blocks.iter().filter(last)
    }

    /// Memory runs that ended in an event instead of a record.
    pub fn failed_memory_runs(&self) -> usize {
        self.events.iter().filter(|e| e.kind == EventKind::MemoryFailed).count()
    }

    /// Whether all that was planned was done.
    pub fn is_finished(&self) -> bool {
        ["plan", "width", "cap"].contains(&self.run.stopped_by.as_str())
    }

    /// Whether something that the finished part of the plan has was not measured: a subject,
    /// a cell or a memory run is missing, or requests failed. Blocks that were repeated count
    /// as well: that a service failed in them is no less true.
    pub fn has_holes(&self) -> bool {
        let expected = self.members.len() * self.conditions.len();
        let whole = |c: &&Cell| {
            let failures = c.counts.failures() + c.warm_up.counts.failures();
            c.complete && c.counts.ok > 0 && failures == 0
        };
        self.blocks.iter().any(|b| b.cells.iter().filter(whole).count() < expected)
            || self.events.iter().any(|e| e.kind.leaves_out())
    }
}
