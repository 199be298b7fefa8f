//! From records to levels, ratios and verdicts. Pure: the same record gives the same results.

pub mod maximum;
mod spoiled;

use crate::plan::MEMORY_CONDITION;
use crate::record::{
    Benchmark, Block, Cell, Control, Level, MemoryRun, Ratio, Results, START_CONDITION,
};
use crate::stats::quantile;
use crate::verdict::{self, Comparison, Spoiled, Zone};
use hdrhistogram::Histogram;
use spoiled::Found;
use std::collections::HashMap;

/// A connection must be answered so often within a window for its throughput to count.
const WINDOW_ANSWERS: f64 = 2.0;

/// Reads a figure off a memory run.
type MemoryFigure = fn(&MemoryRun) -> Option<u64>;

/// What can be read off a memory run.
const MEMORY_METRICS: [(&str, MemoryFigure); 10] = [
    ("memory-pss-idle", |r| r.idle.pss_bytes),
    ("memory-pss-loaded", |r| r.loaded.pss_bytes),
    ("memory-pss-after", |r| r.after.pss_bytes),
    ("memory-uss-idle", |r| r.idle.uss_bytes),
    ("memory-uss-loaded", |r| r.loaded.uss_bytes),
    ("memory-uss-after", |r| r.after.uss_bytes),
    ("memory-rss-idle", |r| r.idle.rss_bytes),
    ("memory-rss-loaded", |r| r.loaded.rss_bytes),
    ("memory-rss-after", |r| r.after.rss_bytes),
    ("memory-peak", |r| r.peak_bytes),
];

/// What one block says of one member under one condition.
struct Observed {
    /// Answers a second, by round.
    throughput: Vec<f64>,
    /// A slice is too short for the latency: it measures its own edges.
    is_edgy: bool,
    /// Nanoseconds a right answer, spill included, by round.
    cpu: Option<Vec<f64>>,
    /// The same over the whole block: what falls into few rounds (a long collection, say) is
    /// in it, and whatever slowed the machine down meanwhile.
    cpu_total: Option<f64>,
    histogram: Histogram<u64>,
    max_ns: Option<u64>,
}

/// Computes levels and ratios of everything that `benchmark` holds; ignores its results.
///
/// # Errors
/// When a histogram is damaged; names block, condition and member.
pub fn compute(benchmark: &Benchmark) -> Result<Results, String> {
    let (levels, compared) = raw(benchmark)?;
    let found = spoiled::find(benchmark, &levels, &compared);
    let ratios = judged(&found, &compared);
    let cautions = found.into_iter().map(|f| f.caution).collect();
    let mut results = Results { levels, ratios, cautions };
    spoiled::mark(&mut results);
    Ok(results)
}

/// Levels and log ratios, not yet judged.
fn raw(benchmark: &Benchmark) -> Result<(Vec<Level>, Vec<Compared<'_>>), String> {
    let mut levels = Vec::new();
    let members: Vec<&str> = benchmark.members.iter().map(|m| m.name.as_str()).collect();
    let pairs = pairs(benchmark);
    let mut compared = Vec::new();
    for condition in &benchmark.conditions {
        let mut observed: Observations<'_, Observed> = HashMap::new();
        for block in benchmark.used_blocks() {
            for cell in block.cells.iter().filter(|c| c.condition == condition.name) {
                if let Some(o) = observe(block, cell)? {
                    observed.entry(cell.member.as_str()).or_default().push((block.number, o));
                }
            }
        }
        Part {
            condition: &condition.name,
            members: &members,
            pairs: &pairs,
            levels: &mut levels,
            compared: &mut compared,
        }
        .condition(&observed);
    }
    let singles = [start(benchmark)].into_iter().chain(memory(benchmark));
    for Single { condition, metric, unit, observed, absent } in singles {
        Part {
            condition,
            members: &members,
            pairs: &pairs,
            levels: &mut levels,
            compared: &mut compared,
        }
        .single(metric, unit, &observed, absent);
    }
    Ok((levels, compared))
}

