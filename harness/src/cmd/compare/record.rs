//! What is known of a run before anything is measured.

use super::ask::Ask;
use crate::cmd::Usage;
use crate::cmd::prepare::Built;
use crate::experiment;
use crate::host::facts;
use crate::manifest::{Argv, Kind};
use crate::plan::TWIN;
use crate::process::ServiceSpec;
use crate::record::{
    Benchmark, Control, Event, Harness, Member, MemoryLoad, Results, Revision, Run, SCHEMA,
};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

/// The record before anything was measured.
pub fn blank(
    ask: &Ask,
    members: Vec<Member>,
    missing: &[Event],
    repository: Revision,
) -> Benchmark {
    let id = ask.out.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let most = ask.conditions.iter().map(|c| c.connections).max().unwrap_or(1);
    Benchmark {
        schema: SCHEMA,
        run: Run {
            id,
            started: experiment::timestamp(),
            command: std::env::args().collect(),
            preset: ask.preset.clone(),
            seed: ask.seed,
            users_sha256: ask.users_sha256.clone(),
            layout: ask.layout.clone(),
            memory_load: MemoryLoad {
                connections: most,
                scenarios: ask.scenarios.iter().map(|s| s.name.clone()).collect(),
                requests: ask.preset.memory_requests,
            },
            forced: false,
            stopped_by: String::new(),
        },
        harness: harness(),
        repository,
        host: facts::read(),
        members,
        conditions: ask.conditions.clone(),
        blocks: Vec::new(),
        rechecks: Vec::new(),
        memory: Vec::new(),
        events: missing.to_vec(),
        decisions: Vec::new(),
        results: Results::default(),
    }
}

/// A subject, before it ran.
pub fn member(built: &Built) -> Member {
    let (implementation, variant) = (&built.subject.implementation, &built.subject.variant);
    Member {
        name: built.subject.label(),
        implementation: implementation.name.clone(),
        variant: variant.name.clone(),
        language: implementation.language.clone(),
        stack: variant.stack.clone(),
        kind: variant.kind,
        versions: built.versions.clone(),
        runtime: None,
        workers: None,
        argv: variant.command.all().to_vec(),
        env: variant.env.clone(),
        binary_sha256: hash_of_program(&implementation.dir, &variant.command),
        control: None,
    }
}

/// The subject a second time.
pub fn twin(of: &Member) -> Member {
    let name = format!("{}{TWIN}", of.name);
    Member { name, control: Some(Control::Twin), ..of.clone() }
}

/// The null server.
pub fn ceiling(spec: &ServiceSpec) -> Member {
    Member {
        name: spec.label.clone(),
        implementation: "harness".to_owned(),
        variant: spec.label.clone(),
        language: "–".to_owned(),
        stack: "canned bytes".to_owned(),
        kind: Kind::Tuned,
        versions: BTreeMap::new(),
        runtime: None,
        workers: None,
        argv: spec.command.all().to_vec(),
        env: BTreeMap::new(),
        binary_sha256: None,
        control: Some(Control::Ceiling),
    }
}

/// Only a program named by a path is a build product; one found on `PATH` is a runtime,
/// whose version is recorded instead.
fn hash_of_program(dir: &Path, command: &Argv) -> Option<String> {
    if !command.program().contains('/') {
        return None;
    }
    sha256(&dir.join(command.program())).ok()
}

/// In hexadecimal.
pub fn sha256(file: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(file)
        .map_err(|e| Usage(format!("{} cannot be read: {e}", file.display())))?;
    Ok(Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect())
}

fn harness() -> Harness {
    Harness {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        source: Revision {
            commit: env!("HARNESS_COMMIT").to_owned(),
            dirty: env!("HARNESS_DIRTY").parse().ok(),
        },
        build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
    }
}
