//! What a reader must know besides the tables: how to read them, what was decided, and
//! everything that happened.

use super::number;
use crate::host::judge::Disturbance;
use crate::record::{Benchmark, Block, Caution, CautionKind, Event, Level, level};

/// Whole blocks cost so much more than typical slices that somebody should know.
const BURSTS: f64 = 1.15;
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

/// Everything, in the order in which it matters.
pub fn notes(b: &Benchmark) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(how_to_read(b));
    notes.extend(b.results.cautions.iter().filter_map(caution));
    notes.extend(restless(b));
    notes.extend(totals(b));
    notes.extend(b.decisions.iter().map(|d| {
        let place = [Some(d.condition.as_str()), d.member.as_deref()];
        note(&d.rule, &place.into_iter().flatten().collect::<Vec<_>>(), &d.reason)
    }));
    notes.extend(b.blocks.iter().filter(|block| !block.invalid.is_empty()).map(invalid));
    notes.extend(b.events.iter().map(|e| event(e, None)));
    for block in b.blocks.iter().chain(&b.rechecks) {
        notes.extend(block.events.iter().map(|e| event(e, Some(block.number))));
    }
    notes
}

/// What concerns the run as a whole has no place.
pub fn note(kind: &str, place: &[&str], message: &str) -> String {
    match place {
        [] => format!("{kind}: {message}"),
        _ => format!("{kind} [{}]: {message}", place.join(", ")),
    }
}

fn how_to_read(b: &Benchmark) -> Vec<String> {
    let mut notes = Vec::new();
    let used = b.used_blocks().count();
    if b.run.stopped_by == "interrupt" {
        notes.push(format!(
            "interrupted: {used} of {} blocks and {} memory runs were finished; the tables hold those",
            b.run.preset.blocks,
            b.memory.len()
        ));
    }
    match b.run.stopped_by.as_str() {
        "width" => notes.push(format!(
            "stopped after {used} blocks (width): every interval of throughput, p99 and CPU per \
             request is narrow enough"
        )),
        "cap" => notes.push(format!("stopped after {used} blocks (cap)")),
        "failure" => notes.push("the harness failed; the tables hold what was finished".to_owned()),
        _ => {}
    }
    if b.run.preset.is_measurement() {
        notes.push(if used < 6 {
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
    notes
}

/// Those that no headline has said.
fn caution(c: &Caution) -> Option<String> {
    let metric = c.metric.as_deref();
    let kind = match c.kind {
        CautionKind::DisturbedLevels => "* disturbed",
        CautionKind::NoCeiling => "no ceiling",
        CautionKind::Twin if !metric.is_none_or(crate::verdict::is_primary) => "noisy",
        _ => return None,
    };
    let place: Vec<&str> = [c.condition.as_deref(), metric].into_iter().flatten().collect();
    Some(note(kind, &place, &c.reason))
}

/// Bursts in a few slices cost CPU that the median of slices does not hold.
fn totals(b: &Benchmark) -> Vec<String> {
    let mut notes = Vec::new();
    for condition in &b.conditions {
        for member in b.members.iter().filter(|m| m.control.is_none()) {
            let of =
                |metric| level(&b.results.levels, metric, &condition.name, &member.name)?.value;
            let (Some(typical), Some(total)) = (of("cpu-per-request"), of("cpu-per-request-total"))
            else {
                continue;
            };
            if total > BURSTS * typical {
                let text = format!(
                    "over whole blocks a request cost {}, {:.0} % more than in the typical slice",
                    number::duration(total),
                    (total / typical - 1.0) * 100.0
                );
                notes.push(note("bursts", &[&condition.name, &member.name], &text));
            }
        }
    }
    notes
}

fn invalid(block: &Block) -> String {
    let why: Vec<&str> = block.invalid.iter().map(|d: &Disturbance| d.message.as_str()).collect();
    let place = format!("block {}, attempt {}", block.number + 1, block.attempt + 1);
    note("does not stand", &[&place], &why.join("; "))
}

fn event(event: &Event, block: Option<usize>) -> String {
    let block = block.map(|n| format!("block {}", n + 1));
    let place = [block.as_deref(), event.condition.as_deref(), event.member.as_deref()];
    note(&event.kind.to_string(), &place.into_iter().flatten().collect::<Vec<_>>(), &event.message)
}
