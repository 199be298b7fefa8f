//! The tables that a run ends with.

use super::number;
use super::table::{Format, Table};
use crate::plan::{Condition, MEMORY_CONDITION};
use crate::record::{Benchmark, Level};

/// Everything that a terminal shows of a run.
pub fn summary(benchmark: &Benchmark, format: Format) -> String {
    let mut parts = Vec::new();
    if !benchmark.run.preset.is_measurement() {
        parts.push(format!(
            "NOT A MEASUREMENT: preset `{}` only shows that everything works\n",
            benchmark.run.preset.name
        ));
    }
    for condition in &benchmark.conditions {
        parts.push(condition_table(benchmark, condition).print(format));
    }
    if !benchmark.memory.is_empty() {
        parts.push(memory_table(benchmark).print(format));
    }
    let notes = notes(benchmark);
    if !notes.is_empty() {
        let lines: String = notes.iter().map(|n| format!("- {n}\n")).collect();
        parts.push(lines);
    }
    parts.join("\n")
}

fn level<'a>(b: &'a Benchmark, metric: &str, condition: &str, member: &str) -> Option<&'a Level> {
    b.results
        .levels
        .iter()
        .find(|l| l.metric == metric && l.condition == condition && l.member == member)
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
        .map_or_else(|| "–".to_owned(), |r| number::ratio(r.ratio, r.low, r.high))
}

fn condition_table(b: &Benchmark, condition: &Condition) -> Table {
    let c = &condition.name;
    let blocks = b.blocks.len();
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
            .blocks
            .iter()
            .flat_map(|block| &block.cells)
            .filter(|cell| cell.condition == *c && cell.member == *m)
            .fold((0, 0), |(f, s), cell| (f + cell.counts.failures(), s + cell.counts.sent));
        table.row(vec![
            named(b, condition, m),
            show(level(b, "throughput", c, m), number::three_digits),
            show(level(b, "p50", c, m), number::duration),
            at_least(b, condition, m).to_owned() + &show(level(b, "p99", c, m), number::duration),
            show(level(b, "max", c, m), number::duration),
            show(level(b, "cpu-per-request", c, m), number::duration),
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
    if n == b.blocks.len() { member.to_owned() } else { format!("{member} ({n} blocks)") }
}

/// Requests that were never answered would lie above any percentile.
fn at_least(b: &Benchmark, condition: &Condition, member: &str) -> &'static str {
    let mut cells = b.blocks.iter().flat_map(|block| &block.cells);
    let hung = cells.any(|c| {
        c.condition == condition.name
            && c.member == member
            && c.counts.timed_out + c.counts.unfinished > 0
    });
    if hung { "≥ " } else { "" }
}

fn memory_table(b: &Benchmark) -> Table {
    let load = &b.run.memory_load;
    let repeats = b.memory.len().div_ceil(b.members.len().max(1));
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
    for member in &b.members {
        let m = &member.name;
        let mut row = vec![m.clone()];
        let figures = ["pss-idle", "pss-loaded", "pss-after", "rss-idle", "rss-loaded", "peak"];
        for figure in figures {
            let metric = format!("memory-{figure}");
            row.push(show(level(b, &metric, MEMORY_CONDITION, m), number::mebibytes));
        }
        let processes =
            b.memory.iter().filter(|r| r.member == *m).map(|r| r.loaded.processes).max();
        row.push(processes.map_or_else(|| "–".to_owned(), |n| n.to_string()));
        row.push(ratio_to_first(b, "memory-pss-loaded", MEMORY_CONDITION, m));
        table.row(row);
    }
    table
}

/// A level whose interval is wider than this says little by itself.
const RESTLESS: f64 = 1.3;

/// Levels that moved so much between blocks that they should not be quoted alone.
fn restless(b: &Benchmark) -> Vec<String> {
    let wide = |l: &&Level| {
        l.metric == "throughput"
            && l.low.zip(l.high).is_some_and(|(low, high)| high > RESTLESS * low)
    };
    b.results
        .levels
        .iter()
        .filter(wide)
        .map(|l| {
            let show = |v: Option<f64>| v.map_or_else(String::new, number::three_digits);
            format!(
                "{} {}: {}–{} req/s over blocks: the machine was restless, quote the ratio",
                l.condition,
                l.member,
                show(l.low),
                show(l.high)
            )
        })
        .collect()
}

/// What a reader must know before believing the tables, and everything that happened.
fn notes(b: &Benchmark) -> Vec<String> {
    let mut notes = Vec::new();
    if b.run.stopped_by == "interrupt" {
        notes.push(format!(
            "interrupted: {} of {} blocks and {} memory runs were finished; the tables hold those",
            b.blocks.len(),
            b.run.preset.blocks,
            b.memory.len()
        ));
    }
    if b.run.preset.is_measurement() {
        notes.push(if b.blocks.len() < 6 {
            "fewer than 6 blocks: ratios are a direction only, without a 95 % interval".to_owned()
        } else {
            format!(
                "ratios ÷ {0} are paired slice by slice, with their 95 % interval over blocks; they \
                 are not quotients of the columns, which moved with the machine",
                b.members[0].name
            )
        });
    }
    if b.run.layout.is_shared() {
        notes.push("the generator and the subjects shared their CPUs".to_owned());
    } else if !b.host.can_pin {
        notes.push("this system cannot pin processes to CPUs; none were pinned".to_owned());
    }
    notes.extend(restless(b));
    let events = b.events.iter().map(|e| (None, e));
    let in_blocks =
        b.blocks.iter().flat_map(|block| block.events.iter().map(move |e| (Some(block.number), e)));
    for (block, event) in events.chain(in_blocks) {
        let place: Vec<String> = [
            block.map(|n| format!("block {}", n + 1)),
            event.condition.clone(),
            event.member.clone(),
        ]
        .into_iter()
        .flatten()
        .collect();
        notes.push(format!("{} [{}]: {}", event.kind, place.join(", "), event.message));
    }
    notes
}
