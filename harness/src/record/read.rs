//! Reads `benchmark.json`.

use super::file::{self, RunFileError};
use super::folder::{BENCHMARK, JOURNAL};
use super::{Benchmark, SCHEMA, check};
use serde::Deserialize;
use std::path::{Path, PathBuf};

const REBUILD: &str =
    "take it from a copy, or let `harness compare --resume FOLDER` write it anew from the journal";

/// The version alone, of a record of any version.
#[derive(Deserialize)]
pub(super) struct Version {
    schema: Option<u64>,
}

impl Version {
    pub(super) fn of(benchmark: &Benchmark) -> Self {
        Self { schema: Some(benchmark.schema.into()) }
    }

    /// What is wrong with it; this harness reads what it wrote.
    pub(super) fn complaint(&self) -> Option<String> {
        match self.schema {
            None => Some("has no field `schema`: this is not the record of a run".to_owned()),
            Some(n) if n == u64::from(SCHEMA) => None,
            // An older version is converted here, once there is one.
            Some(n) if (1..u64::from(SCHEMA)).contains(&n) => None,
            Some(0) => Some("has schema 0, which never was".to_owned()),
            Some(n) => Some(format!(
                "was written by a newer harness, schema {n}; this one knows {SCHEMA}. Read it \
                 with that harness"
            )),
        }
    }
}

/// Reads and checks a run's `benchmark.json`; `path` is that file or the run's folder.
///
/// # Errors
/// When it cannot be read, is damaged, from a newer harness, or does not hang together.
pub fn read(path: &Path) -> Result<Benchmark, RunFileError> {
    let file = if path.is_dir() { path.join(BENCHMARK) } else { path.to_owned() };
    let bytes = file::bytes(&file).map_err(|e| if_unfinished(path, e))?;
    let rebuild = |e: RunFileError| e.hint(REBUILD);
    let version: Version = file::parse(&file, 1, &bytes).map_err(rebuild)?;
    if let Some(complaint) = version.complaint() {
        return Err(RunFileError::whole(&file, complaint));
    }
    let benchmark: Benchmark = file::parse(&file, 1, &bytes).map_err(rebuild)?;
    check::benchmark(&benchmark).map_err(|e| {
        RunFileError::whole(&file, format!("does not hang together: {e}")).hint(REBUILD)
    })?;
    Ok(benchmark)
}

fn if_unfinished(path: &Path, error: RunFileError) -> RunFileError {
    let folder: PathBuf = error.file.parent().map(Path::to_owned).unwrap_or_default();
    if path.is_dir() && !error.file.exists() && folder.join(JOURNAL).exists() {
        let go_on = format!("`harness compare --resume {}` goes on with it", folder.display());
        return error.hint(&format!("the run has not ended; {go_on}"));
    }
    error
}
