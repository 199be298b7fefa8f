//! The harness: builds, verifies, loads and compares the services of this repository.

pub mod contract;
pub mod host;
pub mod load;
pub mod manifest;
pub mod process;
pub mod scenario;
pub mod selection;
pub mod toml_file;
pub mod users;
