//! `harness simulate`: shows how far verdicts can be trusted, by blocks whose truth is known.

use super::{Usage, print, print_json, write_spliced};
use crate::cli::Simulate as Args;
use crate::report::number::{count, three_digits};
use crate::report::table::{Format, Table};
use crate::simulate::{
    Alike, COMPARISONS, Coverage, DISTURBED_SHARE, Disturbance, GROSS_ERROR, Options, Planted,
    Simulation, Stopping, simulate,
};

/// Name of the spliced part of the document.
const SPLICE: &str = "simulate";
/// Below so many no percentage is worth printing.
const FEWEST_RUNS: usize = 10;

pub fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(sd) = args.sd.iter().find(|sd| !(sd.is_finite() && **sd > 0.0)) {
        return Err(Usage(format!("--sd {sd}: must be a positive percentage")).into());
    }
    if args.runs < FEWEST_RUNS {
        return Err(Usage(format!("--runs {}: must be at least {FEWEST_RUNS}", args.runs)).into());
    }
    let result = simulate(&Options {
        sds: args.sd.iter().map(|percent| percent / 100.0).collect(),
        seed: args.seed,
        runs: args.runs,
    });
    if let Some(file) = &args.write_docs {
        return write_spliced("--write-docs", file, SPLICE, &tables(&result, Format::Markdown));
    }
    match args.output.format {
        Format::Json => print_json(&result),
        format => print(&tables(&result, format)),
    }
}

fn tables(s: &Simulation, format: Format) -> String {
    let tables = [
        coverage_table(&s.coverage, s.single_runs),
        stopping_table(&s.stopping, s.single_runs),
        alike_table(&s.alike, s.runs),
        planted_table(&s.planted, s.runs),
    ];
    let tables: Vec<String> = tables.iter().map(|t| t.print(format)).collect();
    format!("{}\nSimulated from seed {}.\n", tables.join("\n"), s.seed)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Without the digit that a standard deviation does not have.
fn sd_words(sd: f64) -> String {
    format!("{} %", (1e6 * sd).round() / 1e4)
}

/// What a disturbed block is; a footnote to both tables that have some.
fn disturbed() -> String {
    format!(
        "a disturbed block, one in {:.0}, is off by {GROSS_ERROR} SD",
        (1.0 / DISTURBED_SHARE).round()
    )
}

fn disturbance_words(disturbance: Disturbance) -> String {
    match disturbance {
        Disturbance::None => "none",
        Disturbance::EitherSide => "to either side",
        Disturbance::OneSide => "to one side",
    }
    .to_owned()
}

fn coverage_table(rows: &[Coverage], runs: usize) -> Table {
    let title = format!(
        "The interval covers the true ratio: share of {} comparisons, whatever their SD ({})",
        count(runs as u64),
        disturbed()
    );
    let mut table = Table::new(title, &["disturbed", "blocks", "by theory", "covered"]);
    for row in rows {
        // Theory is silent on a scatter that is not symmetric.
        let nominal = row.nominal.filter(|_| row.disturbance != Disturbance::OneSide);
        table.row(vec![
            disturbance_words(row.disturbance),
            row.blocks.to_string(),
            nominal.map_or_else(|| "–".to_owned(), percent),
            percent(row.covered),
        ]);
    }
    table
}

fn stopping_table(rows: &[Stopping], runs: usize) -> Table {
    let title = format!(
        "Stopping by width at 6, 12, 18 or 24 blocks: {} comparisons of throughput for each SD",
        count(runs as u64)
    );
    let columns = ["SD", "blocks, mean", "stopped by width", "covered"];
    let mut table = Table::new(title, &columns);
    for row in rows {
        table.row(vec![
            sd_words(row.sd),
            three_digits(row.mean_blocks),
            percent(row.stopped_by_width),
            percent(row.covered),
        ]);
    }
    table
}

fn alike_table(rows: &[Alike], runs: usize) -> Table {
    let title = format!(
        "All members alike, {COMPARISONS} primary comparisons a run: share of {} runs with at least \
         one false difference ({})",
        count(runs as u64),
        disturbed()
    );
    let columns = [
        "disturbed",
        "SD",
        "blocks",
        "claimed",
        "called small",
        "by interval alone",
        "by p value alone",
        "called a tie",
        "twin objects",
    ];
    let mut table = Table::new(title, &columns);
    for row in rows {
        table.row(vec![
            disturbance_words(row.disturbance),
            sd_words(row.sd),
            row.blocks.to_string(),
            percent(row.any_claim),
            percent(row.any_small),
            percent(row.any_outside_zone),
            percent(row.any_significant),
            percent(row.ties),
            percent(row.twin_objects),
        ]);
    }
    table
}

fn planted_table(rows: &[Planted], runs: usize) -> Table {
    let title = format!(
        "One member's throughput differs: verdicts on it, one of {COMPARISONS} primary comparisons, \
         in {} runs",
        count(runs as u64)
    );
    let columns = ["true ratio", "SD", "blocks", "higher", "small", "inconclusive", "tie"];
    let mut table = Table::new(title, &columns);
    for row in rows {
        table.row(vec![
            three_digits(row.ratio),
            sd_words(row.sd),
            row.blocks.to_string(),
            percent(row.higher),
            percent(row.small),
            percent(row.inconclusive),
            percent(row.tie),
        ]);
    }
    table
}
