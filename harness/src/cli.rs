//! The command line as types. No logic: what a word means is decided in `cmd`.

use crate::report::table::Format;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Compares the same small JSON service written in several languages: builds, verifies and
/// loads each, and says what differs.
#[derive(Debug, Parser)]
#[command(name = "harness", version, max_term_width = 100)]
pub struct Cli {
    /// The repository; found upward from the current folder unless given.
    #[arg(long, global = true, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// A further implementation's folder, outside the repository. May be repeated.
    #[arg(long, global = true, value_name = "DIR")]
    pub impl_dir: Vec<PathBuf>,
    #[command(subcommand)]
    #[expect(missing_docs, reason = "the subcommands say it")]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Toolchains found and missing, the machine, and what on it will make results noisy.
    Doctor(Output),
    /// Implementations, variants and scenarios.
    List(Output),
    /// Build implementations.
    Build(Names),
    /// Prove that implementations keep the contract; shows the wire where one does not.
    Verify(Verify),
    /// The main job: build, verify, measure, and print the comparison.
    Compare(Compare),
    /// The load engine by itself, as one would use wrk.
    Load(Load),
    /// What the load engine costs beside wrk, oha, autocannon and goose, on this machine.
    Calibrate(Calibrate),
    /// What the load engine makes of servers of known behaviour, on this machine.
    Pace(Pace),
    /// How far verdicts can be trusted, by simulated blocks.
    Simulate(Simulate),
    /// Answers canned bytes as cheaply as can be: the ceiling of a generator.
    NullServer(NullServer),
    /// Write data/users.json anew.
    Users(Users),
    /// Starts a service for the harness.
    #[command(hide = true)]
    Launch(Launch),
    /// Ends services when the harness dies.
    #[command(hide = true)]
    Guard,
}

/// How to print.
#[derive(Debug, Args)]
pub struct Output {
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Which implementations, by position.
#[derive(Debug, Args)]
pub struct Names {
    /// Implementations or variants (go, rust:hyper); all when none is named.
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct Verify {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the type says it")]
    pub names: Names,
    /// Seed of the values that are made up.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Also write the table of observed differences into this file, between its markers.
    #[arg(long, value_name = "FILE")]
    pub write_observed: Option<PathBuf>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the type says it")]
    pub output: Output,
}

/// How much to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PresetName {
    /// One tiny block: proves that everything works, measures nothing.
    Smoke,
    /// Six blocks, the fewest that give a 95 % interval.
    Quick,
    /// Twelve blocks.
    Standard,
    /// Up to 24 blocks; ends after 6, 12 or 18 when the intervals are narrow enough.
    Publish,
}

/// How members share a block's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DesignName {
    /// In turns of some 60 ms.
    Slices,
    /// One after the other, in one long window each: to see what slices are good for.
    Sequential,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// Connections; a list gives a condition each (50,300).
    #[arg(long, value_delimiter = ',', required_unless_present = "resume", value_name = "N")]
    pub concurrency: Vec<usize>,
    /// Scenarios; a list gives a condition each.
    #[arg(long, value_delimiter = ',', default_value = "get,post", value_name = "NAME")]
    pub scenario: Vec<String>,
    /// Only these implementations or variants, in this order (go,rust:hyper).
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub only: Vec<String>,
    /// Not these; a bare name stands for all its variants.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub skip: Vec<String>,
    /// How much to measure.
    #[arg(long, value_enum, default_value = "quick")]
    pub preset: PresetName,
    /// How members share a block's time.
    #[arg(long, value_enum, default_value = "slices", value_name = "DESIGN")]
    pub design: DesignName,
    /// Without the twin and the null server: no claim can be checked, and the result says so.
    #[arg(long)]
    pub no_controls: bool,
    /// Without memory runs.
    #[arg(long)]
    pub no_memory: bool,
    /// Measure although the machine is unfit or another harness is at work; the result is
    /// stamped NOISY and claims nothing.
    #[arg(long)]
    pub force: bool,
    /// Every order and every request follows from it; random unless given.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Other numbers than the preset's, to find out which are good: blocks, rounds, window-ms,
    /// settle-ms, warm-up-slices (rounds=120,window-ms=25), and throttle-us, which slows the
    /// generator down. The preset is then called `custom`.
    #[arg(long, value_delimiter = ',', value_name = "KEY=N", hide = true)]
    pub set: Vec<String>,
    /// CPUs: shared, or subject=0-2,load=3; by default the generator gets a quarter.
    #[arg(long, value_name = "LAYOUT")]
    pub cpus: Option<String>,
    /// Run folder, new or empty; by default a new one under data/runs/.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with a run that was interrupted, failed or killed: the run folder. What is
    /// measured stands in its plan.
    #[arg(long, value_name = "DIR", conflicts_with_all = [
        "concurrency", "scenario", "only", "skip", "preset", "design", "set", "no_controls",
        "no_memory", "seed", "cpus", "out",
    ])]
    pub resume: Option<PathBuf>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the type says it")]
    pub output: Output,
}

