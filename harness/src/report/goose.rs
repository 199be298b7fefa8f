//! The figures of one run of the second engine: fields and lines that mean what the first
//! engine's mean are called the same, and every figure stands under the engine's name.

use super::load::{Summary, failures, outcomes};
use super::number;
use crate::goose::{GOOSE, Report};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What `harness load --engine goose --format json` prints.
#[derive(Debug, Clone, Serialize)]
pub struct GooseReport {
    /// Which engine measured: engines are never mixed.
    pub engine: &'static str,
    /// Its version.
    pub version: String,
    /// Where the requests went.
    pub target: String,
    /// Always closed.
    pub pace: &'static str,
    /// Exact length of the window.
    pub duration_ns: u64,
    /// Requests sent within the window.
    pub sent: u64,
    /// Right answers.
    pub ok: u64,
    /// All others, by kind; together with `ok` they are `sent`.
    pub failures: BTreeMap<&'static str, u64>,
    /// Wrong statuses, by code.
    pub wrong_status_by_code: BTreeMap<u16, u64>,
    /// Right answers complete within the window, a second.
    pub throughput: f64,
    /// From before a request was handed to the client until its body was read.
    pub latency_ns: Summary,
    /// Connections.
    pub connections: Connections,
    /// CPU time of its process for a request; null where the system does not tell.
    pub cpu_ns_per_request: Option<f64>,
    /// First wrong answers and errors, escaped and cut.
    pub offenders: Vec<String>,
}

/// Connections of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Connections {
    /// Asked for: users, each with one of its own.
    asked: usize,
    /// That carried an answer, warm-up included.
    used: u64,
}

impl GooseReport {
    /// Of a run; `latency` is its histogram, `target` is for people.
    pub fn new(
        report: &Report,
        latency: &Histogram<u64>,
        target: String,
        connections: usize,
    ) -> Self {
        Self {
            engine: GOOSE,
            version: report.version.clone(),
            target,
            pace: "closed pace",
            duration_ns: report.window_ns,
            sent: report.counts.sent,
            ok: report.counts.ok,
            failures: failures(&report.counts),
            wrong_status_by_code: report.wrong_status_by_code.clone(),
            throughput: report.throughput(),
            latency_ns: Summary::new(latency, report.latency.max_ns),
            connections: Connections { asked: connections, used: report.connections_used },
            cpu_ns_per_request: report.cpu_ns_per_request(),
            offenders: report.offenders.clone(),
        }
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let mut line = |name: &str, text: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{name:14}{text}");
        };
        line("engine", format!("{} {}", self.engine, self.version));
        let Connections { asked, used } = self.connections;
        line("target", format!("{}, {asked} connections, {}", self.target, self.pace));
        let (rate, seconds) =
            (number::three_digits(self.throughput), self.duration_ns as f64 / 1e9);
        line("throughput", format!("{rate} req/s over {seconds:.2} s"));
        line("latency", self.latency_ns.line());
        outcomes(&mut line, (self.sent, self.ok), &self.failures, &self.wrong_status_by_code);
        line("connections", format!("{used} used"));
        if let Some(ns) = self.cpu_ns_per_request {
            line("generator", format!("{} CPU a request", number::duration(ns)));
        }
        for offender in &self.offenders {
            line("wrong answer", format!("\"{offender}\""));
        }
        out
    }
}
