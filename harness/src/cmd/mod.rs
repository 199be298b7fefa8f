//! One small file a subcommand, and what they share: errors with exit codes, and printing.

mod build;
mod calibrate;
mod compare;
mod doctor;
mod goose;
mod list;
mod load;
mod null_server;
mod pace;
mod prepare;
mod progress;
mod project;
mod simulate;
mod users;
mod verify;

use crate::cli::{Cli, Command};
use crate::process::{guard, launch};
use crate::record::RunFileError;
use crate::report::splice::splice;
use crate::toml_file::FileError;
use project::Project;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// The user has to change something: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Usage(String);

/// A verification or a measurement failed: exit code 3.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unsuccessful(String);

/// Ctrl-C: exit code 130, as shells have it.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
struct Interrupted;

/// Runs the command and reports its failure, if any, on standard error.
pub fn run(cli: Cli) -> ExitCode {
    match dispatch(cli) {
        Ok(code) => code,
        Err(error) => {
            // A reader that has gone (`harness list | head -1`) is nobody's failure.
            if error.downcast_ref::<std::io::Error>().is_some_and(is_broken_pipe) {
                return ExitCode::SUCCESS;
            }
            say(&format!("error: {error:#}"));
            ExitCode::from(exit_code(&error))
        }
    }
}

fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<Usage>() || error.is::<FileError>() || error.is::<RunFileError>() {
        2
    } else if error.is::<Unsuccessful>() {
        3
    } else if error.is::<Interrupted>() {
        130
    } else {
        1
    }
}

fn is_broken_pipe(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::BrokenPipe
}

fn dispatch(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Launch(args) => {
            say(&launch::become_service(args.parent, &args.cpu, &args.argv));
            return Ok(ExitCode::from(launch::CANNOT_EXEC));
        }
        Command::Guard => {
            guard::run(std::io::stdin().lock());
            return Ok(ExitCode::SUCCESS);
        }
        Command::Load(args) => {
            load::run(&args, || Project::find(cli.root.as_deref(), cli.impl_dir))?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Pace(args) => {
            pace::run(&args)?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Simulate(args) => {
            simulate::run(&args)?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::NullServer(args) => {
            null_server::run(&args)?;
            return Ok(ExitCode::SUCCESS);
        }
        _ => {}
    }
    let project = Project::find(cli.root.as_deref(), cli.impl_dir)?;
    match cli.command {
        Command::Doctor(args) => doctor::run(&project, &args)?,
        Command::List(args) => list::run(&project, &args)?,
        Command::Build(args) => build::run(&project, &args)?,
        Command::Verify(args) => verify::run(&project, &args)?,
        Command::Compare(args) => compare::run(&project, &args)?,
        Command::Calibrate(args) => calibrate::run(&project, &args)?,
        Command::Users(args) => users::run(&project, &args)?,
        Command::Launch(_)
        | Command::Guard
        | Command::Load(_)
        | Command::Pace(_)
        | Command::Simulate(_)
        | Command::NullServer(_) => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Finds out before anything is measured whether `file`, which `option` named, can be written.
fn check_writable(option: &str, file: &Path) -> anyhow::Result<()> {
    let is_new = !file.exists();
    // Nothing is appended: what is there stays until there is something better.
    std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(file)
        .map_err(|e| Usage(format!("{option} {}: cannot be written: {e}", file.display())))?;
    if is_new {
        std::fs::remove_file(file)?;
    }
    Ok(())
}

/// Finds out before anything is measured whether [`write_spliced`] could do its work.
fn check_spliced(option: &str, file: &Path, name: &str) -> anyhow::Result<()> {
    spliced(option, file, name, "")?;
    check_writable(option, file)
}

/// Puts `content` into the part `name` of the document `file`, which `option` named.
fn write_spliced(option: &str, file: &Path, name: &str, content: &str) -> anyhow::Result<()> {
    let text = spliced(option, file, name, content)?;
    std::fs::write(file, text)
        .map_err(|e| Usage(format!("{option} {}: cannot be written: {e}", file.display())))?;
    Ok(())
}

fn spliced(option: &str, file: &Path, name: &str, content: &str) -> Result<String, Usage> {
    let wrong = |e: String| Usage(format!("{option} {}: {e}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|e| wrong(format!("cannot be read: {e}")))?;
    splice(&text, name, content).map_err(wrong)
}

/// Refuses to measure with an engine that the compiler did not optimise.
fn refuse_debug_build(command: &str) -> Result<(), Usage> {
    if cfg!(debug_assertions) {
        return Err(Usage(format!(
            "this is a debug build; use `cargo run --release -- {command}`"
        )));
    }
    Ok(())
}

/// Small enough that every reader of JSON keeps it exactly.
fn new_seed() -> u64 {
    u64::from(rand::random::<u32>())
}

/// `1 service`, `2 services`.
fn plural(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// Results go to standard output.
fn print(text: &str) -> anyhow::Result<()> {
    Ok(std::io::stdout().lock().write_all(text.as_bytes())?)
}

/// A value as JSON on standard output.
fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// Progress and warnings go to standard error.
fn say(line: &str) {
    // Nobody can be told that telling failed.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
