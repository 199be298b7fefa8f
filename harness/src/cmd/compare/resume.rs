//! Going on with a run that was interrupted, failed or killed. Only what is the same as before
//! goes on: blocks of two harnesses, services or machines make no run.

use super::ask::{self, Ask};
use super::record::{self, sha256};
use crate::cmd::project::Project;
use crate::cmd::{Unsuccessful, Usage, plural, say};
use crate::experiment;
use crate::plan::Plan;
use crate::record::folder::{Entry, read_plan};
use crate::record::{
    self as kept, Benchmark, Event, EventKind, Journal, Member, Revision, RunFolder,
};
use crate::selection::{self, Rows};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::path::Path;

/// What may differ: what the harness finds out while it measures, and what moves by itself.
const MAY_DIFFER: [&str; 3] = ["runtime", "workers", "memory_available_bytes"];
/// The kernel keeps a little more or less to itself from one start of a machine to the next.
const SAME_MEMORY: f64 = 0.01;

/// A run that was begun.
pub struct Past {
    journal: Journal,
    plan: Plan,
}

impl Past {
    /// Reads what is there. Changes nothing.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let journal = kept::journal::read(folder)?;
        if journal.cut_bytes > 0 {
            say(&format!(
                "the journal ends in a line that was never finished ({}); it is left out",
                plural(journal.cut_bytes as usize, "byte")
            ));
        }
        Ok(Self { journal, plan: read_plan(folder)? })
    }

    /// The whole record, when there is nothing to go on with.
    pub fn finished(&self) -> Option<Benchmark> {
        // One that is damaged is written anew: all that it holds is in the journal.
        let benchmark = kept::read(&self.journal.folder).ok()?;
        let then = &self.journal.benchmark;
        let same = benchmark.run.started == then.run.started
            && (benchmark.blocks.len(), benchmark.memory.len())
                == (then.blocks.len(), then.memory.len());
        if !(same && benchmark.is_finished()) {
            return None;
        }
        say(&format!("{}: nothing is left to measure", self.journal.folder.display()));
        Some(benchmark)
    }

    /// What a command line would have to ask for to begin this run.
    pub fn ask(&self, project: &Project, force: bool) -> anyhow::Result<Ask> {
        let then = &self.journal.benchmark;
        let subjects: Vec<String> =
            then.members.iter().filter(|m| m.control.is_none()).map(|m| m.name.clone()).collect();
        let implementations = project.implementations()?;
        let chosen = selection::choose(&implementations, &subjects, &[], Rows::Standard);
        ask::ensure_descriptors(&then.conditions, then.members.len())?;
        Ok(Ask {
            chosen: chosen.map_err(|e| self.refusal(&[e]))?,
            scenarios: ask::scenarios(project, &then.run.memory_load.scenarios)?,
            conditions: then.conditions.clone(),
            preset: then.run.preset.clone(),
            seed: then.run.seed,
            layout: then.run.layout.clone(),
            users: project.users()?,
            users_sha256: sha256(&project.users_file())?,
            out: self.journal.folder.clone(),
            controls: then.members.len() > subjects.len(),
            force,
        })
    }

    /// Refuses when harness, repository, machine or seeded users are not those of the run.
    pub fn unchanged(self, ask: &Ask, repository: Revision) -> anyhow::Result<Self> {
        let then = &self.journal.benchmark;
        let mut now = record::blank(ask, Vec::new(), &[], repository);
        keep_about(&mut now.host.memory_bytes, then.host.memory_bytes);
        // Where nobody can tell, nothing is known to have changed.
        let dirty = now.repository.dirty;
        now.repository.dirty = then.repository.dirty.map(|then| dirty.unwrap_or(then));
        let changes = [
            changes("harness", &then.harness, &now.harness),
            changes("repository", &then.repository, &now.repository),
            changes("host", &then.host, &now.host),
            changes("users", &[&then.run.users_sha256], &[&now.run.users_sha256]),
        ]
        .concat();
        if changes.is_empty() { Ok(self) } else { Err(self.refusal(&changes).into()) }
    }

    /// The folder to write to and the record to go on with, when the members are those of the
    /// run, too. `forced`: on a machine that is unfit now.
    pub fn open(
        self,
        plan: &Plan,
        members: &[Member],
        missing: &[Event],
        forced: bool,
    ) -> anyhow::Result<(RunFolder, Benchmark)> {
        if let Some(event) = missing.first() {
            let who = event.member.as_deref().unwrap_or_default();
            let message = format!("the run cannot be resumed without {who}: {}", event.message);
            return Err(Unsuccessful(message).into());
        }
        let then = &self.journal.benchmark;
        let mut found = Vec::new();
        for (then, now) in then.members.iter().zip(members) {
            found.extend(changes(&then.name, then, now));
        }
        found.extend(changes("plan", &self.plan, plan));
        if !found.is_empty() {
            return Err(self.refusal(&found).into());
        }
        let mut folder = RunFolder::reopen(&self.journal)?;
        let mut benchmark = self.journal.benchmark;
        let message = format!(
            "at {}, after {} and {}",
            experiment::timestamp(),
            plural(benchmark.blocks.len(), "block"),
            plural(benchmark.memory.len(), "memory run")
        );
        let mut events = vec![Event::of_run(EventKind::Resumed, message)];
        if forced && !benchmark.run.forced {
            events.push(Event::of_run(EventKind::Forced, "resumed although the machine was unfit"));
            benchmark.run.forced = true;
        }
        for event in events {
            folder.append(&Entry::Event(Cow::Borrowed(&event)))?;
            benchmark.events.push(event);
        }
        Ok((folder, benchmark))
    }

    fn refusal(&self, changes: &[String]) -> Usage {
        Usage(format!(
            "{} cannot be resumed: what it measures is no longer the same\n  {}\nput that back, or \
             start a new run; nothing was changed",
            self.journal.folder.display(),
            changes.join("\n  ")
        ))
    }
}

/// Takes `then` for `now` where the two hardly differ.
fn keep_about(now: &mut Option<u64>, then: Option<u64>) {
    if let (Some(a), Some(b)) = (*now, then)
        && a.abs_diff(b) as f64 <= SAME_MEMORY * b as f64
    {
        *now = then;
    }
}

/// Every field, or element, that is not what it was: `what.field: from … to …`.
fn changes<T: Serialize>(what: &str, then: &T, now: &T) -> Vec<String> {
    let value = |v: &T| serde_json::to_value(v).unwrap_or_default();
    let mut found = Vec::new();
    differ(what, &value(then), &value(now), &mut found);
    found
}

fn differ(what: &str, then: &Value, now: &Value, found: &mut Vec<String>) {
    let (Value::Object(a), Value::Object(b)) = (then, now) else {
        if then != now {
            found.push(format!("{what}: from {then} to {now}"));
        }
        return;
    };
    let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
    for name in names.filter(|name| !MAY_DIFFER.contains(&name.as_str())) {
        let field = |of: &serde_json::Map<String, Value>| of.get(name).cloned().unwrap_or_default();
        differ(&format!("{what}.{name}"), &field(a), &field(b), found);
    }
}