/// Results and decisions of everything that `benchmark` holds.
///
/// # Errors
/// As [`compute`].
pub fn finish(benchmark: &mut Benchmark) -> Result<(), String> {
    let surprises = maximum::surprises(benchmark)?;
    benchmark.decisions = maximum::decisions(&surprises, &benchmark.rechecks);
    benchmark.results = compute(benchmark)?;
    Ok(())
}

/// Zone and log ratios of every primary comparison that further blocks would narrow.
///
/// # Errors
/// As [`compute`].
pub fn primary(benchmark: &Benchmark) -> Result<Vec<(Zone, Vec<f64>)>, String> {
    let (_, compared) = raw(benchmark)?;
    let narrowed = |c: &&Compared<'_>| c.is_primary() && c.condition != MEMORY_CONDITION;
    Ok(compared
        .iter()
        .filter(narrowed)
        .map(|c| (Zone::of(c.metric), c.log_ratios.clone()))
        .collect())
}

/// A pair under one condition, before it is judged.
struct Compared<'a> {
    metric: &'static str,
    condition: &'a str,
    pair: Pair<'a>,
    log_ratios: Vec<f64>,
}

/// Two members, a over b.
#[derive(Clone, Copy)]
struct Pair<'a> {
    a: &'a str,
    b: &'a str,
    /// The subject and its twin.
    twin: bool,
}

impl Compared<'_> {
    /// Of two subjects, in a metric that claims are made about.
    fn is_primary(&self) -> bool {
        !self.pair.twin && verdict::is_primary(self.metric)
    }
}

/// Observations of each member, each with its block's number.
type Observations<'a, T> = HashMap<&'a str, Vec<(usize, T)>>;

/// Every two subjects, the later over the earlier one, and the twin over its subject.
fn pairs(benchmark: &Benchmark) -> Vec<Pair<'_>> {
    let subjects: Vec<&str> =
        benchmark.members.iter().filter(|m| m.control.is_none()).map(|m| &*m.name).collect();
    let mut pairs = Vec::new();
    for (i, b) in subjects.iter().enumerate() {
        pairs.extend(subjects[i + 1..].iter().map(|a| Pair { a, b, twin: false }));
    }
    let twins = benchmark.members.iter().filter(|m| m.control == Some(Control::Twin));
    let first = subjects.first().copied();
    pairs.extend(twins.filter_map(|t| Some(Pair { a: &t.name, b: first?, twin: true })));
    pairs
}

