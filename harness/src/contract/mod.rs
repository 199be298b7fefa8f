//! Proves that a running service keeps the contract: the cases of `data/contract/` and the
//! checks that take more than one request. It knows an address and what the store holds;
//! it starts no process, builds nothing and prints nothing.
//!
//! Read `case` (TOML to requests), `wire` and `answer` (one connection), `pattern` (expected
//! bodies), `judge` (rules of every answer), `sequences`, `runner`, then `observe`.

mod answer;
mod case;
mod judge;
mod observe;
mod pattern;
mod runner;
mod sequences;
mod trace;
mod wire;

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

pub use case::{Contract, load};
pub use observe::observed_table;
pub use runner::run;

use crate::users::User;

/// The service to check.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// Where it listens.
    pub address: SocketAddr,
    /// Whether what one connection stores is seen over every other: false where each worker
    /// process has a store of its own.
    pub shared_state: bool,
    /// What it was seeded with, in any order.
    pub users: &'a [User],
    /// Chooses the sample of ids and the random names.
    pub seed: u64,
    /// Ends the run early once set.
    pub stop: Option<&'a AtomicBool>,
}

/// What a run found. `total` counts cases, sequences and rules of level `must` that apply;
/// `passed` and `failed` are fewer where the run had to stop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Checks of level `must` that apply to this service.
    pub total: usize,
    /// Of these, kept.
    pub passed: usize,
    /// Of these, broken.
    pub failed: usize,
    /// One for each broken check, rules that every answer must keep first.
    pub failures: Vec<Failure>,
    /// What the service does where the contract is silent.
    pub observed: Vec<Observation>,
    /// Why the run ended before its last check.
    pub stopped: Option<String>,
}

impl Report {
    /// Whether every check was made and kept.
    pub fn is_kept(&self) -> bool {
        self.passed == self.total && self.stopped.is_none()
    }
}

impl Report {
    /// Adds a check that was made elsewhere; `broken` says what differed.
    pub fn add(&mut self, case: &str, why: &str, broken: Option<String>) {
        self.total += 1;
        let Some(what) = broken else {
            self.passed += 1;
            return;
        };
        self.failed += 1;
        self.failures.push(Failure {
            case: case.to_owned(),
            why: why.to_owned(),
            what,
            trace: Vec::new(),
        });
    }
}

/// One check that a service does not keep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Name of the case, sequence or rule.
    pub case: String,
    /// Why it matters.
    pub why: String,
    /// What differed, in one sentence.
    pub what: String,
    /// The exchange: `> ` request, `< ` answer, escaped and cut.
    pub trace: Vec<String>,
}

/// One outcome where the contract is silent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Observation {
    /// Name of the case.
    pub case: String,
    /// Why it is of interest.
    pub why: String,
    /// Short and the same for services that behave alike, such as `200, user 500`.
    pub outcome: String,
}
