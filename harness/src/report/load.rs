//! The figures of one load measurement, as a wire type and as text.

use super::number;
use crate::load::measure::Measurement;
use crate::load::tally::{Counts, nanoseconds};
use crate::stats::quantile::SAMPLES_BEYOND;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Percentiles shown.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// What `harness load --format json` prints.
#[derive(Debug, Clone, Serialize)]
pub struct LoadReport {
    /// Which engine measured: engines are never mixed.
    pub engine: &'static str,
    /// Where the requests went.
    pub target: String,
    /// `closed`, or `constant` with its rate.
    pub pace: String,
    /// Exact length of the window; 0 when it never began.
    pub duration_ns: u64,
    /// The length asked for. Longer than the former when somebody asked to end, or when no
    /// connection was left.
    pub asked_duration_ns: u64,
    /// Requests whose writing began.
    pub sent: u64,
    /// Right answers.
    pub ok: u64,
    /// All others, by kind; together with `ok` they are `sent`.
    pub failures: BTreeMap<&'static str, u64>,
    /// Wrong statuses, by code.
    pub wrong_status_by_code: BTreeMap<u16, u64>,
    /// Right answers complete within the window, a second.
    pub throughput: f64,
    /// From when a request was due to its last byte.
    pub latency_ns: Summary,
    /// From its sending to its last byte; the same in a closed pace.
    pub service_time_ns: Summary,
    /// From due to sending; null in a closed pace.
    pub slip_ns: Option<Summary>,
    /// Of it, what is the generator's own: from when a connection was free.
    pub own_slip_ns: Option<Summary>,
    /// Right answers that took longer than a minute: in `max`, and in no percentile.
    pub out_of_range: u64,
    /// Requests never answered, or out of range: the top percentiles are at least what they
    /// say.
    pub lower_bound: bool,
    /// Connections.
    pub connections: Connections,
    /// Outcomes of the warm-up.
    pub warm_up: Counts,
    /// CPU time of the generator for a request; null where the system does not tell.
    pub cpu_ns_per_request: Option<f64>,
    /// What the generator noticed of itself.
    pub generator: Generator,
    /// The figures may be the generator's.
    pub generator_limited: bool,
    /// Why.
    pub generator_limits: Vec<String>,
    /// First wrong answers, escaped and cut.
    pub offenders: Vec<String>,
}

/// What a histogram says. A withheld figure is null with its reason in `withheld`.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    n: u64,
    mean: Option<f64>,
    p50: Option<u64>,
    p90: Option<u64>,
    p99: Option<u64>,
    #[serde(rename = "p99.9")]
    p999: Option<u64>,
    max: Option<u64>,
    withheld: BTreeMap<&'static str, &'static str>,
}

/// Connections of a measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Connections {
    /// Open before anything was timed.
    opened: usize,
    /// Closed by the service after a complete answer.
    server_closes: u64,
    /// Opened anew.
    reconnects: u64,
    /// Could not be opened anew.
    lost: u64,
    /// Reads that yielded bytes nobody had asked for.
    surplus: u64,
    /// Opening the first ones.
    connect_ns: Summary,
}

/// The generator's account of itself over the window.
#[derive(Debug, Clone, Serialize)]
pub struct Generator {
    threads: u32,
    cpu_ns: Option<u64>,
    busiest_thread: Option<f64>,
    run_delay_ns: Option<u64>,
    events_per_wakeup: Option<f64>,
    gap_ns: Option<f64>,
    greatest_backlog: u64,
    never_sent: u64,
}

