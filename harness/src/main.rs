//! The `harness` command: parses the command line and dispatches.

fn main() {}
