//! What is kept of a run: the schema of `benchmark.json`, and the only code that reads and
//! writes run files.

pub mod findings;
pub mod folder;
pub mod latency;
pub mod schema;

pub use findings::*;
pub use folder::RunFolder;
pub use latency::Latency;
pub use schema::*;
