//! The tables that a run ends with.

use super::table::{Format, Table};
use super::{notes, number, verdict};
use crate::plan::{Condition, MEMORY_CONDITION};
use crate::record::{self, Benchmark, Caution, CautionKind, Decision, Level};
use crate::verdict::is_primary;

/// Everything that a terminal shows of a run.
pub fn summary(benchmark: &Benchmark, format: Format) -> String {
    let mut parts = Vec::new();
    let headlines = headlines(benchmark);
    if !headlines.is_empty() {
        parts.push(headlines.concat());
    }
    for condition in &benchmark.conditions {
        parts.push(condition_table(benchmark, condition).print(format));
    }
    if !benchmark.memory.is_empty() {
        parts.push(memory_table(benchmark).print(format));
    }
    let sentences = verdict::sentences(benchmark);
    if !sentences.is_empty() {
        let lines: String = sentences.iter().map(|s| format!("- {s}\n")).collect();
        parts.push(format!("Verdicts\n\n{lines}"));
    }
    let notes = notes::notes(benchmark);
    if !notes.is_empty() {
        let lines: String = notes.iter().map(|n| format!("- {n}\n")).collect();
        parts.push(lines);
    }
    parts.join("\n")
}

fn level<'a>(b: &'a Benchmark, metric: &str, condition: &str, member: &str) -> Option<&'a Level> {
    record::level(&b.results.levels, metric, condition, member)
}

fn show(level: Option<&Level>, print: fn(f64) -> String) -> String {
    level.and_then(|l| l.value).map_or_else(|| "–".to_owned(), print)
}

fn ratio_to_first(b: &Benchmark, metric: &str, condition: &str, member: &str) -> String {
    let first = &b.members[0].name;
    if member == first {
        return if level(b, metric, condition, member).is_some_and(|l| l.value.is_some()) {
            "1".to_owned()
        } else {
            "–".to_owned()
        };
    }
    b.results
        .ratios
        .iter()
        .find(|r| r.metric == metric && r.condition == condition && r.a == member && r.b == *first)
        .map_or_else(
            || "–".to_owned(),
            |r| {
                let Some(ratio) = r.ratio else { return "–".to_owned() };
                let figures = number::ratio(ratio, r.low, r.high);
                if r.low.is_none() {
                    return figures; // a direction only
                }
                format!("{figures} {}", verdict::word(r.verdict))
            },
        )
}

/// What spoiled the run, before any figure.
fn headlines(b: &Benchmark) -> Vec<String> {
    let mut lines = Vec::new();
    let primary = |c: &&Caution| c.metric.as_deref().is_none_or(is_primary);
    for c in b.results.cautions.iter().filter(primary) {
        let word = match c.kind {
            CautionKind::GeneratorLimited => "GENERATOR-LIMITED",
            CautionKind::Disturbed => "DISTURBED",
            CautionKind::Twin | CautionKind::Forced => "NOISY",
            CautionKind::NoControls => "NO CONTROLS",
            CautionKind::NotAMeasurement => "NOT A MEASUREMENT",
            // The marks on the levels and their note say it.
            CautionKind::DisturbedLevels | CautionKind::NoCeiling => continue,
        };
        let place = [c.condition.as_deref(), c.member.as_deref(), c.metric.as_deref()];
        let place: Vec<&str> = place.into_iter().flatten().collect();
        let stamp = [CautionKind::NoControls, CautionKind::NotAMeasurement].contains(&c.kind);
        let place = if place.is_empty() && !stamp { vec!["all"] } else { place };
        lines.push(notes::note(word, &place, &c.reason) + "\n");
    }
    lines
}

/// A level as it may be quoted: "at least" where the generator was the limit, with a star
/// where the machine was disturbed.
fn quoted(level: Option<&Level>, print: fn(f64) -> String) -> String {
    let has = |kind: CautionKind| level.is_some_and(|l| l.marks.contains(&kind));
    let disturbed = [CautionKind::Disturbed, CautionKind::DisturbedLevels, CautionKind::Forced];
    let star = if disturbed.into_iter().any(has) { "*" } else { "" };
    let at_least = level.is_some_and(|l| l.metric == "throughput" && l.value.is_some())
        && has(CautionKind::GeneratorLimited);
    format!("{}{}{star}", if at_least { "≥ " } else { "" }, show(level, print))
}

