//! A run's folder: `plan.json`, `journal.jsonl` (one line a finished block or memory run,
//! on disk before the next begins) and `benchmark.json`, the roll-up.

use super::schema::{Benchmark, Block, Event, MemoryRun};
use crate::plan::Plan;
use anyhow::{Context, bail};
use serde::Serialize;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// One line of the journal.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Entry<'a> {
    /// The record before anything was measured: the first line.
    Begin(&'a Benchmark),
    /// A finished block.
    Block(&'a Block),
    /// A finished block that asks again for a surprising maximum.
    Recheck(&'a Block),
    /// A finished memory run.
    Memory(&'a MemoryRun),
    /// What happened instead of a memory run.
    Event(&'a Event),
}

/// An open run folder.
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
        let file = path.join("journal.jsonl");
        let journal = File::options()
            .append(true)
            .create_new(true)
            .open(&file)
            .with_context(|| format!("cannot write {}", file.display()))?;
        Ok(Self { path: path.to_owned(), journal })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the folder again: nothing was measured, and the same command must work next
    /// time. Leaves it where somebody has put something into it meanwhile.
    pub fn discard(self) {
        let _ = fs::remove_file(self.path.join("journal.jsonl"));
        let _ = fs::remove_dir(&self.path);
    }

    /// Writes `plan.json`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_plan(&self, plan: &Plan) -> anyhow::Result<()> {
        write_json(&self.path.join("plan.json"), plan)
    }

    /// Appends a line to the journal and has it on disk before returning.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, entry: &Entry<'_>) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        // One write: an interruption leaves a whole line or none.
        self.journal
            .write_all(&line)
            .and_then(|()| self.journal.sync_data())
            .with_context(|| format!("cannot append to {}/journal.jsonl", self.path.display()))
    }

    /// Writes `benchmark.json`; gives its path.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_benchmark(&self, benchmark: &Benchmark) -> anyhow::Result<PathBuf> {
        let file = self.path.join("benchmark.json");
        write_json(&file, benchmark)?;
        Ok(file)
    }
}

/// Beside and then in place, so that a reader never sees half a file.
fn write_json(file: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    let beside = file.with_extension("json.part");
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    File::create(&beside)
        .and_then(|mut part| part.write_all(text.as_bytes()).and_then(|()| part.sync_all()))
        .and_then(|()| fs::rename(&beside, file))
        .with_context(|| format!("cannot write {}", file.display()))
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
