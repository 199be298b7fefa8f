//! Asks for the toolchains that a manifest requires.

use super::command;
use super::guard::Guard;
use super::interrupt::Interrupt;
use crate::manifest::{Implementation, Version};
use serde::Serialize;
use std::time::Duration;

/// Longest that a version question may take; some launchers unpack themselves first.
const LIMIT: Duration = Duration::from_secs(20);

/// A required toolchain and what was found of it.
#[derive(Debug, Clone, Serialize)]
pub struct Toolchain {
    /// The question, such as `go version`.
    pub command: String,
    /// The version found; `None` when the command or the version in its output is missing.
    pub found: Option<String>,
    /// Smallest version that will do.
    pub minimum: String,
    /// Whether it will do.
    pub sufficient: bool,
    /// What to do when it will not.
    pub hint: String,
}

impl Toolchain {
    /// One sentence for a skipped row.
    pub fn complaint(&self) -> String {
        match &self.found {
            Some(found) => format!(
                "`{}` found {found}, {} or newer is needed; {}",
                self.command, self.minimum, self.hint
            ),
            None => format!("`{}` was not found; {}", self.command, self.hint),
        }
    }
}

/// Asks for everything that `implementation` requires.
pub fn check(
    implementation: &Implementation,
    guard: &Guard,
    interrupt: &Interrupt,
) -> Vec<Toolchain> {
    let ask = |r: &crate::manifest::Requirement| {
        let output = command::run(&r.command, &implementation.dir, LIMIT, guard, interrupt).ok();
        let found = output
            .and_then(|text| Some(r.pattern.captures(&text)?.name("version")?.as_str().to_owned()));
        let sufficient = found.as_deref().and_then(Version::parse).is_some_and(|v| v >= r.minimum);
        Toolchain {
            command: r.command.to_string(),
            found,
            minimum: r.minimum.to_string(),
            sufficient,
            hint: r.hint.clone(),
        }
    };
    implementation.requires.iter().map(ask).collect()
}
