//! What is kept of a run: the schema of `benchmark.json`, and the only code that reads and
//! writes run files.

pub mod check;
mod event;
mod file;
pub mod findings;
pub mod folder;
pub mod journal;
pub mod latency;
mod read;
#[cfg(test)]
pub(crate) mod sample;
pub mod schema;
#[cfg(test)]
mod schema_tests;
#[cfg(test)]
mod tests;

pub use event::{Event, EventKind};
pub use file::RunFileError;
pub use findings::*;
pub use folder::{Ready, RunFolder};
pub use journal::Journal;
pub use latency::Latency;
pub use read::read;
pub use schema::*;