impl Summary {
    /// Of `histogram`; `max_ns` is the exact longest, the histogram's own has three digits.
    pub fn new(histogram: &Histogram<u64>, max_ns: Option<u64>) -> Self {
        let n = histogram.len();
        let mut withheld = BTreeMap::new();
        let mut quantile = |(name, q): (&'static str, f64)| {
            if n as f64 * (1.0 - q) < SAMPLES_BEYOND {
                withheld.insert(name, "fewer than 10 samples beyond it");
                return None;
            }
            Some(histogram.value_at_quantile(q))
        };
        let [p50, p90, p99, p999] = QUANTILES.map(&mut quantile);
        let max = max_ns.or_else(|| (n > 0).then(|| histogram.max()));
        for (name, none) in [("mean", n == 0), ("max", max.is_none())] {
            if none {
                withheld.insert(name, "no sample");
            }
        }
        Self { n, mean: (n > 0).then(|| histogram.mean()), p50, p90, p99, p999, max, withheld }
    }

    pub(super) fn line(&self) -> String {
        let show = |value: Option<u64>| {
            value.map_or_else(|| "–".to_owned(), |ns| number::duration(ns as f64))
        };
        let mean = self.mean.map_or_else(|| "–".to_owned(), number::duration);
        format!(
            "mean {mean}  p50 {}  p90 {}  p99 {}  p99.9 {}  max {}  (n {})",
            show(self.p50),
            show(self.p90),
            show(self.p99),
            show(self.p999),
            show(self.max),
            number::count(self.n)
        )
    }
}

impl LoadReport {
    /// Of a measurement; `target` and `pace` are for people.
    pub fn new(m: &Measurement, target: String, pace: String) -> Self {
        let t = &m.tally;
        let a = &m.slice.account;
        let per = |sum: u64, n: u64| (n > 0).then(|| sum as f64 / n as f64);
        let exact_max = (t.latency.len() + t.out_of_range > 0).then_some(t.max_ns);
        let latency_ns = Summary::new(&t.latency, exact_max);
        let service = t.paced.as_ref().map(|p| Summary::new(&p.service_time, None));
        Self {
            engine: "lean",
            target,
            pace,
            duration_ns: m.slice.window_ns,
            asked_duration_ns: nanoseconds(m.asked),
            sent: t.counts.sent,
            ok: t.counts.ok,
            failures: failures(&t.counts),
            wrong_status_by_code: t.wrong_status_by_code.clone(),
            throughput: m.throughput(),
            service_time_ns: service.unwrap_or_else(|| latency_ns.clone()),
            latency_ns,
            slip_ns: t.paced.as_ref().map(|p| Summary::new(&p.slip, None)),
            own_slip_ns: t.paced.as_ref().map(|p| Summary::new(&p.own_slip, None)),
            out_of_range: t.out_of_range,
            lower_bound: t.counts.unfinished + t.counts.timed_out + a.never_sent + t.out_of_range
                > 0,
            connections: Connections {
                opened: m.opened,
                server_closes: t.server_closes,
                reconnects: t.reconnects,
                lost: t.lost,
                surplus: t.surplus,
                connect_ns: Summary::new(&m.connect, None),
            },
            warm_up: m.warm_up,
            cpu_ns_per_request: m.cpu_ns_per_request(),
            generator: Generator {
                threads: a.threads,
                cpu_ns: a.cpu_ns,
                busiest_thread: a.busiest_permille.map(|p| f64::from(p) / 1000.0),
                run_delay_ns: a.run_delay_ns,
                events_per_wakeup: per(a.events, a.wakeups),
                gap_ns: per(a.gap_ns, a.gaps),
                greatest_backlog: a.backlog,
                never_sent: a.never_sent,
            },
            generator_limited: !m.limits.is_empty(),
            generator_limits: m.limits.iter().map(ToString::to_string).collect(),
            offenders: t.offenders.clone(),
        }
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let mut line = |name: &str, text: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{name:14}{text}");
        };
        let seconds = self.duration_ns as f64 / 1e9;
        line(
            "target",
            format!("{}, {} connections, {}", self.target, self.connections.opened, self.pace),
        );
        let at_least = if self.generator_limited { "≥ " } else { "" };
        let rate = number::three_digits(self.throughput);
        let early = if self.duration_ns < self.asked_duration_ns {
            format!(" of {:.2} s asked for", self.asked_duration_ns as f64 / 1e9)
        } else {
            String::new()
        };
        line(
            "throughput",
            match self.duration_ns {
                0 => "nothing was measured: the window never began".to_owned(),
                _ => format!("{at_least}{rate} req/s over {seconds:.2} s{early}"),
            },
        );
        let bound =
            if self.lower_bound { "  (at least: some requests got no answer in time)" } else { "" };
        line("latency", self.latency_ns.line() + bound);
        if let Some((slip, own)) = self.slip_ns.as_ref().zip(self.own_slip_ns.as_ref()) {
            line("service time", self.service_time_ns.line());
            line("slip", slip.line());
            line("  own", own.line());
            line(
                "backlog",
                format!(
                    "at most {} due without a connection, {} never sent",
                    self.generator.greatest_backlog, self.generator.never_sent
                ),
            );
        }
        outcomes(&mut line, (self.sent, self.ok), &self.failures, &self.wrong_status_by_code);
        let c = &self.connections;
        line(
            "connections",
            format!(
                "{} opened, {} closed by the service, {} opened anew, {} lost",
                c.opened, c.server_closes, c.reconnects, c.lost
            ),
        );
        line("connecting", c.connect_ns.line());
        if let Some(ns) = self.cpu_ns_per_request {
            let busy = self.generator.busiest_thread.unwrap_or_default() * 100.0;
            line(
                "generator",
                format!(
                    "{} CPU a request, {} thread(s), the busiest {busy:.0} % busy, {} waiting for a CPU",
                    number::duration(ns),
                    self.generator.threads,
                    self.generator.run_delay_ns.map_or_else(
                        || "unknown time".to_owned(),
                        |ns| number::duration(ns as f64)
                    )
                ),
            );
        }
        for limit in &self.generator_limits {
            line("LIMITED", format!("the generator may have been the limit: {limit}"));
        }
        for offender in &self.offenders {
            line("wrong answer", format!("\"{offender}\""));
        }
        out
    }
}

