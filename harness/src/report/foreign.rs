//! Latency in the formats of other tools. They have no place for warnings.

use super::load::failures;
use crate::load::measure::Measurement;
use crate::stats::quantile;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// HdrHistogram's percentile distribution, milliseconds, as its plotters read it. `max_ns` is
/// the exact longest; where that was beyond the histogram, no percentile has it.
pub fn hgrm(histogram: &Histogram<u64>, max_ns: u64) -> String {
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
        max_ns as f64 / 1e6,
        histogram.len()
    );
    let _ = writeln!(out, "#[Buckets = {:12}, SubBuckets     = {:12}]", histogram.buckets(), 2048);
    out
}

/// The shape in which oha prints JSON, for tools that read it. Seconds; null where there
/// is nothing to say, or too few samples to say it. `expected_status` is that of right answers.
pub fn oha(m: &Measurement, expected_status: u16) -> serde_json::Value {
    let t = &m.tally;
    let seconds = |ns: f64| ns / 1e9;
    let some = !t.latency.is_empty();
    let quantile = |q: f64| {
        let known = quantile::has_enough_beyond(t.latency.len(), q);
        known.then(|| seconds(t.latency.value_at_quantile(q) as f64))
    };
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
    let mut statuses = t.wrong_status_by_code.clone();
    let expected = t.counts.ok + t.counts.wrong_body;
    if expected > 0 {
        statuses.insert(expected_status, expected);
    }
    let total = seconds(m.slice.window_ns as f64);
    serde_json::json!({
        "summary": {
            "successRate": (t.counts.sent > 0).then(|| t.counts.ok as f64 / t.counts.sent as f64),
            "total": total,
            "slowest": (t.max_ns > 0).then(|| seconds(t.max_ns as f64)),
            "fastest": some.then(|| seconds(t.latency.min() as f64)),
            "average": some.then(|| seconds(t.latency.mean())),
            "requestsPerSec": m.throughput(),
            "totalData": t.bytes,
            "sizePerRequest": size(t.counts.ok),
            "sizePerSec": (total > 0.0).then(|| t.bytes as f64 / total),
        },
        "latencyPercentiles": percentiles,
        "errorDistribution": errors,
        "statusCodeDistribution": statuses,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Slice;
    use crate::load::tally;
    use crate::load::tally::{Counts, Tally};

    #[test]
    fn the_longest_is_exact() {
        let mut histogram = tally::histogram();
        histogram.record(1_234_567).expect("in range");
        let text = hgrm(&histogram, 70_000_123_456);
        assert!(text.contains("#[Max     =    70000.123"), "{text}");
    }

    #[test]
    fn oha_has_every_status_and_no_percentile_of_a_few() {
        let mut tally = Tally { max_ns: 5, ..Tally::default() };
        tally.latency.record_n(5, 100).expect("in range");
        tally.counts =
            Counts { sent: 104, ok: 100, wrong_body: 1, wrong_status: 3, ..tally.counts };
        tally.wrong_status_by_code = [(500, 3)].into();
        let slice = Slice { window_ns: 1_000_000_000, ..Slice::default() };
        let json = oha(&Measurement { slice, ..Measurement::of(tally) }, 201);
        assert_eq!(json["statusCodeDistribution"], serde_json::json!({"201": 101, "500": 3}));
        let percentiles = &json["latencyPercentiles"];
        for known in ["p10", "p50", "p90"] {
            assert!(percentiles[known].is_number(), "{known}: {json}");
        }
        for withheld in ["p95", "p99", "p99.9", "p99.99"] {
            assert!(percentiles[withheld].is_null(), "{withheld}: {json}");
        }
    }
}