/// All verdicts of a run are given together: the chance of one false claim among all is what
/// is kept small.
fn judged(found: &[Found], compared: &[Compared<'_>]) -> Vec<Ratio> {
    let spoiled: Vec<Vec<Spoiled>> = compared.iter().map(|c| spoiled::of(found, c)).collect();
    let comparisons: Vec<Comparison<'_>> = compared
        .iter()
        .zip(&spoiled)
        .map(|(c, spoiled)| Comparison {
            metric: c.metric,
            primary: c.is_primary(),
            log_ratios: &c.log_ratios,
            spoiled,
        })
        .collect();
    let judgements = verdict::judge(&comparisons);
    compared
        .iter()
        .zip(judgements)
        .filter_map(|(c, judgement)| {
            let estimate = judgement.estimate;
            // What was asked for and could not be compared is said; the rest would be noise.
            if estimate.is_none() && !c.is_primary() {
                return None;
            }
            let interval = estimate.and_then(|e| e.interval);
            Some(Ratio {
                metric: c.metric.to_owned(),
                condition: c.condition.to_owned(),
                a: c.pair.a.to_owned(),
                b: c.pair.b.to_owned(),
                ratio: estimate.map(|e| e.ratio),
                low: interval.map(|i| i.0),
                high: interval.map(|i| i.1),
                blocks: c.log_ratios.len(),
                verdict: judgement.verdict,
                reason: judgement.reason,
                p_adjusted: judgement.p_adjusted,
                exploratory: judgement.exploratory,
            })
        })
        .collect()
}

/// `None` when the member did not last through all rounds (its rounds are not the others')
/// or failed too often.
fn observe(block: &Block, cell: &Cell) -> Result<Option<Observed>, String> {
    if !cell.is_usable() {
        return Ok(None);
    }
    let histogram = cell
        .latency
        .unpack()
        .map_err(|e| format!("block {}, {}, {}: {e}", block.number, cell.condition, cell.member))?;
    let seconds = cell.window_ns as f64 / 1e9;
    // Too few answers fall between its edges.
    let is_edgy =
        !histogram.is_empty() && histogram.mean() * WINDOW_ANSWERS > cell.window_ns as f64;
    let throughput = cell.slices.in_window.iter().map(|&n| n as f64 / seconds).collect();
    let s = &cell.slices;
    let spent: Option<Vec<u64>> =
        s.cpu_ns.iter().zip(&s.spill_ns).map(|(own, spill)| Some((*own)? + (*spill)?)).collect();
    let each = |spent: &u64, ok: &u64| *spent as f64 / *ok as f64;
    let cpu = spent.as_ref().map(|all| all.iter().zip(&s.ok).map(|(n, ok)| each(n, ok)).collect());
    let cpu_total = spent.map(|all| each(&all.iter().sum(), &s.ok.iter().sum()));
    Ok(Some(Observed {
        throughput,
        is_edgy,
        cpu,
        cpu_total,
        histogram,
        max_ns: cell.latency.max_ns,
    }))
}

impl Observed {
    fn percentile(&self, q: f64) -> Option<f64> {
        quantile::has_enough_beyond(self.histogram.len(), q)
            .then(|| self.histogram.value_at_quantile(q) as f64)
    }
}

/// Median over rounds of ln(a / b). A round in which one side answered nothing is infinitely
/// far to that side, and the median knows how to take that; one in which both did says
/// nothing.
fn median_ratio(a: &[f64], b: &[f64]) -> Option<f64> {
    let logs: Vec<f64> =
        a.iter().zip(b).map(|(x, y)| (x / y).ln()).filter(|d| !d.is_nan()).collect();
    quantile::median(&logs)
}

/// What is being computed of one condition.
struct Part<'p, 'a> {
    condition: &'a str,
    members: &'p [&'a str],
    pairs: &'p [Pair<'a>],
    levels: &'p mut Vec<Level>,
    compared: &'p mut Vec<Compared<'a>>,
}

