//! What happened besides the figures.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Something that happened to the machine, a member or the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// Member concerned.
    pub member: Option<String>,
    /// Condition concerned.
    pub condition: Option<String>,
    /// For people.
    pub message: String,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// Its toolchain is missing.
    Skipped,
    /// It does not build.
    BuildFailed,
    /// It does not keep the contract.
    Unverified,
    /// A memory run ended without a record; it is not repeated.
    MemoryFailed,
    /// A run that had ended early went on.
    Resumed,
    /// It was resumed on an unfit machine.
    Forced,
    /// A member did not start.
    StartFailed,
    /// Its connections could not be opened.
    OpenFailed,
    /// It ended by itself.
    Died,
    /// It did not end well when it was told to.
    BadEnd,
    /// It printed what the contract forbids.
    Printed,
    /// Too few connections were left.
    ConnectionsLost,
    /// Its requests had no answer in time, again and again.
    Hanging,
    /// Some requests failed.
    Failures,
    /// Many connections had to be opened anew.
    Reconnects,
    /// Bytes came unasked.
    Surplus,
    /// Its processes changed.
    Processes,
}

impl Event {
    /// About the run as a whole.
    pub fn of_run(kind: EventKind, message: impl Into<String>) -> Self {
        Self { kind, member: None, condition: None, message: message.into() }
    }
}

impl EventKind {
    /// Whether something is missing that could have been measured.
    pub fn leaves_out(self) -> bool {
        matches!(self, Self::BuildFailed | Self::Unverified | Self::MemoryFailed)
    }
}

/// As in `benchmark.json`.
impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
