//! The repository on disk, and the process-wide things that every longer command needs.

use super::Usage;
use crate::contract::{self, Contract};
use crate::manifest::{self, Implementation};
use crate::process::{Guard, Interrupt};
use crate::scenario::{self, Scenario};
use crate::users::{self, User};
use anyhow::Context;
use std::path::{Path, PathBuf};

/// What makes a folder the repository.
const MARK: &str = "data/scenarios";

/// Where things are.
pub struct Project {
    /// The repository, absolute.
    pub root: PathBuf,
    extra: Vec<PathBuf>,
}

/// What starting services needs.
pub struct Machinery {
    /// This program.
    pub harness: PathBuf,
    /// Ends services when this program dies.
    pub guard: Guard,
    /// Somebody wants to end.
    pub interrupt: Interrupt,
}

impl Project {
    /// The repository at `given`, or the nearest one upward from the current folder.
    pub fn find(given: Option<&Path>, extra: Vec<PathBuf>) -> anyhow::Result<Self> {
        let current = std::env::current_dir().context("the current folder cannot be read")?;
        let root = match given {
            Some(dir) if dir.join(MARK).is_dir() => Some(dir),
            Some(dir) => {
                let message = format!("{} is not the repository: it has no {MARK}", dir.display());
                return Err(Usage(message).into());
            }
            None => current.ancestors().find(|dir| dir.join(MARK).is_dir()),
        };
        let root = root.ok_or_else(|| {
            Usage(format!(
                "no folder from {} upward has {MARK}; run inside the repository or name it \
                 with --root DIR",
                current.display()
            ))
        })?;
        Ok(Self { root: root.canonicalize()?, extra })
    }

    /// Every implementation.
    pub fn implementations(&self) -> anyhow::Result<Vec<Implementation>> {
        Ok(manifest::load_all(&self.root, &self.extra)?)
    }

    /// Every scenario.
    pub fn scenarios(&self) -> anyhow::Result<Vec<Scenario>> {
        Ok(scenario::load_all(&self.root.join(MARK))?)
    }

    /// Path of the seeded users.
    pub fn users_file(&self) -> PathBuf {
        self.root.join("data/users.json")
    }

    /// The seeded users.
    pub fn users(&self) -> anyhow::Result<Vec<User>> {
        users::load(&self.users_file()).map_err(|e| Usage(format!("{e:#}")).into())
    }

    /// The contract's cases.
    pub fn contract(&self) -> anyhow::Result<Contract> {
        contract::load(&self.root.join("data/contract")).map_err(|e| Usage(format!("{e:#}")).into())
    }
}

impl Machinery {
    /// Installs the signal handlers and starts the guard.
    pub fn start() -> anyhow::Result<Self> {
        let harness = std::env::current_exe().context("this program's own path is unknown")?;
        let interrupt = Interrupt::install().context("signal handlers cannot be installed")?;
        let guard = Guard::start(&harness)?;
        Ok(Self { harness, guard, interrupt })
    }
}
