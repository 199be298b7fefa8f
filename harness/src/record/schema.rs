//! The shape of `benchmark.json`, version 1. Base units: nanoseconds, bytes, requests.
//!
//! Everything that a report shows can be computed from these fields alone.

use crate::host::{facts::Host, layout::Layout};
use crate::load::tally::{Counts, Tally};
use crate::manifest::Kind;
use crate::plan::{Condition, Preset};
use crate::process::tree::Memory;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the schema that this harness writes.
pub const SCHEMA: u32 = 1;

/// More failures than this, and a cell is no measurement of the service doing its work.
pub const FAILED_SHARE: f64 = 0.01;

/// The whole of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Benchmark {
    /// [`SCHEMA`] of the harness that wrote it.
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
    /// Memory runs, in the order in which they ran.
    pub memory: Vec<MemoryRun>,
    /// What happened besides.
    pub events: Vec<Event>,
    /// What follows from the rest.
    pub results: Results,
}

/// The run as such.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Why it ended: `plan`, `interrupt` or `failure`.
    pub stopped_by: String,
}

/// What memory runs are loaded with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
#[serde(deny_unknown_fields)]
pub struct Revision {
    /// Commit, or `unknown`.
    pub commit: String,
    /// Whether the files differed from it; unknown is null.
    pub dirty: Option<bool>,
}

/// Who was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[serde(rename_all = "kebab-case")]
pub enum Control {
    /// The first subject a second time: whatever differs between the two is error.
    Twin,
    /// The null server: what the generator reaches against it, it can reach at most.
    Ceiling,
}

/// Fresh processes of every member, loaded in rounds of slices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Counted from 0.
    pub number: usize,
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
    /// What went wrong or was strange.
    pub events: Vec<Event>,
}

/// One member under one condition in one block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Outcomes of the warm-up.
    pub warm_up: Counts,
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
    /// Latency of all failed requests.
    pub failed_latency: Latency,
    /// Opening the connections.
    pub connect: Latency,
    /// First wrong answers, escaped and cut.
    pub offenders: Vec<String>,
}

/// What each slice yielded; vectors of one length, one element a round.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// CPU time of the generator's threads.
    pub generator_cpu_ns: Vec<Option<u64>>,
    /// CPU time of the busiest of them, in thousandths of `wall_ns`.
    pub generator_busiest_permille: Vec<Option<u32>>,
    /// Time that they were ready to run and did not.
    pub generator_run_delay_ns: Vec<Option<u64>>,
}

/// A histogram with what it cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// HdrHistogram, V2 compressed, base64; nanoseconds.
    pub histogram: String,
    /// Values in it.
    pub n: u64,
    /// Values beyond its range.
    pub out_of_range: u64,
    /// Exact longest, ns; null when there is none.
    pub max_ns: Option<u64>,
}

/// Memory of a fresh process at three moments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Outcomes of the requests.
    pub counts: Counts,
}

/// Something that happened to the machine, a member or the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Short name of what happened: `start-failed`, `died`, `bad-end`, `skipped`…
    pub kind: String,
    /// Member concerned.
    pub member: Option<String>,
    /// Condition concerned.
    pub condition: Option<String>,
    /// For people.
    pub message: String,
}

/// What follows from blocks and memory runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// One a metric, condition and member.
    pub levels: Vec<Level>,
    /// One a metric, condition and pair.
    pub ratios: Vec<Ratio>,
}

/// A member's estimate over blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// `throughput`, `p50`, `cpu-per-request`…
    pub metric: String,
    /// Name of the condition, or `memory`.
    pub condition: String,
    /// Name of the member.
    pub member: String,
    /// Median over blocks (for `max` the largest); null when it is withheld.
    pub value: Option<f64>,
    /// Lower end of the 95 % interval; null below six blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Unit of all three.
    pub unit: String,
    /// Blocks (or memory runs) behind it.
    pub n: usize,
    /// Why there is no value.
    pub withheld: Option<String>,
}

/// The paired comparison of two members: a / b.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratio {
    /// As in [`Level`].
    pub metric: String,
    /// As in [`Level`].
    pub condition: String,
    /// Numerator.
    pub a: String,
    /// Denominator.
    pub b: String,
    /// exp of the median of the blocks' log ratios.
    pub ratio: f64,
    /// Lower end of the 95 % interval; null below six blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Blocks behind it.
    pub blocks: usize,
}

impl Cell {
    /// Whether its figures are those of the service doing its work.
    pub fn is_usable(&self) -> bool {
        let failed = self.counts.failures() as f64 / self.counts.sent.max(1) as f64;
        self.complete && self.counts.ok > 0 && failed <= FAILED_SHARE
    }
}

impl Benchmark {
    /// Whether something that the finished part of the plan has was not measured: a cell or a
    /// memory run is missing, or requests failed.
    pub fn has_holes(&self) -> bool {
        let expected = self.members.len() * self.conditions.len();
        let whole = |c: &&Cell| c.complete && c.counts.ok > 0 && c.counts.failures() == 0;
        self.blocks.iter().any(|b| b.cells.iter().filter(whole).count() < expected)
            || self.events.iter().any(|e| e.kind == "memory-failed")
    }
}

impl Latency {
    /// Packs the latency of right answers.
    pub fn pack(tally: &Tally) -> Self {
        let some = !tally.latency.is_empty() || tally.out_of_range > 0;
        Self {
            out_of_range: tally.out_of_range,
            max_ns: some.then_some(tally.max_ns),
            ..Self::of(&tally.latency)
        }
    }

    /// Packs a histogram; its longest is known to three digits only.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(histogram, &mut bytes)
            .unwrap_or_else(|e| unreachable!("writing to memory cannot fail: {e}"));
        Self {
            histogram: BASE64_STANDARD.encode(bytes),
            n: histogram.len(),
            out_of_range: 0,
            max_ns: (!histogram.is_empty()).then(|| histogram.max()),
        }
    }

    /// Unpacks the histogram.
    ///
    /// # Errors
    /// When it is damaged or holds another number of values than it says.
    pub fn unpack(&self) -> Result<Histogram<u64>, String> {
        let bytes = BASE64_STANDARD
            .decode(&self.histogram)
            .map_err(|e| format!("the histogram is no base64: {e}"))?;
        let histogram: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|e| format!("the histogram does not decode: {e}"))?;
        if histogram.len() != self.n {
            return Err(format!("the histogram holds {} values, not {}", histogram.len(), self.n));
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::connection::Flight;
    use std::time::{Duration, Instant};

    #[test]
    fn a_histogram_survives_packing_and_damage_is_found() {
        let mut tally = Tally::default();
        let sent = Instant::now();
        let flight = Flight::unpaced(sent);
        for i in 1..=10_000 {
            tally.succeed(&flight, sent + Duration::from_micros(i));
        }
        let packed = Latency::pack(&tally);
        let unpacked = packed.unpack().expect("unpacks");
        assert_eq!(unpacked.len(), 10_000);
        assert_eq!(unpacked.value_at_quantile(0.5), tally.latency.value_at_quantile(0.5));
        assert_eq!(packed.max_ns, Some(10_000_000));
        let other_n = Latency { n: 9_999, ..packed.clone() };
        assert!(other_n.unpack().is_err());
        let cut = Latency { histogram: packed.histogram[..40].to_owned(), ..packed };
        assert!(cut.unpack().is_err());
        assert_eq!(Latency::pack(&Tally::default()).max_ns, None);
    }
}
