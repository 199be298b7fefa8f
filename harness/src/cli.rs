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
    /// Toolchains found and missing, and the machine.
    Doctor(Output),
    /// Implementations, variants and scenarios.
    List(Output),
    /// Build implementations.
    Build(Names),
    /// Prove that implementations keep the contract; shows the wire where one does not.
    Verify(Verify),
    /// The main job: build, verify, measure, and print the comparison.
    Compare(Compare),
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
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// Connections; a list gives a condition each (50,300).
    #[arg(long, value_delimiter = ',', required = true, value_name = "N")]
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
    /// Every order and every request follows from it; random unless given.
    #[arg(long)]
    pub seed: Option<u64>,
    /// CPUs: shared, or subject=0-2,load=3; by default the generator gets a quarter.
    #[arg(long, value_name = "LAYOUT")]
    pub cpus: Option<String>,
    /// Run folder, new or empty; by default a new one under data/runs/.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the type says it")]
    pub output: Output,
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