/// The longest, where it may be quoted.
fn maximum(b: &Benchmark, condition: &str, member: &str) -> String {
    let unquoted = |d: &&Decision| {
        !d.quoted && d.condition == condition && d.member.as_deref() == Some(member)
    };
    if b.decisions.iter().any(|d| unquoted(&d)) {
        return "see note".to_owned();
    }
    quoted(level(b, "max", condition, member), number::duration)
}

fn condition_table(b: &Benchmark, condition: &Condition) -> Table {
    let c = &condition.name;
    let blocks = b.used_blocks().count();
    let title = format!(
        "{c}: {} connections, {blocks} block{} × {} slices of {} ms",
        condition.connections,
        if blocks == 1 { "" } else { "s" },
        condition.rounds,
        condition.window_ms
    );
    let first = &b.members[0].name;
    let columns = [
        "member",
        "req/s",
        "p50",
        "p99",
        "max",
        "CPU/req",
        "failures",
        &format!("req/s ÷ {first}"),
        &format!("CPU/req ÷ {first}"),
    ];
    let mut table = Table::new(title, &columns);
    for member in &b.members {
        let m = &member.name;
        let (failed, sent) = b
            .used_cells(c, m)
            .fold((0, 0), |(f, s), cell| (f + cell.counts.failures(), s + cell.counts.sent));
        table.row(vec![
            named(b, condition, m),
            quoted(level(b, "throughput", c, m), number::three_digits),
            quoted(level(b, "p50", c, m), number::duration),
            at_least(b, condition, m).to_owned() + &quoted(level(b, "p99", c, m), number::duration),
            maximum(b, c, m),
            quoted(level(b, "cpu-per-request", c, m), number::duration),
            format!("{} of {}", number::count(failed), number::count(sent)),
            ratio_to_first(b, "throughput", c, m),
            ratio_to_first(b, "cpu-per-request", c, m),
        ]);
    }
    table
}

/// The member, with its own number of blocks where that is not the table's.
fn named(b: &Benchmark, condition: &Condition, member: &str) -> String {
    let n = level(b, "throughput", &condition.name, member).map_or(0, |l| l.n);
    if n == b.used_blocks().count() { member.to_owned() } else { format!("{member} ({n} blocks)") }
}

/// Requests that were never answered would lie above any percentile.
fn at_least(b: &Benchmark, condition: &Condition, member: &str) -> &'static str {
    let mut cells = b.used_cells(&condition.name, member);
    let hung = cells.any(|c| c.counts.timed_out + c.counts.unfinished > 0);
    if hung { "≥ " } else { "" }
}

fn memory_table(b: &Benchmark) -> Table {
    let load = &b.run.memory_load;
    let subjects = || b.members.iter().filter(|m| m.control.is_none());
    let repeats = b.memory.len().div_ceil(subjects().count().max(1));
    let title = format!(
        "memory, MiB: median of {repeats} fresh process{}{}, loaded = right after {} requests ({}) on {} open connections",
        if repeats == 1 { "" } else { "es" },
        if repeats < 6 { " (ratio: direction only)" } else { "" },
        number::count(load.requests),
        load.scenarios.join(", "),
        load.connections
    );
    let columns = [
        "member",
        "PSS idle",
        "PSS loaded",
        "PSS after",
        "RSS idle",
        "RSS loaded",
        "RSS peak",
        "processes",
        &format!("PSS loaded ÷ {}", b.members[0].name),
    ];
    let mut table = Table::new(title, &columns);
    for member in subjects() {
        let m = &member.name;
        let mut row = vec![m.clone()];
        let figures = ["pss-idle", "pss-loaded", "pss-after", "rss-idle", "rss-loaded", "peak"];
        for figure in figures {
            let metric = format!("memory-{figure}");
            row.push(quoted(level(b, &metric, MEMORY_CONDITION, m), number::mebibytes));
        }
        let processes =
            b.memory.iter().filter(|r| r.member == *m).map(|r| r.loaded.processes).max();
        row.push(processes.map_or_else(|| "–".to_owned(), |n| n.to_string()));
        row.push(ratio_to_first(b, "memory-pss-loaded", MEMORY_CONDITION, m));
        table.row(row);
    }
    table
}
