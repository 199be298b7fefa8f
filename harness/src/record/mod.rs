//! What is kept of a run: the schema of `benchmark.json`, and the only code that reads and
//! writes run files.

pub mod folder;
pub mod schema;

pub use folder::RunFolder;
pub use schema::*;
