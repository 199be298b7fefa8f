//! Runs a command to its end: builds, version questions, an implementation's own tests.

use super::guard::Guard;
use super::interrupt::Interrupt;
use super::output::Tail;
use crate::manifest::Argv;
use anyhow::{Context, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs `argv` in `dir` to its end; gives its last lines.
///
/// # Errors
/// When it cannot be started, fails, takes longer than `limit`, or is interrupted; with
/// its last lines.
pub fn run(
    argv: &Argv,
    dir: &Path,
    limit: Duration,
    guard: &Guard,
    interrupt: &Interrupt,
) -> anyhow::Result<String> {
    let mut child = Command::new(argv.program())
        .args(argv.args())
        .current_dir(dir)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{argv}` in {}", dir.display()))?;
    let group = Pid::from_raw(child.id() as i32);
    guard.add(group)?;
    let tail = Tail::default();
    if let Some(stream) = child.stdout.take() {
        tail.drain(stream, None);
    }
    if let Some(stream) = child.stderr.take() {
        tail.drain(stream, None);
    }
    let started = Instant::now();
    let outcome = loop {
        if let Some(status) = child.try_wait()? {
            break Ok(status);
        }
        if interrupt.is_set() {
            break Err("was interrupted".to_owned());
        }
        if started.elapsed() > limit {
            break Err(format!("took longer than {} s", limit.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    // What it left in its group, or all of it.
    let _ = killpg(group, Signal::SIGKILL);
    let _ = child.wait();
    guard.remove(group);
    // The drains end with the pipes; give their last lines a moment to arrive.
    std::thread::sleep(Duration::from_millis(20));
    match outcome {
        Ok(status) if status.success() => Ok(tail.text()),
        Ok(status) => bail!("`{argv}` failed ({status}); its last lines:{}", tail.quote()),
        Err(why) => bail!("`{argv}` {why}; its last lines:{}", tail.quote()),
    }
}
