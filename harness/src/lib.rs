//! The harness: builds, verifies, loads and compares the services of this repository.

pub mod users;
