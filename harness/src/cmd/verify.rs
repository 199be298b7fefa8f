//! `harness verify`.

use super::prepare::{self, Verified};
use super::project::{Machinery, Project};
use super::{Unsuccessful, Usage, new_seed, plural, print, print_json, say, write_spliced};
use crate::cli::Verify;
use crate::contract::{self, Report};
use crate::report::splice::splice;
use crate::report::table::{Format, Table};
use crate::selection::{self, Rows};
use serde::Serialize;
use std::path::Path;

/// Name of the splice part of the document.
const SPLICE: &str = "observed differences";

#[derive(Serialize)]
struct Row<'a> {
    member: &'a str,
    report: Option<&'a Report>,
    error: Option<&'a str>,
}

pub fn run(project: &Project, args: &Verify) -> anyhow::Result<()> {
    let implementations = project.implementations()?;
    let chosen =
        selection::choose(&implementations, &args.names.names, &[], Rows::All).map_err(Usage)?;
    let users = project.users()?;
    let contract = project.contract()?;
    let seed = args.seed.unwrap_or_else(new_seed);
    if let Some(file) = &args.write_observed {
        // Before seconds of verification, not after.
        splice(&read(file)?, SPLICE, "").map_err(|e| in_file(file, &e))?;
    }
    let machinery = Machinery::start()?;
    let prepared = prepare::build(chosen, &machinery)?;
    say(&format!("verifying {}, seed {seed}", plural(prepared.built.len(), "service")));
    let verified = prepare::verify(project, &contract, &prepared.built, &users, seed, &machinery);
    if machinery.interrupt.is_set() {
        return Err(super::Interrupted.into());
    }
    show(&verified, args.output.format)?;
    if let Some(file) = &args.write_observed {
        let columns: Vec<(String, &Report)> = verified
            .iter()
            .filter_map(|v| Some((v.label.clone(), v.report.as_ref().ok()?)))
            .collect();
        write_spliced("--write-observed", file, SPLICE, &contract::observed_table(&columns))?;
        say(&format!("wrote the table of observed differences into {}", file.display()));
    }
    let bad: Vec<&str> =
        verified.iter().filter(|v| !v.passed()).map(|v| v.label.as_str()).collect();
    if !bad.is_empty() {
        return Err(Unsuccessful(format!("{} not keep the contract", does(&bad))).into());
    }
    if prepared.has_failures() {
        return Err(Unsuccessful("not everything could be built".to_owned()).into());
    }
    if verified.is_empty() {
        return Err(
            Unsuccessful("nothing was verified: every toolchain is missing".to_owned()).into()
        );
    }
    Ok(())
}

fn read(file: &Path) -> Result<String, Usage> {
    std::fs::read_to_string(file).map_err(|e| in_file(file, &format!("cannot be read: {e}")))
}

fn in_file(file: &Path, problem: &str) -> Usage {
    Usage(format!("--write-observed {}: {problem}", file.display()))
}

fn does(names: &[&str]) -> String {
    format!("{} {}", names.join(", "), if names.len() == 1 { "does" } else { "do" })
}

fn show(verified: &[Verified], format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        let rows: Vec<Row<'_>> = verified
            .iter()
            .map(|v| Row {
                member: &v.label,
                report: v.report.as_ref().ok(),
                error: v.report.as_ref().err().map(String::as_str),
            })
            .collect();
        return print_json(&rows);
    }
    for v in verified {
        print(&failures(v))?;
    }
    let columns = ["member", "must", "passed", "failed", "observed", "verdict"];
    let mut table = Table::new("Contract", &columns);
    for v in verified {
        let mut row = vec![v.label.clone()];
        row.extend(match &v.report {
            Ok(r) => [
                r.total.to_string(),
                r.passed.to_string(),
                r.failed.to_string(),
                r.observed.len().to_string(),
            ],
            Err(_) => std::array::from_fn(|_| "–".to_owned()),
        });
        row.push(if v.passed() { "kept" } else { "BROKEN" }.to_owned());
        table.row(row);
    }
    print(&table.print(format))
}

/// Failures shown with their wire trace; a service that breaks one rule often fails many
/// cases, and the first ones name it best.
const SHOWN_FAILURES: usize = 5;

/// What failed, for a person who has to mend it; empty when nothing did.
pub fn failures(v: &Verified) -> String {
    let report = match &v.report {
        Err(error) => return format!("{}: {error}\n\n", v.label),
        Ok(report) => report,
    };
    let mut out = String::new();
    for failure in report.failures.iter().take(SHOWN_FAILURES) {
        out += &format!(
            "{}: {}: {}\n  why it matters: {}\n",
            v.label, failure.case, failure.what, failure.why
        );
        out.extend(failure.trace.iter().map(|line| format!("    {line}\n")));
        out.push('\n');
    }
    let rest: Vec<&str> =
        report.failures.iter().skip(SHOWN_FAILURES).map(|f| f.case.as_str()).collect();
    if !rest.is_empty() {
        out += &format!("{}: {} more failed: {}\n\n", v.label, rest.len(), rest.join(", "));
    }
    if let Some(why) = &report.stopped {
        out += &format!("{}: stopped early: {why}\n\n", v.label);
    }
    out
}

impl Verified {
    /// Whether the contract is kept.
    pub fn passed(&self) -> bool {
        self.report.as_ref().is_ok_and(Report::is_kept)
    }
}
