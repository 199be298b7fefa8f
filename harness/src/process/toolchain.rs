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
    /// The version found.
    pub found: Option<String>,
    /// Why none was found.
    pub problem: Option<String>,
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
            None => {
                let problem = self.problem.as_deref().unwrap_or("no version");
                format!("{problem}; {}", self.hint)
            }
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
        let output = command::run(&r.command, &implementation.dir, LIMIT, guard, interrupt);
        let found = output.map_err(|e| in_words(&e, &r.command.to_string())).and_then(|text| {
            let version = r.pattern.captures(&text).and_then(|c| c.name("version"));
            version.map(|v| v.as_str().to_owned()).ok_or_else(|| {
                let first = text.lines().next().unwrap_or("nothing").trim();
                format!("`{}` says {first:?}, in which no version was found", r.command)
            })
        });
        let (found, problem) = match found {
            Ok(found) => (Some(found), None),
            Err(problem) => (None, Some(problem)),
        };
        let sufficient = found.as_deref().and_then(Version::parse).is_some_and(|v| v >= r.minimum);
        Toolchain {
            command: r.command.to_string(),
            found,
            problem,
            minimum: r.minimum.to_string(),
            sufficient,
            hint: r.hint.clone(),
        }
    };
    implementation.requires.iter().map(ask).collect()
}

/// A program that is not there is the usual case and deserves the plainest words.
fn in_words(error: &anyhow::Error, command: &str) -> String {
    let missing = error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|e| e.kind() == std::io::ErrorKind::NotFound);
    if missing { format!("`{command}` was not found") } else { format!("{error:#}") }
}
