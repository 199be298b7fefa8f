//! Reads `journal.jsonl` back into the record that it is the making of.

use super::file::{self, RunFileError};
use super::folder::{BENCHMARK, Entry, JOURNAL};
use super::read::Version;
use super::{Benchmark, EventKind, Member, Ready, check};
use serde::Deserialize;
use std::path::{Path, PathBuf};

const REPAIR: &str = "nothing was changed; take the line from a copy, or remove it and every \
                      line after it (in a copy of the folder) to measure those again";

/// A journal as it was found.
#[derive(Debug)]
pub struct Journal {
    /// The run's folder.
    pub folder: PathBuf,
    /// The record as far as it came; without results.
    pub benchmark: Benchmark,
    /// Bytes of the lines that are in the record.
    pub(super) whole_bytes: u64,
    /// Whether the last of them lacks its end of line.
    pub(super) is_open: bool,
    /// Bytes of a last line that was never written to its end: a crash or a full disk.
    pub cut_bytes: u64,
}

/// Reads the journal in `folder`. Changes nothing.
///
/// # Errors
/// When it is not there, empty, from a newer harness, or damaged; names the line.
pub fn read(folder: &Path) -> Result<Journal, RunFileError> {
    let file = folder.join(JOURNAL);
    let bytes = file::bytes(&file)?;
    let mut read: Option<Benchmark> = None;
    let (mut whole_bytes, mut is_open) = (0, false);
    for (i, text) in bytes.split_inclusive(|&b| b == b'\n').enumerate() {
        let line = i + 1;
        let ended = text.ends_with(b"\n");
        let content = text.strip_suffix(b"\n").unwrap_or(text);
        let entry = match file::parse::<Entry<'_>>(&file, line, content) {
            Ok(entry) => entry,
            // Lines are written whole, so one without end that does not parse was cut.
            Err(_) if !ended => break,
            Err(e) if line == 1 => return Err(newer(&file, content).unwrap_or(e).hint(REPAIR)),
            Err(e) => return Err(e.hint(REPAIR)),
        };
        let bad = |e: String| RunFileError::at_line(&file, line, e).hint(REPAIR);
        match (&mut read, entry) {
            (None, Entry::Begin(begin)) => read = Some(beginning(begin.into_owned()).map_err(bad)?),
            (None, _) => {
                return Err(bad("the first line is not the beginning of a run".to_owned()));
            }
            (Some(benchmark), entry) => add(benchmark, entry).map_err(bad)?,
        }
        whole_bytes += text.len() as u64;
        is_open = !ended;
    }
    let Some(benchmark) = read else {
        let error = RunFileError::whole(&file, "holds nothing that can be gone on with");
        return Err(error.hint(if folder.join(BENCHMARK).exists() {
            "the run's results are in benchmark.json beside it, unless that is damaged, too"
        } else {
            "the run was ended before it measured, or the file was cut; start a new run"
        }));
    };
    let cut_bytes = bytes.len() as u64 - whole_bytes;
    Ok(Journal { folder: folder.to_owned(), benchmark, whole_bytes, is_open, cut_bytes })
}

/// The error that says so, when the first line is from a newer harness.
fn newer(file: &Path, text: &[u8]) -> Option<RunFileError> {
    #[derive(Deserialize)]
    struct Begin {
        begin: Version,
    }
    let begin: Begin = serde_json::from_slice(text).ok()?;
    Some(RunFileError::at_line(file, 1, begin.begin.complaint()?))
}

fn beginning(begin: Benchmark) -> Result<Benchmark, String> {
    if let Some(complaint) = Version::of(&begin).complaint() {
        return Err(complaint);
    }
    check::begin(&begin)?;
    if !(begin.blocks.is_empty() && begin.rechecks.is_empty() && begin.memory.is_empty()) {
        return Err("the beginning of a run holds blocks or memory runs already".to_owned());
    }
    Ok(begin)
}

/// Adds what a line says to the record.
fn add(b: &mut Benchmark, entry: Entry<'_>) -> Result<(), String> {
    match entry {
        Entry::Begin(_) => return Err("the run begins a second time".to_owned()),
        Entry::Ready(all) => all.iter().try_for_each(|ready| said(&mut b.members, ready))?,
        Entry::Block(block) => {
            check::block(b, &b.blocks, &block)?;
            b.blocks.push(block.into_owned());
        }
        Entry::Recheck(block) => {
            check::recheck(b, &b.rechecks, &block)?;
            b.rechecks.push(block.into_owned());
        }
        Entry::Memory(run) => {
            check::memory(b, &b.memory, &run)?;
            b.memory.push(run.into_owned());
        }
        Entry::Event(event) => {
            // A run that was resumed on an unfit machine stays stamped, however it goes on.
            b.run.forced |= event.kind == EventKind::Forced;
            b.events.push(event.into_owned());
        }
    }
    Ok(())
}

fn said(members: &mut [Member], ready: &Ready) -> Result<(), String> {
    let member = members.iter_mut().find(|m| m.name == ready.member);
    let member = member.ok_or_else(|| format!("there is no member `{}`", ready.member))?;
    member.runtime = Some(ready.runtime.clone());
    member.workers = Some(ready.workers);
    Ok(())
}