/// What loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// This project's own.
    Lean,
    /// Goose, closed pace only: to see whether a finding depends on the engine. Built when it
    /// is first asked for, within the repository.
    Goose,
}

/// How the due times of a constant pace lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ArrivalsName {
    /// One every 1/rate.
    Uniform,
    /// At random, as many independent users would come.
    Poisson,
}

/// How `load` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LoadFormat {
    /// For a terminal.
    Text,
    /// For programs.
    Json,
    /// HdrHistogram's percentile distribution of latency, ms.
    Hgrm,
    /// The shape of oha's JSON; of the lean engine only.
    Oha,
}

/// Arguments of `load`.
#[derive(Debug, Args)]
pub struct Load {
    /// http://HOST:PORT/PATH
    pub url: String,
    /// What loads.
    #[arg(long, value_enum, default_value = "lean", value_name = "ENGINE")]
    pub engine: EngineName,
    /// Connections, each with one request under way.
    #[arg(short, long, default_value_t = 50, value_name = "N")]
    pub connections: usize,
    /// Length of the measured window (10s, 500ms, 2m).
    #[arg(short, long, default_value = "10s", value_name = "TIME")]
    pub duration: String,
    /// Constant pace: requests a second over all connections, on a fixed schedule. Without
    /// it each connection sends as soon as its answer is in.
    #[arg(short, long, value_name = "PER-SECOND")]
    pub rate: Option<f64>,
    /// How the due times of a constant pace lie.
    #[arg(long, value_enum, default_value = "uniform", requires = "rate", value_name = "HOW")]
    pub arrivals: ArrivalsName,
    /// Poisson arrivals follow from it; random unless given.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Threads of the generator; a quarter of the CPUs unless given.
    #[arg(short, long, value_name = "N")]
    pub threads: Option<usize>,
    /// Method.
    #[arg(long, default_value = "GET")]
    pub method: String,
    /// Body.
    #[arg(long)]
    pub body: Option<String>,
    /// A header, "Name: value". May be repeated.
    #[arg(long, value_name = "HEADER")]
    pub header: Vec<String>,
    /// A request without an answer after this has failed.
    #[arg(long, default_value = "10s", value_name = "TIME")]
    pub timeout: String,
    /// Any other status is a failure.
    #[arg(long, default_value_t = 200, value_name = "STATUS")]
    pub expect_status: u16,
    /// The same load before the window, not counted.
    #[arg(long, default_value = "1s", value_name = "TIME")]
    pub warm_up: String,
    /// How to print.
    #[arg(long, value_enum, default_value = "text")]
    pub format: LoadFormat,
}

/// Arguments of `calibrate`.
#[derive(Debug, Args)]
pub struct Calibrate {
    /// Six slices of a second instead of twelve of two.
    #[arg(long)]
    pub quick: bool,
    /// The real service, beside the null server; the first in `list` unless given.
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,
    /// Orders follow from it; random unless given.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Also write everything, each slice included, as JSON.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Also write the tables into this document, between its markers.
    #[arg(long, value_name = "FILE")]
    pub write_docs: Option<PathBuf>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the type says it")]
    pub output: Output,
}

/// Arguments of `pace`.
#[derive(Debug, Args)]
pub struct Pace {
    /// Also write the tables into this document, between its markers.
    #[arg(long, value_name = "FILE")]
    pub write_docs: Option<PathBuf>,
}

/// Arguments of `simulate`.
#[derive(Debug, Args)]
pub struct Simulate {
    /// Standard deviation of the blocks' log ratios, %; a list gives rows for each (1,2).
    #[arg(long, value_delimiter = ',', default_value = "1,2,15", value_name = "PERCENT")]
    pub sd: Vec<f64>,
    /// Everything follows from it.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Simulated runs for each row; ten times as many where a run is one comparison.
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    pub runs: usize,
    /// Write the tables into this document, between its markers, instead of printing them.
    #[arg(long, value_name = "FILE")]
    pub write_docs: Option<PathBuf>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the type says it")]
    pub output: Output,
}

/// Arguments of `null-server`.
#[derive(Debug, Args)]
pub struct NullServer {
    /// Port on 127.0.0.1; 0 takes a free one, which is printed.
    #[arg(long, env = "PORT")]
    pub port: u16,
}

/// Arguments of `users`.
#[derive(Debug, Args)]
pub struct Users {
    /// Where to write; data/users.json of the repository unless given.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Arguments of `launch`.
#[derive(Debug, Args)]
pub struct Launch {
    /// The harness's process number.
    #[arg(long)]
    pub parent: u32,
    /// A CPU that the service may use. May be repeated.
    #[arg(long)]
    pub cpu: Vec<usize>,
    /// Program and arguments.
    #[arg(last = true, required = true)]
    pub argv: Vec<String>,
}
