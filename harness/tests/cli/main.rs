//! The command line as a user types it.

mod compare;
mod implementations;
#[cfg(target_os = "linux")]
mod memory;
mod resume;
mod simulate;
mod support;
mod verify;
