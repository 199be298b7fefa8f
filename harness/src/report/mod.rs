//! Shows results. One model of a table; text and Markdown are two ways to print it.
//!
//! Reads records and results; does no input or output itself.

pub mod foreign;
pub mod goose;
pub mod load;
mod notes;
pub mod number;
pub mod splice;
pub mod summary;
pub mod table;
pub mod verdict;
