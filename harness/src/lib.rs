//! The harness: builds, verifies, loads and compares the services of this repository.

pub mod contract;
pub mod manifest;
pub mod scenario;
pub mod selection;
pub mod toml_file;
pub mod users;
