//! Goose, the second engine: what it is told and what it reports, and how it is run.
//!
//! It is a program of its own, `harness-goose` in `harness/goose`, since what it depends on
//! must not be paid for by whoever does not use it. This room knows the wire between the two
//! and nothing of Goose itself. Its figures are never mixed with the first engine's.

use crate::load::tally::Counts;
use crate::manifest::Argv;
use crate::process::{Guard, Interrupt, command};
use crate::record::Latency;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of the engine, of all its figures.
pub const GOOSE: &str = "goose";
/// Methods that Goose can send.
pub const METHODS: [&str; 6] = ["DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"];
/// Longest that it may take to start, and to end, beyond what it was told.
const GRACE: Duration = Duration::from_secs(30);

/// What to do: one JSON object on its standard input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The service.
    pub address: SocketAddr,
    /// Users; each has at most one request under way, on a connection of its own.
    pub connections: usize,
    /// Threads; null takes as many as it has CPUs.
    pub threads: Option<usize>,
    /// Load that does not count, after all users have started.
    pub warm_up_ms: u64,
    /// The measured window.
    pub window_ms: u64,
    /// No complete answer within it is a failure.
    pub timeout_ms: u64,
    /// What every user sends, again and again.
    pub request: Request,
}

/// A request and its right answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// One of [`METHODS`].
    pub method: String,
    /// Path and query, from the slash on.
    pub target: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// Null for none.
    pub body: Option<String>,
    /// Right status.
    pub status: u16,
    /// Exactly this body is right; with null every body is.
    pub expected_body: Option<String>,
}

/// What it found: one JSON object on its standard output. All figures but
/// `connections_used` and `ended` are of the window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Version of Goose.
    pub version: String,
    /// Connections that carried an answer, warm-up included. More than were asked for: some
    /// were closed and opened anew.
    pub connections_used: u64,
    /// Requests that ended, well or not, warm-up included.
    pub ended: u64,
    /// Real length of the window.
    pub window_ns: u64,
    /// Requests that ended within it, well or not.
    pub ended_in_window: u64,
    /// Right answers that were complete within it.
    pub in_window: u64,
    /// CPU time of its whole process within it; null where the system does not tell.
    pub cpu_ns: Option<u64>,
    /// Outcomes of the requests sent within it. All were awaited.
    pub counts: Counts,
    /// Their statuses other than the expected one.
    pub wrong_status_by_code: BTreeMap<u16, u64>,
    /// Of their right answers, from before the request is handed to the client until its
    /// whole body was read.
    pub latency: Latency,
    /// First wrong answers and errors, escaped and cut.
    pub offenders: Vec<String>,
}

impl Report {
    /// Right answers complete within the window, a second.
    pub fn throughput(&self) -> f64 {
        match self.window_ns {
            0 => 0.0,
            ns => self.in_window as f64 * 1e9 / ns as f64,
        }
    }

    /// CPU time for a request that ended within the window, ns.
    pub fn cpu_ns_per_request(&self) -> Option<f64> {
        let n = self.ended_in_window;
        (n > 0).then(|| Some(self.cpu_ns? as f64 / n as f64))?
    }
}

/// The program, built.
#[derive(Debug, Clone)]
pub struct Goose {
    program: PathBuf,
}

/// How it is built, in the repository. The target folder is named, since cargo could be told
/// of another one, and where to find the program follows from it.
pub fn build_command() -> Argv {
    let words = "cargo build --release --locked -p harness-goose --target-dir target";
    argv(words.split(' ').map(str::to_owned).collect())
}

impl Goose {
    /// The program that [`build_command`] makes in `repository`.
    pub fn built_in(repository: &Path) -> Self {
        Self { program: repository.join("target/release/harness-goose") }
    }

    /// Version of Goose.
    ///
    /// # Errors
    /// When the program cannot be run.
    pub fn version(&self, guard: &Guard, interrupt: &Interrupt) -> anyhow::Result<String> {
        Ok(self.finish(Some("--version"), "", GRACE, guard, interrupt)?.trim().to_owned())
    }

    /// Does what it is told, in a process that runs on the caller's CPUs.
    ///
    /// # Errors
    /// When it fails, with what it says, or is interrupted.
    pub fn run(
        &self,
        order: &Order,
        guard: &Guard,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Report> {
        let told = Duration::from_millis(order.warm_up_ms + order.window_ms + order.timeout_ms);
        let input = serde_json::to_string(order)?;
        let output = self.finish(None, &input, told + GRACE, guard, interrupt)?;
        serde_json::from_str(&output).context("its report cannot be read")
    }

    fn finish(
        &self,
        option: Option<&str>,
        input: &str,
        limit: Duration,
        guard: &Guard,
        interrupt: &Interrupt,
    ) -> anyhow::Result<String> {
        let program = self.program.display().to_string();
        let argv = argv(
            [&program].into_iter().map(String::as_str).chain(option).map(str::to_owned).collect(),
        );
        let finished = command::finish(&argv, input, limit, guard, interrupt)?;
        let (status, said) = (finished.status, finished.errors.quote());
        anyhow::ensure!(status.success(), "`{argv}` failed ({status}); its last lines:{said}");
        Ok(finished.output)
    }
}

fn argv(words: Vec<String>) -> Argv {
    Argv::new(words).unwrap_or_else(|| unreachable!("the first word is a program"))
}