/// Lines on requests; `line` writes one. `total` are those sent and those answered well.
pub(super) fn outcomes(
    line: &mut dyn FnMut(&str, String),
    total: (u64, u64),
    failures: &BTreeMap<&'static str, u64>,
    wrong_status_by_code: &BTreeMap<u16, u64>,
) {
    let (sent, ok) = (number::count(total.0), number::count(total.1));
    line("requests", format!("{sent} sent, {ok} ok"));
    for (kind, &n) in failures.iter().filter(|(_, n)| **n > 0) {
        line("", format!("{} {}", number::count(n), kind.replace('_', " ")));
    }
    for (code, &n) in wrong_status_by_code {
        line("", format!("  of these {} with status {code}", number::count(n)));
    }
}

pub(super) fn failures(counts: &Counts) -> BTreeMap<&'static str, u64> {
    BTreeMap::from([
        ("wrong_status", counts.wrong_status),
        ("wrong_body", counts.wrong_body),
        ("protocol_error", counts.protocol_error),
        ("stale_close", counts.stale_close),
        ("truncated", counts.truncated),
        ("timed_out", counts.timed_out),
        ("unfinished", counts.unfinished),
    ])
}

/// HdrHistogram's percentile distribution, milliseconds, as its plotters read it.
pub fn hgrm(histogram: &Histogram<u64>) -> String {
    let mut out = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    let mut total = 0;
    for v in histogram.iter_quantiles(5) {
        total += v.count_since_last_iteration();
        let (ms, q) = (v.value_iterated_to() as f64 / 1e6, v.quantile_iterated_to());
        let _ = if q < 1.0 {
            writeln!(out, "{ms:12.3} {q:2.12} {total:10} {:14.2}", 1.0 / (1.0 - q))
        } else {
            writeln!(out, "{ms:12.3} {q:2.12} {total:10}")
        };
    }
    let (mean, sd) =
        if histogram.is_empty() { (0.0, 0.0) } else { (histogram.mean(), histogram.stdev()) };
    let _ = writeln!(out, "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]", mean / 1e6, sd / 1e6);
    let _ = writeln!(
        out,
        "#[Max     = {:12.3}, Total count    = {:12}]",
        histogram.max() as f64 / 1e6,
        histogram.len()
    );
    let _ = writeln!(out, "#[Buckets = {:12}, SubBuckets     = {:12}]", histogram.buckets(), 2048);
    out
}

