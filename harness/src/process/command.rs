//! Runs a command to its end: builds, version questions, an implementation's own tests.

use super::guard::Guard;
use super::interrupt::Interrupt;
use super::output::Tail;
use crate::manifest::Argv;
use anyhow::{Context, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often a waiting loop looks.
const LOOK: Duration = Duration::from_millis(10);
/// Lines, and bytes of one, that a message shows of a command: a compiler's first error may
/// be far up.
const KEPT_LINES: (usize, usize) = (40, 400);
/// A program that was asked to end may take so long to say what it has.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// Standard output is kept up to so many lines of so many bytes by [`finish`].
const KEPT_OUTPUT: (usize, usize) = (10_000, 1 << 20);

/// A command that has ended.
#[derive(Debug)]
pub struct Finished {
    /// How.
    pub status: ExitStatus,
    /// What it printed on standard output.
    pub output: String,
    /// Its last lines on standard error, for a message.
    pub errors: Tail,
}

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
    let tail = Tail::keeping(KEPT_LINES.0, KEPT_LINES.1);
    let status = wait(argv, dir, limit, None, (&tail, &tail), guard, interrupt)?;
    if !status.success() {
        let dir = dir.display();
        bail!("`{argv}` in {dir} failed ({status}); its last lines:{}", tail.quote());
    }
    Ok(tail.text())
}

/// Runs `argv` with `input` to its end, however it ends; gives all that it printed. On
/// interruption it is asked to end, as at Ctrl-C, and has some seconds to report.
///
/// # Errors
/// When it cannot be started, takes longer than `limit`, or does not end when interrupted.
pub fn finish(
    argv: &Argv,
    input: &str,
    limit: Duration,
    guard: &Guard,
    interrupt: &Interrupt,
) -> anyhow::Result<Finished> {
    let (output, errors) = (Tail::keeping(KEPT_OUTPUT.0, KEPT_OUTPUT.1), Tail::default());
    let streams = (&output, &errors);
    let status = wait(argv, Path::new("."), limit, Some(input), streams, guard, interrupt)?;
    Ok(Finished { status, output: output.text(), errors })
}

fn wait(
    argv: &Argv,
    dir: &Path,
    limit: Duration,
    input: Option<&str>,
    (output, errors): (&Tail, &Tail),
    guard: &Guard,
    interrupt: &Interrupt,
) -> anyhow::Result<ExitStatus> {
    let mut child = Command::new(argv.program())
        .args(argv.args())
        .current_dir(dir)
        .process_group(0)
        .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{argv}` in {}", dir.display()))?;
    let group = Pid::from_raw(child.id() as i32);
    guard.add(group)?;
    let drains: Vec<_> = [
        child.stdout.take().map(|stream| output.drain(stream, None)),
        child.stderr.take().map(|stream| errors.drain(stream, None)),
    ]
    .into();
    if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input) {
        // A command that does not read its input says itself why.
        let _ = pipe.write_all(input.as_bytes());
    }
    let started = Instant::now();
    let mut asked = None;
    let outcome = loop {
        if let Some(status) = child.try_wait()? {
            break Ok(status);
        }
        if interrupt.is_set() {
            // Only what is read to its end can say something that is of use.
            let asked = *asked.get_or_insert_with(|| {
                let _ = input.map(|_| killpg(group, Signal::SIGINT));
                Instant::now()
            });
            if input.is_none() || asked.elapsed() > LAST_WORDS {
                break Err("was interrupted".to_owned());
            }
        }
        if started.elapsed() > limit {
            break Err(format!("took longer than {} s", limit.as_secs()));
        }
        std::thread::sleep(LOOK);
    };
    // What it left in its group, or all of it.
    let _ = killpg(group, Signal::SIGKILL);
    let _ = child.wait();
    guard.remove(group);
    // The drains end with the pipes, now that the whole group has.
    for drain in drains.into_iter().flatten() {
        let _ = drain.join();
    }
    outcome.or_else(|why| bail!("`{argv}` {why}; its last lines:{}", errors.quote()))
}