impl Part<'_, '_> {
    fn condition(&mut self, observed: &Observations<'_, Observed>) {
        const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)];
        // Decided over all blocks: leaving out the slow ones would favour who has some.
        let edgy: Vec<&str> = observed
            .iter()
            .filter(|(_, all)| 2 * all.iter().filter(|(_, o)| o.is_edgy).count() > all.len())
            .map(|(member, _)| *member)
            .collect();
        for member in self.members {
            let blocks = observed.get(member).map_or(&[][..], Vec::as_slice);
            let values = |f: &dyn Fn(&Observed) -> Option<f64>| -> Vec<f64> {
                blocks.iter().filter_map(|(_, o)| f(o)).collect()
            };
            let (rates, absent) = if edgy.contains(member) {
                (Vec::new(), "answers take longer than half a slice")
            } else {
                (values(&|o| quantile::median(&o.throughput)), "no usable block")
            };
            self.level(member, "throughput", "req/s", &rates, absent);
            for (metric, q) in QUANTILES {
                self.level(
                    member,
                    metric,
                    "ns",
                    &values(&|o| o.percentile(q)),
                    "fewer than 10 samples beyond it",
                );
            }
            self.max(member, blocks);
            let absent = "no right answer, or CPU time is unknown";
            let typical = values(&|o| quantile::median(o.cpu.as_deref()?));
            self.level(member, "cpu-per-request", "ns", &typical, absent);
            let total = values(&|o| o.cpu_total);
            self.level(member, "cpu-per-request-total", "ns", &total, absent);
        }
        let not_edgy: Observations<'_, &Observed> = observed
            .iter()
            .filter(|(member, _)| !edgy.contains(member))
            .map(|(&member, blocks)| (member, blocks.iter().map(|(n, o)| (*n, o)).collect()))
            .collect();
        self.ratios(&not_edgy, "throughput", &|a, b| median_ratio(&a.throughput, &b.throughput));
        for (metric, q) in QUANTILES {
            self.ratios(observed, metric, &|a, b| Some((a.percentile(q)? / b.percentile(q)?).ln()));
        }
        self.ratios(observed, "cpu-per-request", &|a, b| {
            median_ratio(a.cpu.as_deref()?, b.cpu.as_deref()?)
        });
        self.ratios(observed, "cpu-per-request-total", &|a, b| {
            Some((a.cpu_total? / b.cpu_total?).ln())
        });
    }

    fn level(&mut self, member: &str, metric: &str, unit: &str, values: &[f64], absent: &str) {
        let interval = quantile::median_interval(values);
        let value = quantile::median(values);
        self.levels.push(Level {
            metric: metric.to_owned(),
            condition: self.condition.to_owned(),
            member: member.to_owned(),
            value,
            low: interval.map(|i| i.0),
            high: interval.map(|i| i.1),
            unit: unit.to_owned(),
            n: values.len(),
            withheld: value.is_none().then(|| absent.to_owned()),
            marks: Vec::new(),
        });
    }

    /// The longest of all blocks; it has no interval and is never judged.
    fn max(&mut self, member: &str, blocks: &[(usize, Observed)]) {
        let value = blocks.iter().filter_map(|(_, o)| o.max_ns).max();
        self.levels.push(Level {
            metric: "max".to_owned(),
            condition: self.condition.to_owned(),
            member: member.to_owned(),
            value: value.map(|v| v as f64),
            low: None,
            high: None,
            unit: "ns".to_owned(),
            n: blocks.len(),
            withheld: value.is_none().then(|| "no right answer".to_owned()),
            marks: Vec::new(),
        });
    }

    fn ratios<T>(
        &mut self,
        observed: &Observations<'_, T>,
        metric: &'static str,
        log_ratio: &dyn Fn(&T, &T) -> Option<f64>,
    ) {
        for &pair in self.pairs {
            let of = |member| observed.get(member).map_or(&[][..], Vec::as_slice);
            let (xs, ys) = (of(pair.a), of(pair.b));
            // Only blocks that both completed: a ratio never crosses blocks.
            let log_ratios: Vec<f64> = xs
                .iter()
                .filter_map(|(block, x)| {
                    let (_, y) = ys.iter().find(|(other, _)| other == block)?;
                    log_ratio(x, y).filter(|d| d.is_finite())
                })
                .collect();
            let condition = self.condition;
            self.compared.push(Compared { metric, condition, pair, log_ratios });
        }
    }

    /// A metric with one number a block or repeat.
    fn single(
        &mut self,
        metric: &'static str,
        unit: &str,
        observed: &Observations<'_, f64>,
        absent: &str,
    ) {
        for member in self.members {
            let values: Vec<f64> =
                observed.get(member).into_iter().flatten().map(|v| v.1).collect();
            self.level(member, metric, unit, &values, absent);
        }
        self.ratios(observed, metric, &|a, b| Some((a / b).ln()));
    }
}

/// A metric with one number a block or repeat.
struct Single<'a> {
    condition: &'static str,
    metric: &'static str,
    unit: &'static str,
    observed: Observations<'a, f64>,
    /// Why there may be no number.
    absent: &'static str,
}

fn start(benchmark: &Benchmark) -> Single<'_> {
    let mut observed: Observations<'_, f64> = HashMap::new();
    for block in benchmark.used_blocks() {
        for (member, &ns) in &block.time_to_ready_ns {
            observed.entry(member.as_str()).or_default().push((block.number, ns as f64));
        }
    }
    Single {
        condition: START_CONDITION,
        metric: "time-to-ready",
        unit: "ns",
        observed,
        absent: "it never became ready",
    }
}

fn memory(benchmark: &Benchmark) -> impl Iterator<Item = Single<'_>> {
    MEMORY_METRICS.into_iter().map(|(metric, read)| {
        let mut observed: Observations<'_, f64> = HashMap::new();
        for run in &benchmark.memory {
            if let Some(bytes) = read(run) {
                observed.entry(run.member.as_str()).or_default().push((run.repeat, bytes as f64));
            }
        }
        Single {
            condition: MEMORY_CONDITION,
            metric,
            unit: "bytes",
            observed,
            absent: "not measured, or unknown on this system",
        }
    })
}
