//! The rule for surprising maxima. A maximum is one request; before it is quoted, somebody has
//! to ask whether it was the service's. Never judged, only quoted or not.

use super::observe;
use crate::host::hiccup::Hiccups;
use crate::record::{Benchmark, Block, Cell, Decision};
use crate::stats::quantile;
use hdrhistogram::Histogram;

/// Name of the rule.
pub const RULE: &str = "surprising-maximum";
/// Blocks in which a surprise may repeat.
pub const RECHECKS: usize = 3;
/// Surprising is more than so many times the 99.9th percentile, which stands for the tail…
const TIMES_P999: f64 = 10.0;
/// …or more than so many times what is usual for this member's longest.
const TIMES_MEDIAN: f64 = 3.0;
/// A hiccup of the machine explains a request that it was at least half as long as…
const EXPLAINS: f64 = 0.5;
/// …and that was under way this close to it.
const NEAR_NS: u64 = 50_000_000;
/// A recheck repeats a surprise when its longest is at least so much of it.
const REPEATS: f64 = 0.5;
/// In so many of [`RECHECKS`] it has to, to be the service's.
const REPEATS_IN: usize = 2;

/// A maximum that asks for an explanation.
pub struct Surprise {
    /// Condition.
    pub condition: String,
    /// Member.
    pub member: String,
    max_ns: u64,
    why: String,
    /// Length of the hiccup of the machine that explains it.
    hiccup_ns: Option<u64>,
}

impl Surprise {
    /// Whether the machine's own account explains it.
    pub fn is_explained(&self) -> bool {
        self.hiccup_ns.is_some()
    }
}

/// Surprising maxima of subjects.
///
/// # Errors
/// When a histogram is damaged.
pub fn surprises(benchmark: &Benchmark) -> Result<Vec<Surprise>, String> {
    let mut found = Vec::new();
    for condition in &benchmark.conditions {
        for member in benchmark.members.iter().filter(|m| m.control.is_none()) {
            let cells: Vec<(&Block, &Cell)> = benchmark
                .used_blocks()
                .filter_map(|b| Some((b, b.cell(&condition.name, &member.name)?)))
                .collect();
            found.extend(surprise(&cells)?);
        }
    }
    Ok(found)
}

fn surprise(cells: &[(&Block, &Cell)]) -> Result<Option<Surprise>, String> {
    let mut maxima = Vec::new();
    let mut merged: Option<Histogram<u64>> = None;
    for (block, cell) in cells {
        let Some(observed) = observe(block, cell)? else { continue };
        maxima.extend(observed.max_ns.map(|max_ns| (max_ns, *block, *cell)));
        match &mut merged {
            Some(all) => all.add(&observed.histogram).map_err(|e| e.to_string())?,
            None => merged = Some(observed.histogram),
        }
    }
    let Some(&(max_ns, block, cell)) = maxima.iter().max_by_key(|m| m.0) else { return Ok(None) };
    let p999 = merged
        .filter(|all| quantile::has_enough_beyond(all.len(), 0.999))
        .map(|all| all.value_at_quantile(0.999) as f64);
    let usual = quantile::median(&maxima.iter().map(|m| m.0 as f64).collect::<Vec<_>>());
    let max = max_ns as f64;
    let why = if p999.is_some_and(|p| max > TIMES_P999 * p) {
        format!("more than {TIMES_P999} × p99.9")
    } else if usual.is_some_and(|u| max > TIMES_MEDIAN * u) {
        format!("more than {TIMES_MEDIAN} × the median of this member's maxima")
    } else {
        return Ok(None);
    };
    Ok(Some(Surprise {
        condition: cell.condition.clone(),
        member: cell.member.clone(),
        max_ns,
        why,
        hiccup_ns: cell.max_at_ns.and_then(|at_ns| explanation(&block.hiccups, at_ns, max_ns)),
    }))
}

/// Length of a hiccup that explains a request of `max_ns` which ended at `at_ns`.
fn explanation(hiccups: &Hiccups, at_ns: u64, max_ns: u64) -> Option<u64> {
    let (from, until) = (at_ns.saturating_sub(max_ns + NEAR_NS), at_ns + NEAR_NS);
    hiccups
        .longest
        .iter()
        .filter(|h| h.due_ns <= until && h.due_ns + h.late_ns >= from)
        .map(|h| h.late_ns)
        .filter(|late_ns| *late_ns as f64 >= EXPLAINS * max_ns as f64)
        .max()
}

/// What becomes of each surprise, as far as it was rechecked.
pub fn decisions(surprises: &[Surprise], rechecks: &[Block]) -> Vec<Decision> {
    surprises.iter().map(|s| decision(s, rechecks)).collect()
}

fn decision(s: &Surprise, rechecks: &[Block]) -> Decision {
    let ms = |ns: u64| format!("{:.3} ms", ns as f64 / 1e6);
    let (quoted, outcome) = if let Some(hiccup_ns) = s.hiccup_ns {
        let timer = ms(hiccup_ns);
        (false, format!("attributed to the machine: a timer was {timer} late at the same time"))
    } else {
        // What the machine did to a recheck is no repetition.
        let own = |b: &Block, c: &Cell| {
            let max_ns = c.latency.max_ns.filter(|_| c.is_usable())?;
            let explained = c.max_at_ns.and_then(|at| explanation(&b.hiccups, at, max_ns));
            Some(if explained.is_some() || !b.invalid.is_empty() { 0 } else { max_ns })
        };
        let again: Vec<u64> =
            rechecks.iter().filter_map(|b| own(b, b.cell(&s.condition, &s.member)?)).collect();
        let times = again.iter().filter(|ns| **ns as f64 >= REPEATS * s.max_ns as f64).count();
        match again.len() {
            n if n < RECHECKS => (
                false,
                format!("rechecked in {n} of {RECHECKS} blocks: in the raw data, not quoted"),
            ),
            n if times >= REPEATS_IN => (true, format!("repeats: {times} of {n} further blocks")),
            n => {
                let what = "in the raw data, not quoted";
                (false, format!("did not repeat ({times} of {n} further blocks): {what}"))
            }
        }
    };
    Decision {
        rule: RULE.to_owned(),
        condition: s.condition.clone(),
        member: Some(s.member.clone()),
        quoted,
        reason: format!("maximum of {}, {}; {outcome}", ms(s.max_ns), s.why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::hiccup::Hiccup;

    #[test]
    fn a_hiccup_explains_what_was_under_way_and_not_much_longer() {
        const MS: u64 = 1_000_000;
        let hiccups = |due_ms: u64, late_ms: u64| Hiccups {
            beats: 1,
            count: 1,
            longest: vec![Hiccup { late_ns: late_ms * MS, due_ns: due_ms * MS }],
            cpu_ns: None,
        };
        // A request of 100 ms that ended at 1,000 ms.
        let explained = |due_ms, late_ms| {
            explanation(&hiccups(due_ms, late_ms), 1_000 * MS, 100 * MS).is_some()
        };
        assert!(explained(920, 60));
        assert!(!explained(920, 49), "too short");
        assert!(explained(780, 80), "ended 40 ms before the request began");
        assert!(!explained(700, 80), "long over");
        assert!(explained(1_049, 60) && !explained(1_051, 60), "began long after");
    }
}
