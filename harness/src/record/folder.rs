//! A run's folder: `plan.json`, `journal.jsonl` (one line a finished block or memory run,
//! on disk before the next begins) and `benchmark.json`, the roll-up.

use super::event::Event;
use super::file::{self, RunFileError};
use super::journal::Journal;
use super::schema::{Benchmark, Block, MemoryRun};
use crate::plan::Plan;
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The roll-up.
pub(super) const BENCHMARK: &str = "benchmark.json";
/// What was measured, as it was measured.
pub(super) const JOURNAL: &str = "journal.jsonl";
/// What is to be measured.
const PLAN: &str = "plan.json";

/// One line of the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum Entry<'a> {
    /// The record before anything was measured: the first line.
    Begin(Cow<'a, Benchmark>),
    /// What running services said of themselves, as far as it was not known before.
    Ready(Cow<'a, [Ready]>),
    /// A finished block.
    Block(Cow<'a, Block>),
    /// A finished block that asks again for a surprising maximum.
    Recheck(Cow<'a, Block>),
    /// A finished memory run.
    Memory(Cow<'a, MemoryRun>),
    /// What happened besides, or instead of a memory run.
    Event(Cow<'a, Event>),
}

/// What a running service said of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// Name of the member.
    pub member: String,
    /// Runtime with its version.
    pub runtime: String,
    /// Workers in effect.
    pub workers: u32,
}

/// An open run folder. One process at a time has it open to write.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    journal: File,
}

impl RunFolder {
    /// Makes `path`, or takes it when it is empty.
    ///
    /// # Errors
    /// When it holds something, or cannot be written.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(path)
            .with_context(|| format!("cannot make the output folder {}", path.display()))?;
        let mut entries = fs::read_dir(path)
            .with_context(|| format!("cannot list the output folder {}", path.display()))?;
        if entries.next().is_some() {
            bail!(
                "the output folder {} is not empty; name a new one, results are never overwritten",
                path.display()
            );
        }
        let file = path.join(JOURNAL);
        let journal = File::options()
            .append(true)
            .create_new(true)
            .open(&file)
            .with_context(|| format!("cannot write {}", file.display()))?;
        lock(&journal, &file)?;
        Ok(Self { path: path.to_owned(), journal })
    }

    /// Opens a run that was read, to go on with it. Takes away a last line that was cut.
    ///
    /// # Errors
    /// When the journal cannot be written, or has changed since it was read.
    pub fn reopen(read: &Journal) -> anyhow::Result<Self> {
        let file = read.folder.join(JOURNAL);
        let cannot = || format!("cannot write {}", file.display());
        let mut journal = File::options().append(true).open(&file).with_context(cannot)?;
        lock(&journal, &file)?;
        if journal.metadata().with_context(cannot)?.len() != read.whole_bytes + read.cut_bytes {
            bail!("{} has changed meanwhile: another harness writes to it", file.display());
        }
        if read.cut_bytes > 0 {
            journal.set_len(read.whole_bytes).with_context(cannot)?;
        }
        if read.is_open {
            journal.write_all(b"\n").with_context(cannot)?;
        }
        Ok(Self { path: read.folder.clone(), journal })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the folder again: nothing was measured, and the same command must work next
    /// time. Leaves it where somebody has put something into it meanwhile.
    pub fn discard(self) {
        let _ = fs::remove_file(self.path.join(JOURNAL));
        let _ = fs::remove_file(self.path.join(PLAN));
        let _ = fs::remove_dir(&self.path);
    }

    /// Writes `plan.json`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_plan(&self, plan: &Plan) -> anyhow::Result<()> {
        write_json(&self.path.join(PLAN), plan)
    }

    /// Appends a line to the journal and has it on disk before returning.
    ///
    /// # Errors
    /// When it cannot be written; the journal is then as it was.
    pub fn append(&mut self, entry: &Entry<'_>) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let before = self.journal.metadata().map(|m| m.len());
        // One write: an interruption leaves a whole line or none.
        let written = self.journal.write_all(&line).and_then(|()| self.journal.sync_data());
        if let (Err(_), Ok(before)) = (&written, before) {
            // A full disk leaves a part. Reading it back copes with that, too.
            let _ = self.journal.set_len(before);
        }
        written.with_context(|| format!("cannot append to {}", self.path.join(JOURNAL).display()))
    }

    /// Writes `benchmark.json`; gives its path.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_benchmark(&self, benchmark: &Benchmark) -> anyhow::Result<PathBuf> {
        let file = self.path.join(BENCHMARK);
        write_json(&file, benchmark)?;
        Ok(file)
    }
}

/// Reads the `plan.json` of a run folder.
///
/// # Errors
/// When it cannot be read or is damaged.
pub fn read_plan(folder: &Path) -> Result<Plan, RunFileError> {
    let file = folder.join(PLAN);
    file::parse(&file, 1, &file::bytes(&file)?)
}

/// Two that append to one journal would make one run of two.
fn lock(journal: &File, file: &Path) -> anyhow::Result<()> {
    match journal.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            bail!("{} is in use: the run is still under way", file.display())
        }
        Err(TryLockError::Error(e)) => Err(e).context(format!("cannot lock {}", file.display())),
    }
}

/// Beside and then in place, so that a reader never sees half a file.
fn write_json(file: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    let beside = file.with_extension("json.part");
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    let written = File::create(&beside)
        .and_then(|mut part| part.write_all(text.as_bytes()).and_then(|()| part.sync_all()))
        .and_then(|()| fs::rename(&beside, file));
    if written.is_err() {
        // On a full disk it would only be in the way.
        let _ = fs::remove_file(&beside);
    }
    written.with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_holds_something_is_refused() {
        let dir = tempfile::tempdir().expect("temporary folder");
        let run = dir.path().join("new/run");
        RunFolder::create(&run).expect("a new folder");
        let error = RunFolder::create(&run).expect_err("now it has a journal");
        assert!(error.to_string().contains("is not empty"), "{error}");
        let file = dir.path().join("file");
        fs::write(&file, "x").expect("write");
        assert!(RunFolder::create(&file).is_err());
    }
}
