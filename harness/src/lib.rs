//! The harness: builds, verifies, loads and compares the services of this repository.
//!
//! A tour, from the bottom up: [`manifest`] and [`scenario`] turn TOML into types;
//! [`plan`] says what is measured in which order; [`host`] knows the machine; [`process`]
//! starts and ends services; [`load`] is the load engine, [`goose`] the wire to a second one;
//! `contract` proves that services answer alike; [`experiment`] runs a plan; [`record`] keeps what it yields; [`results`]
//! computes what follows, with [`stats`]; [`verdict`] says what may be concluded, and
//! [`simulate`] how far that can be trusted; [`report`] shows it. [`cmd`] has a small file for each subcommand, [`cli`] the command line.

pub mod calibrate;
pub mod cli;
pub mod cmd;
pub mod contract;
pub mod experiment;
pub mod goose;
pub mod host;
pub mod load;
pub mod manifest;
pub mod plan;
pub mod process;
pub mod record;
pub mod report;
pub mod results;
pub mod scenario;
pub mod selection;
pub mod simulate;
pub mod stats;
pub mod toml_file;
pub mod users;
pub mod verdict;
