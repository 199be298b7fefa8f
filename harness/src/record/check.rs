//! Whether a record hangs together: what types alone cannot say. The same checks for the
//! lines of a journal, one by one, and for the whole of `benchmark.json`.
//!
//! Does not ask whether figures are good, nor whether the results follow from them.

use super::{Benchmark, Block, Cell, MemoryRun, START_CONDITION, Slices};
use crate::plan::{Condition, MEMORY_CONDITION};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashSet;

/// No time (ns; 11 days), number of bytes or requests in a record is as large. Sums of what
/// is smaller do not overflow.
const IMPLAUSIBLE: u64 = 1_000_000_000_000_000;
/// No number in a plan is as large: ms, rounds, blocks, connections or requests.
const IMPLAUSIBLE_PLAN: u64 = 10_000_000;

/// Checks the whole.
///
/// # Errors
/// Names the first thing that is wrong, and where.
pub fn benchmark(b: &Benchmark) -> Result<(), String> {
    begin(b)?;
    for (i, one) in b.blocks.iter().enumerate() {
        block(b, &b.blocks[..i], one)?;
    }
    for (i, one) in b.rechecks.iter().enumerate() {
        recheck(b, &b.rechecks[..i], one)?;
    }
    for (i, one) in b.memory.iter().enumerate() {
        memory(b, &b.memory[..i], one)?;
    }
    results(b)
}

/// Checks what is known before anything is measured.
///
/// # Errors
/// As [`benchmark`].
pub fn begin(b: &Benchmark) -> Result<(), String> {
    plausible(&b.run.preset, IMPLAUSIBLE_PLAN).map_err(|e| format!("preset: {e}"))?;
    plausible(&b.conditions, IMPLAUSIBLE_PLAN).map_err(|e| format!("conditions: {e}"))?;
    let mut names = HashSet::new();
    for member in &b.members {
        if !names.insert(&member.name) {
            return Err(format!("two members are called `{}`", member.name));
        }
    }
    if b.members.first().is_none_or(|first| first.control.is_some()) {
        return Err("the first member is no subject".to_owned());
    }
    let mut names = HashSet::from([MEMORY_CONDITION, START_CONDITION]);
    for c in &b.conditions {
        if !names.insert(&c.name) {
            return Err(format!("two conditions are called `{}`", c.name));
        }
        if c.connections == 0 || c.rounds == 0 || c.window_ms == 0 {
            return Err(format!("condition {}: connections, rounds or window are 0", c.name));
        }
    }
    if b.run.layout.subject.is_empty() || b.run.layout.load.is_empty() {
        return Err("the layout leaves the subjects or the generator without CPUs".to_owned());
    }
    Ok(())
}

/// Checks a block; `earlier` are those before it.
///
/// # Errors
/// As [`benchmark`].
pub fn block(b: &Benchmark, earlier: &[Block], block: &Block) -> Result<(), String> {
    let blocks = b.run.preset.blocks;
    if block.number >= blocks {
        return Err(format!("block {}: the plan has {blocks}, counted from 0", block.number));
    }
    let attempts = earlier.iter().filter(|e| e.number == block.number).count();
    if block.attempt != attempts {
        return Err(format!(
            "block {}: attempt {} comes where attempt {attempts} is due",
            block.number, block.attempt
        ));
    }
    content(b, block).map_err(|e| format!("block {}: {e}", block.number))
}

/// Checks a recheck; `earlier` are those before it. Their numbers go on behind the plan's.
///
/// # Errors
/// As [`benchmark`].
pub fn recheck(b: &Benchmark, earlier: &[Block], block: &Block) -> Result<(), String> {
    let due = b.run.preset.blocks + earlier.len();
    if block.number != due {
        return Err(format!("recheck {}: recheck {due} is due", block.number));
    }
    content(b, block).map_err(|e| format!("recheck {}: {e}", block.number))
}

fn content(b: &Benchmark, block: &Block) -> Result<(), String> {
    plausible(block, IMPLAUSIBLE)?;
    let in_order = block.start_order.iter().chain(block.time_to_ready_ns.keys());
    in_order.map(String::as_str).try_for_each(|name| member(b, name))?;
    let conditions = block.condition_order.iter().chain(block.weather.iter().map(|w| &w.condition));
    conditions.map(String::as_str).try_for_each(|name| condition(b, name).map(drop))?;
    let mut seen = HashSet::new();
    for one in &block.cells {
        let at = format!("{}, {}", one.condition, one.member);
        if !seen.insert((&one.condition, &one.member)) {
            return Err(format!("{at}: there are two such cells"));
        }
        cell(b, one).map_err(|e| format!("{at}: {e}"))?;
    }
    Ok(())
}

fn cell(b: &Benchmark, cell: &Cell) -> Result<(), String> {
    member(b, &cell.member)?;
    let condition = condition(b, &cell.condition)?;
    if !cell.counts.is_conserved() {
        return Err("`sent` is not the sum of the outcomes".to_owned());
    }
    if cell.wrong_status_by_code.values().sum::<u64>() != cell.counts.wrong_status {
        return Err("`wrong_status_by_code` does not sum up to `wrong_status`".to_owned());
    }
    if cell.window_ns == 0 {
        return Err("`window_ns` is 0".to_owned());
    }
    slices(&cell.slices, condition.rounds)?;
    let all = [
        ("latency", &cell.latency),
        ("failed_latency", &cell.failed_latency),
        ("connect", &cell.connect),
    ];
    all.into_iter().try_for_each(|(name, latency)| {
        latency.unpack().map(drop).map_err(|e| format!("`{name}`: {e}"))
    })
}

