//! Other load generators, run as programs of their own, each with its defaults but for
//! connections, time and one thread (goose takes one for each of the generator's CPUs).

use super::{Bench, PATH};
use crate::goose::{GOOSE, Goose, Order, Request};
use crate::manifest::Argv;
use crate::process::{Guard, Interrupt, command};
use anyhow::Context;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::net::SocketAddr;
use std::time::Duration;

/// Longest that a peer may take beyond its slice to start and end.
const GRACE: Duration = Duration::from_secs(20);
/// Before goose's window, which it measures by itself.
const GOOSE_WARM_UP_MS: u64 = 500;

/// A program that loads.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Name in tables.
    pub name: String,
    /// As it names itself.
    pub version: String,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Wrk,
    Oha,
    Autocannon,
    Goose(Goose),
}

/// One run of a peer.
pub struct Run {
    /// Answers that it counted.
    pub requests: u64,
    /// Requests that the server had of it.
    pub served: u64,
    /// CPU time of its process, start and end included, unless it accounts for itself.
    pub cpu_ns: u64,
    /// The time over which it counted.
    pub took: Duration,
}

/// The peers on `PATH`.
pub fn find(guard: &Guard, interrupt: &Interrupt) -> Vec<Peer> {
    let version = |args: &[&str]| {
        let argv = Argv::new(args.iter().map(|&a| a.to_owned()).collect())?;
        // wrk names its version and then fails for want of a URL.
        let finished = command::finish(&argv, "", GRACE, guard, interrupt).ok()?;
        let text = finished.output + &finished.errors.text();
        text.lines().find(|l| l.chars().any(|c| c.is_ascii_digit())).map(|l| l.trim().to_owned())
    };
    let mut peers = Vec::new();
    let mut add = |name: &str, kind, version: Option<String>| {
        if let Some(version) = version {
            // wrk goes on with its event library and its author.
            let version = version.split(" [").next().unwrap_or_default().to_owned();
            peers.push(Peer { name: name.to_owned(), version, kind });
        }
    };
    add("wrk", Kind::Wrk, version(&["wrk", "--version"]));
    add("oha", Kind::Oha, version(&["oha", "--version"]));
    add("autocannon", Kind::Autocannon, version(&["autocannon", "--version"]));
    peers
}

impl Peer {
    /// Goose, once it is built.
    pub fn goose(goose: Goose, version: String) -> Self {
        Self { name: GOOSE.to_owned(), version, kind: Kind::Goose(goose) }
    }

    /// Loads `address` for `window`, pinned to the generator's CPUs.
    ///
    /// # Errors
    /// When it cannot be run or its output cannot be read.
    pub fn run(
        &self,
        bench: &Bench<'_>,
        address: SocketAddr,
        connections: usize,
        window: Duration,
    ) -> anyhow::Result<Run> {
        let seconds = format!("{}", window.as_secs_f64());
        let url = format!("http://{address}{PATH}");
        let c = connections.to_string();
        let tool: Vec<&str> = match &self.kind {
            // wrk takes whole seconds.
            Kind::Wrk => vec!["wrk", "-t1", "-c", &c, "-d", &seconds, &url],
            Kind::Oha => {
                vec!["oha", "--no-tui", "--output-format", "json", "-c", &c, "-z", &seconds, &url]
            }
            Kind::Autocannon => vec!["autocannon", "--json", "-c", &c, "-d", &seconds, &url],
            Kind::Goose(goose) => return run_goose(goose, bench, address, connections, window),
        };
        let argv = Argv::new(tool.into_iter().map(str::to_owned).collect()).context("a program")?;
        let before = children_cpu_ns();
        let finished = command::finish(&argv, "", window + GRACE, bench.guard, bench.interrupt)?;
        let cpu_ns = children_cpu_ns().saturating_sub(before);
        let (requests, took) = self.read(&finished.output).with_context(|| {
            let said: String = finished.output.chars().take(300).collect();
            format!("{} said {said:?}{}", self.name, finished.errors.quote())
        })?;
        Ok(Run { requests, served: requests, cpu_ns, took })
    }

    /// Requests, and the time over which they were counted.
    fn read(&self, text: &str) -> Option<(u64, Duration)> {
        match self.kind {
            Kind::Wrk => {
                // "  93402 requests in 1.00s, 15.8MB read"
                let line = text.lines().find(|l| l.contains(" requests in "))?;
                let (n, rest) = line.trim().split_once(" requests in ")?;
                let seconds = rest.split('s').next()?.parse().ok()?;
                Some((n.parse().ok()?, Duration::from_secs_f64(seconds)))
            }
            Kind::Oha => {
                let json: serde_json::Value = serde_json::from_str(text.trim()).ok()?;
                let seconds = json["summary"]["total"].as_f64()?;
                let n = (json["summary"]["requestsPerSec"].as_f64()? * seconds).round();
                Some((n as u64, Duration::from_secs_f64(seconds)))
            }
            Kind::Autocannon => {
                let start = text.find('{')?;
                let json: serde_json::Value = serde_json::from_str(text[start..].trim()).ok()?;
                let seconds = json["duration"].as_f64()?;
                Some((json["requests"]["total"].as_u64()?, Duration::from_secs_f64(seconds)))
            }
            Kind::Goose(_) => None,
        }
    }
}

fn run_goose(
    goose: &Goose,
    bench: &Bench<'_>,
    address: SocketAddr,
    connections: usize,
    window: Duration,
) -> anyhow::Result<Run> {
    let order = Order {
        address,
        connections,
        threads: None,
        warm_up_ms: GOOSE_WARM_UP_MS,
        window_ms: window.as_millis() as u64,
        timeout_ms: 5_000,
        request: Request {
            method: "GET".to_owned(),
            target: PATH.to_owned(),
            headers: vec![("Host".to_owned(), "127.0.0.1".to_owned())],
            body: None,
            status: 200,
            expected_body: None,
        },
    };
    let report = goose.run(&order, bench.guard, bench.interrupt)?;
    let counts = report.counts;
    anyhow::ensure!(counts.failures() == 0, "goose got wrong answers: {counts:?}");
    Ok(Run {
        requests: report.in_window,
        served: report.ended,
        cpu_ns: report.cpu_ns.context("CPU time is unknown here")?,
        took: Duration::from_nanos(report.window_ns),
    })
}

/// CPU time of all children that have ended and were waited for.
fn children_cpu_ns() -> u64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return 0 };
    let us = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    u64::try_from(us).unwrap_or(0) * 1000
}