/// The shape in which oha prints JSON, for tools that read it. Seconds; null where there
/// is nothing to say.
pub fn oha(m: &Measurement) -> serde_json::Value {
    let t = &m.tally;
    let seconds = |ns: f64| ns / 1e9;
    let some = !t.latency.is_empty();
    let quantile = |q: f64| some.then(|| seconds(t.latency.value_at_quantile(q) as f64));
    let size = |n: u64| (n > 0).then(|| t.bytes as f64 / n as f64);
    let percentiles: serde_json::Map<String, serde_json::Value> = [
        ("p10", 0.1),
        ("p25", 0.25),
        ("p50", 0.5),
        ("p75", 0.75),
        ("p90", 0.9),
        ("p95", 0.95),
        ("p99", 0.99),
        ("p99.9", 0.999),
        ("p99.99", 0.9999),
    ]
    .into_iter()
    .map(|(name, q)| (name.to_owned(), serde_json::json!(quantile(q))))
    .collect();
    let errors: BTreeMap<_, _> = failures(&t.counts).into_iter().filter(|(_, n)| *n > 0).collect();
    let total = seconds(m.slice.window_ns as f64);
    serde_json::json!({
        "summary": {
            "successRate": (t.counts.sent > 0).then(|| t.counts.ok as f64 / t.counts.sent as f64),
            "total": total,
            "slowest": some.then(|| seconds(t.max_ns as f64)),
            "fastest": some.then(|| seconds(t.latency.min() as f64)),
            "average": some.then(|| seconds(t.latency.mean())),
            "requestsPerSec": m.throughput(),
            "totalData": t.bytes,
            "sizePerRequest": size(t.counts.ok),
            "sizePerSec": (total > 0.0).then(|| t.bytes as f64 / total),
        },
        "latencyPercentiles": percentiles,
        "errorDistribution": errors,
        "statusCodeDistribution": t.wrong_status_by_code,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Slice, Tally};

    fn report(tally: Tally) -> LoadReport {
        let measurement = Measurement {
            opened: 1,
            alive: 1,
            asked: std::time::Duration::from_secs(1),
            service_cpu_ns: None,
            connect: Tally::default().connect,
            warm_up: Counts::default(),
            slice: Slice::default(),
            tally,
            limits: Vec::new(),
        };
        LoadReport::new(&measurement, String::new(), String::new())
    }

    #[test]
    fn an_answer_after_more_than_a_minute_is_the_maximum() {
        let counts = Counts { sent: 1, ok: 1, ..Counts::default() };
        let max_ns = 70_000_000_000;
        let report = report(Tally { counts, out_of_range: 1, max_ns, ..Tally::default() });
        assert_eq!((report.out_of_range, report.lower_bound), (1, true));
        assert_eq!((report.latency_ns.n, report.latency_ns.max), (0, Some(max_ns)));
        assert!(report.latency_ns.mean.is_none() && report.latency_ns.withheld.contains_key("p50"));
    }

    #[test]
    fn without_requests_all_figures_are_withheld() {
        let report = report(Tally::default());
        let json = serde_json::to_value(&report).expect("serialises");
        assert_eq!((json["sent"].as_u64(), json["throughput"].as_f64()), (Some(0), Some(0.0)));
        for figure in ["mean", "p50", "p90", "p99", "p99.9", "max"] {
            assert!(json["latency_ns"][figure].is_null(), "{json}");
            assert!(json["latency_ns"]["withheld"][figure].is_string(), "{json}");
        }
        assert!(!report.text().contains("NaN") && !report.text().contains("inf"));
    }
}