fn slices(s: &Slices, rounds: usize) -> Result<(), String> {
    let lengths = [
        s.in_window.len(),
        s.ok.len(),
        s.cpu_ns.len(),
        s.spill_ns.len(),
        s.wall_ns.len(),
        s.in_flight_ns.len(),
        s.generator_cpu_ns.len(),
        s.generator_busiest_permille.len(),
        s.generator_run_delay_ns.len(),
    ];
    if lengths.iter().any(|&n| n != lengths[0]) {
        return Err(format!("`slices` have unequal lengths {lengths:?}"));
    }
    if lengths[0] > rounds {
        return Err(format!("{} slices, but {rounds} rounds were planned", lengths[0]));
    }
    Ok(())
}

/// Checks a memory run; `earlier` are those before it.
///
/// # Errors
/// As [`benchmark`].
pub fn memory(b: &Benchmark, earlier: &[MemoryRun], run: &MemoryRun) -> Result<(), String> {
    let at = |e: String| format!("memory run {}: {e}", run.number);
    plausible(run, IMPLAUSIBLE).and_then(|()| member(b, &run.member)).map_err(at)?;
    if run.repeat >= b.run.preset.memory_repeats {
        return Err(at(format!("the plan has {} repeats", b.run.preset.memory_repeats)));
    }
    // They come in the order of their numbers; only those that failed are left out.
    if run.number > earlier.len() + b.failed_memory_runs() {
        return Err(at("one before it is missing".to_owned()));
    }
    if earlier.last().is_some_and(|last| last.number >= run.number)
        || earlier.iter().any(|e| e.repeat == run.repeat && e.member == run.member)
    {
        return Err(at(format!("repeat {} of {} is there already", run.repeat, run.member)));
    }
    Ok(())
}

fn results(b: &Benchmark) -> Result<(), String> {
    let known = |member_name: Option<&str>, condition_name: Option<&str>| {
        member_name.map_or(Ok(()), |name| member(b, name))?;
        let special = |name: &str| [MEMORY_CONDITION, START_CONDITION].contains(&name);
        let named = condition_name.filter(|name| !special(name));
        named.map_or(Ok(()), |name| condition(b, name).map(drop))
    };
    for l in &b.results.levels {
        known(Some(&l.member), Some(&l.condition))
            .and_then(|()| interval(l.value, l.low, l.high))
            .map_err(|e| format!("level {} {} {}: {e}", l.metric, l.condition, l.member))?;
    }
    for r in &b.results.ratios {
        known(Some(&r.a), Some(&r.condition))
            .and_then(|()| known(Some(&r.b), None))
            .and_then(|()| interval(r.ratio, r.low, r.high))
            .and_then(|()| positive(r.ratio))
            .map_err(|e| format!("ratio {} {} {} / {}: {e}", r.metric, r.condition, r.a, r.b))?;
    }
    for c in &b.results.cautions {
        known(c.member.as_deref(), c.condition.as_deref())
            .map_err(|e| format!("caution `{}`: {e}", c.reason))?;
    }
    for d in &b.decisions {
        known(d.member.as_deref(), Some(&d.condition))
            .map_err(|e| format!("decision `{}`: {e}", d.reason))?;
    }
    Ok(())
}

fn positive(value: Option<f64>) -> Result<(), String> {
    if value.is_none_or(|v| v > 0.0) { Ok(()) } else { Err("is not above 0".to_owned()) }
}

fn interval(value: Option<f64>, low: Option<f64>, high: Option<f64>) -> Result<(), String> {
    match (value, low, high) {
        (_, None, None) => Ok(()),
        (Some(value), Some(low), Some(high)) if low <= value && value <= high => Ok(()),
        _ => Err("the interval does not hold the value".to_owned()),
    }
}

fn member(b: &Benchmark, name: &str) -> Result<(), String> {
    let known = b.members.iter().any(|m| m.name == name);
    if known { Ok(()) } else { Err(format!("there is no member `{name}`")) }
}

fn condition<'a>(b: &'a Benchmark, name: &str) -> Result<&'a Condition, String> {
    let found = b.conditions.iter().find(|c| c.name == name);
    found.ok_or_else(|| format!("there is no condition `{name}`"))
}

fn plausible(part: &impl Serialize, limit: u64) -> Result<(), String> {
    let value = serde_json::to_value(part).map_err(|e| e.to_string())?;
    let found = implausible(&value, limit);
    found.map_or(Ok(()), |n| Err(format!("{n} is no plausible number")))
}

fn implausible(value: &Value, limit: u64) -> Option<u64> {
    match value {
        Value::Number(n) => n.as_u64().filter(|n| *n >= limit),
        Value::Array(all) => all.iter().find_map(|v| implausible(v, limit)),
        Value::Object(all) => all.values().find_map(|v| implausible(v, limit)),
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}
