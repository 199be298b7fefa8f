//! The command line as a user types it.

mod compare;
mod implementations;
mod support;
mod verify;
