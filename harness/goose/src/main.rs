//! `harness-goose`: Goose as a second engine for the closed pace.
//!
//! `harness load --engine goose` and `harness calibrate` build and run it; nobody else needs
//! to. It takes one [`Order`] as JSON on standard input, loads one service as it says, and
//! prints one [`Report`](harness::goose::Report) as JSON on standard output, or on standard
//! error why there is none. `--version` prints Goose's version.
//!
//! It exists to be compared with, and to say whether a finding depends on the first engine.
//! It is a package of its own because Goose brings more than a hundred crates, TLS in C and
//! an async runtime, and a process of its own so that its threads and its CPU time are its
//! own. It does not start services, and knows no scenarios or members.
//!
//! What is Goose's: users, their scheduling, the client, the connections. What is ours: the
//! figures. Goose's own times end with the head of an answer and are whole milliseconds;
//! here a clock is read before the request and after the last byte of the body.
//!
//! A run hatches all users, warms up, measures the window, and awaits what is under way.

mod attack;
mod user;

use anyhow::Context;
use goose::client::GooseClientConfig;
use harness::goose::Order;
use std::io::{Write, stderr, stdin, stdout};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody can be told that telling failed.
            let _ = writeln!(stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    if std::env::args().nth(1).as_deref() == Some("--version") {
        return Ok(writeln!(stdout(), "{}", version())?);
    }
    let order: Order =
        serde_json::from_reader(stdin().lock()).context("standard input holds no order")?;
    let report = attack::run(&order)?;
    Ok(writeln!(stdout(), "{}", serde_json::to_string(&report)?)?)
}

/// Goose tells its version to services only.
fn version() -> String {
    let agent = GooseClientConfig::default().user_agent;
    agent.strip_prefix("goose/").unwrap_or(&agent).to_owned()
}
