//! The step between the harness and a service: sets what must hold before the service's
//! first instruction, then becomes the service (`exec`).
//!
//! Runtimes size their thread pools from the CPUs they may use, so affinity has to be in
//! place before they start. Being a program of its own, this step needs no `unsafe`
//! between fork and exec.

use crate::host::affinity;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Exit code when the program cannot be started, as shells have it.
pub const CANNOT_EXEC: u8 = 127;

/// Becomes `argv`, pinned to `cpus` (empty: where the harness runs), and dies with the
/// harness's thread that started it.
///
/// Returns only on failure, with what to print.
pub fn become_service(parent: u32, cpus: &[usize], argv: &[String]) -> String {
    if let Err(e) = die_with_parent(parent) {
        return e;
    }
    if !cpus.is_empty()
        && let Err(e) = affinity::pin(cpus)
    {
        return format!("cannot pin to CPUs {cpus:?}: {e}");
    }
    let error = Command::new(&argv[0]).args(&argv[1..]).exec();
    format!("cannot start `{}`: {error}", argv[0])
}

/// Linux ties the signal to the *thread* that spawned: a service is always started from
/// the thread that owns it until it has stopped.
#[cfg(target_os = "linux")]
fn die_with_parent(parent: u32) -> Result<(), String> {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)
        .map_err(|e| format!("cannot set the parent-death signal: {e}"))?;
    if nix::unistd::getppid().as_raw() as u32 != parent {
        return Err("the harness is gone".to_owned());
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_parent: u32) -> Result<(), String> {
    Ok(()) // the guard alone ends services there
}
