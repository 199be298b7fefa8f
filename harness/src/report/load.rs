//! The figures of one load measurement, as a wire type and as text.

use super::number;
use crate::load::measure::Measurement;
use crate::load::tally::{Counts, Paced, nanoseconds};
use crate::stats::quantile;
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
    /// From when a failed request was due until it had failed; of one that was never answered,
    /// its age at the end.
    pub failed_latency_ns: Summary,
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
    /// CPU time of the service within the window for an answer; null where it is unknown.
    pub service_cpu_ns_per_request: Option<f64>,
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
    /// Could not be opened anew, in the warm-up or later.
    lost: u64,
    /// Reads that yielded bytes nobody had asked for.
    surplus: u64,
    /// More than 1 % of the connections were opened anew or lost: the figures also measure
    /// that.
    many_reconnects: bool,
    /// Opening the first ones.
    connect_ns: Summary,
    /// Opening connections anew, within the window; in no latency.
    reconnect_ns: Summary,
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
            if !quantile::has_enough_beyond(n, q) {
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
        let lost = m.opened.saturating_sub(m.alive) as u64;
        let exact_max = (t.latency.len() + t.out_of_range > 0).then_some(t.max_ns);
        let latency_ns = Summary::new(&t.latency, exact_max);
        let of_paced = |f: fn(&Paced) -> (&Histogram<u64>, u64)| {
            let (histogram, max_ns) = f(t.paced.as_ref()?);
            Some(Summary::new(histogram, (!histogram.is_empty()).then_some(max_ns)))
        };
        let service = of_paced(|p| (&p.service_time, p.service_time_max_ns));
        let failed_max = (t.counts.failures() > 0).then_some(t.failed_max_ns);
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
            slip_ns: of_paced(|p| (&p.slip, p.slip_max_ns)),
            own_slip_ns: of_paced(|p| (&p.own_slip, p.own_slip_max_ns)),
            failed_latency_ns: Summary::new(&t.failed_latency, failed_max),
            out_of_range: t.out_of_range,
            lower_bound: t.counts.unfinished + t.counts.timed_out + a.never_sent + t.out_of_range
                > 0,
            connections: Connections {
                opened: m.opened,
                server_closes: t.server_closes,
                reconnects: t.reconnects,
                lost,
                surplus: t.surplus,
                many_reconnects: (t.reconnects + lost).saturating_mul(100) > m.opened as u64,
                connect_ns: Summary::new(&m.connect, None),
                reconnect_ns: Summary::new(&t.connect, None),
            },
            warm_up: m.warm_up,
            cpu_ns_per_request: m.cpu_ns_per_request(),
            service_cpu_ns_per_request: m.service_cpu_ns_per_request(),
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

    /// What a reader of the figures must know. Where a format has no place for it, it is told
    /// beside it.
    pub fn warnings(&self) -> Vec<String> {
        let mut all = Vec::new();
        if self.duration_ns < self.asked_duration_ns {
            all.push(format!(
                "the window ended after {:.2} of {:.2} s",
                self.duration_ns as f64 / 1e9,
                self.asked_duration_ns as f64 / 1e9
            ));
        }
        let limit = |l: &String| format!("the generator may have been the limit: {l}");
        all.extend(self.generator_limits.iter().map(limit));
        let failed = self.sent - self.ok;
        if failed > 0 {
            let kinds: Vec<String> = self
                .failures
                .iter()
                .filter(|(_, n)| **n > 0)
                .map(|(kind, n)| format!("{} {}", number::count(*n), kind.replace('_', " ")))
                .collect();
            let (failed, sent) = (number::count(failed), number::count(self.sent));
            all.push(format!("{failed} of {sent} requests failed: {}", kinds.join(", ")));
        }
        if self.lower_bound {
            all.push("top percentiles are at least what they say: requests got no answer in time, or one after more than a minute".to_owned());
        }
        let c = &self.connections;
        if c.surplus > 0 {
            all.push(format!(
                "{} times bytes came that nobody had asked for",
                number::count(c.surplus)
            ));
        }
        if c.many_reconnects {
            all.push(format!(
                "{} connections were opened anew and {} lost, more than 1 % of {}: opening them is measured, too",
                number::count(c.reconnects),
                number::count(c.lost),
                number::count(c.opened as u64)
            ));
        }
        all
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
        line(
            "throughput",
            match self.duration_ns {
                0 => "nothing was measured: the window never began".to_owned(),
                _ => format!("{at_least}{rate} req/s over {seconds:.2} s"),
            },
        );
        let bound = if self.lower_bound { "  (at least)" } else { "" };
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
        if self.sent > self.ok {
            line("failed after", self.failed_latency_ns.line());
        }
        let c = &self.connections;
        line(
            "connections",
            format!(
                "{} opened, {} closed by the service, {} opened anew, {} lost",
                c.opened, c.server_closes, c.reconnects, c.lost
            ),
        );
        line("connecting", c.connect_ns.line());
        if c.reconnects > 0 {
            line("  anew", c.reconnect_ns.line());
        }
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
        if let Some(ns) = self.service_cpu_ns_per_request {
            line("service", format!("{} CPU a request", number::duration(ns)));
        }
        for warning in self.warnings() {
            line("WARNING", warning);
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

/// Failures by kind, those that there were none of included.
pub fn failures(counts: &Counts) -> BTreeMap<&'static str, u64> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Slice, Tally};

    fn report(tally: Tally) -> LoadReport {
        LoadReport::new(&Measurement::of(tally), String::new(), String::new())
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
    fn what_a_reader_must_know_is_a_warning() {
        let mut tally = Tally { reconnects: 2, surplus: 1, ..Tally::default() };
        tally.counts = Counts { sent: 3, ok: 1, timed_out: 1, wrong_status: 1, ..tally.counts };
        let warnings = report(tally).warnings().join("\n");
        for part in [
            "after 0.00 of 1.00 s",
            "2 of 3 requests failed: 1 timed out, 1 wrong status",
            "at least what they say",
            "1 times bytes came",
            "2 connections were opened anew and 0 lost, more than 1 % of 1",
        ] {
            assert!(warnings.contains(part), "{part}: {warnings}");
        }
        let whole = Measurement {
            slice: Slice { window_ns: 1_000_000_000, ..Slice::default() },
            ..Measurement::of(Tally::default())
        };
        let report = LoadReport::new(&whole, String::new(), String::new());
        assert_eq!(report.warnings(), [""; 0]);
    }

    #[test]
    fn what_was_lost_in_the_warm_up_is_lost() {
        let few = Measurement { opened: 10, alive: 2, ..Measurement::of(Tally::default()) };
        let report = LoadReport::new(&few, String::new(), String::new());
        assert_eq!((report.connections.lost, report.connections.many_reconnects), (8, true));
        assert!(report.text().contains("8 lost"));
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
