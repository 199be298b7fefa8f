//! The command line as a user types it.

mod compare;
mod implementations;
mod simulate;
mod support;
mod verify;
