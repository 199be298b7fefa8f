//! A tiny process that outlives a killed harness just long enough to end its services.
//!
//! The harness writes `+PGID` when it starts a group and `-PGID` when it has ended one.
//! When the pipe closes, however the harness died, the guard ends what is still listed.
//! It catches what a parent-death signal cannot: workers that a service started itself.

use anyhow::Context;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// The harness's end of the pipe. Clones speak to the same guard.
#[derive(Debug, Clone)]
pub struct Guard(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Guard {
    /// Starts the guard: `harness` is the program to run as `harness guard`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(harness: &Path) -> anyhow::Result<Self> {
        let mut child = Command::new(harness)
            .arg("guard")
            // A group of its own: Ctrl-C and a kill of the harness's group must not reach it.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start the guard, {} guard", harness.display()))?;
        let pipe = child.stdin.take();
        Ok(Self(Arc::new(Mutex::new(Inner { child, pipe }))))
    }

    /// From now on the group is ended when the harness dies.
    ///
    /// # Errors
    /// When the guard itself is gone: without it no service may be started.
    pub fn add(&self, group: Pid) -> anyhow::Result<()> {
        self.tell('+', group).context("the guard process has gone; start the harness again")
    }

    /// The group has ended.
    pub fn remove(&self, group: Pid) {
        // A guard that has gone has nothing left to forget.
        let _ = self.tell('-', group);
    }

    fn tell(&self, sign: char, group: Pid) -> std::io::Result<()> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match inner.pipe.as_mut() {
            Some(pipe) => writeln!(pipe, "{sign}{group}"),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // It ends by itself once the pipe is closed; waiting leaves no zombie.
        let _ = self.child.wait();
    }
}

/// The guard's own life: reads until the pipe closes, then ends what is listed.
pub fn run(input: impl BufRead) {
    let mut groups = BTreeSet::new();
    for line in input.lines().map_while(Result::ok) {
        let Some((sign, number)) = line.split_at_checked(1) else { continue };
        let Ok(group) = number.parse::<i32>() else { continue };
        match sign {
            "+" => groups.insert(group),
            _ => groups.remove(&group),
        };
    }
    for group in groups {
        // Already gone is fine: the parent-death signal may have been faster.
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
}
