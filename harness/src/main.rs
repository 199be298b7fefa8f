//! The `harness` command: parses the command line, dispatches, and turns errors into exit
//! codes: 0 done; 1 the harness failed; 2 wrong usage; 3 a verification or measurement failed.

use clap::Parser;
use harness::cli::Cli;
use std::process::ExitCode;

fn main() -> ExitCode {
    harness::cmd::run(Cli::parse())
}
