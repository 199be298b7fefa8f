//! Small statistics: pure functions on numbers.
//!
//! Knows nothing of requests, members or files.

pub mod holm;
pub mod paired;
pub mod quantile;
mod student;
