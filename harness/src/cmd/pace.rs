//! `harness pace`: shows on this machine what the engine makes of servers of known
//! behaviour, and what the choice of a pace hides.

use super::{Unsuccessful, check_spliced, print, refuse_debug_build, say, write_spliced};
use crate::cli::Pace as Args;
use crate::host::affinity;
use crate::host::facts;
use crate::host::layout::Layout;
use crate::load::measure::{self, Measurement, Options};
use crate::load::null::{Account, Behaviour, Server};
use crate::load::{Arrivals, Pace, Target};
use crate::report::number::{count, duration};
use crate::report::table::{Format, Table};
use crate::scenario::{Expected, Request};
use hdrhistogram::Histogram;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Name of the spliced part of the document.
const SPLICE: &str = "pace";
/// Rate against the fixed delay.
const RATE: f64 = 10_000.0;
const DELAY: Duration = Duration::from_micros(500);
/// Rate against the stall: so low that a service has no trouble with it.
const STALL_RATE: f64 = 1_000.0;
const STALL: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(2));
const CONNECTIONS: usize = 50;

pub fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(file) = &args.write_docs {
        check_spliced("--write-docs", file, SPLICE)?;
    }
    refuse_debug_build("pace")?;
    // Before this thread is pinned to some of the CPUs.
    let host = facts::read();
    let layout = Layout::default_for(&host.cpus);
    say("10 s at a constant pace against a fixed delay");
    let (fixed, account) = load(&layout, Behaviour { delay: DELAY, stall: None }, constant(RATE))?;
    say("10 s at each pace against a server that stalls once for 2 s");
    let stall = Behaviour { delay: Duration::ZERO, stall: Some(STALL) };
    let (closed, _) = load(&layout, stall, Pace::Closed)?;
    let (paced, _) = load(&layout, stall, constant(STALL_RATE))?;
    let measured = crate::experiment::timestamp();
    let text = |format| {
        format!(
            "{}\n{}\nMeasured {measured} on {}, {} CPUs ({layout}), kernel {}.\n",
            fixed_table(&fixed, &account).print(format),
            stall_table(&closed, &paced).print(format),
            host.cpu_model,
            host.cpus.len(),
            host.kernel
        )
    };
    // Printed first: what cannot be written shall not be lost.
    print(&text(Format::Text))?;
    match &args.write_docs {
        Some(file) => write_spliced("--write-docs", file, SPLICE, &text(Format::Markdown)),
        None => Ok(()),
    }
}

fn constant(rate: f64) -> Pace {
    Pace::Constant { rate, arrivals: Arrivals::Uniform }
}

/// Loads a server of known behaviour, which runs on a thread on the subjects' CPUs.
fn load(
    layout: &Layout,
    behaviour: Behaviour,
    pace: Pace,
) -> anyhow::Result<(Measurement, Arc<Account>)> {
    let server = Server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), behaviour)?;
    let (address, account) = (server.address()?, server.account());
    let stop = AtomicBool::new(false);
    let request = Request {
        bytes: b"GET /users/500 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".to_vec(),
        status: 200,
        body: Expected::Any,
    };
    let options = Options {
        target: Target {
            address,
            pool: Arc::from([request]),
            open_timeout: Duration::from_secs(5),
            throttle: None,
            timeout: Duration::from_secs(10),
            stop: None,
        },
        connections: CONNECTIONS,
        threads: 1,
        cpus: Vec::new(),
        pace,
        // None: the stall is timed from the first connection.
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(10),
    };
    let (measured, served) = std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            affinity::pin(&layout.subject)?;
            server.run(&stop)
        });
        let pinned = affinity::pin(&layout.load);
        let measured = pinned.and_then(|()| measure::measure(&options, &mut || None));
        stop.store(true, Ordering::Relaxed);
        let served = server.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (measured, served)
    });
    served.map_err(|e| Unsuccessful(format!("the server failed: {e}")))?;
    let measured = measured.map_err(|e| Unsuccessful(e.to_string()))?;
    let counts = &measured.tally.counts;
    if counts.failures() > 0 || measured.alive < measured.opened {
        return Err(Unsuccessful(format!(
            "{} of {} requests failed and {} connections were lost; a known server must answer all",
            counts.failures(),
            counts.sent,
            measured.tally.lost
        ))
        .into());
    }
    Ok((measured, account))
}

fn fixed_table(m: &Measurement, account: &Account) -> Table {
    let n = account.delayed.load(Ordering::Relaxed).max(1) as f64;
    let truth = account.delay_ns.load(Ordering::Relaxed) as f64 / n;
    let title = format!(
        "{} req/s for 10 s on {CONNECTIONS} connections, each answer delayed by {}",
        count(RATE as u64),
        duration(DELAY.as_nanos() as f64)
    );
    let mut table = Table::new(title, &["what", "mean", "p50", "p99", "max", "n"]);
    table.row(vec![
        "delay, as the server measured it".to_owned(),
        duration(truth),
        "–".to_owned(),
        "–".to_owned(),
        "–".to_owned(),
        count(n as u64),
    ]);
    table.row(row("latency", &m.tally.latency, m.tally.max_ns));
    if let Some(paced) = &m.tally.paced {
        table.row(row("service time", &paced.service_time, paced.service_time_max_ns));
        table.row(row("slip", &paced.slip, paced.slip_max_ns));
    }
    table
}

fn stall_table(closed: &Measurement, paced: &Measurement) -> Table {
    let title = format!(
        "10 s on {CONNECTIONS} connections against a server that does nothing for 2 s, once"
    );
    let mut table = Table::new(title, &["pace", "mean", "p50", "p99", "max", "n"]);
    let of = |name: &str, m: &Measurement| row(name, &m.tally.latency, m.tally.max_ns);
    table.row(of("closed", closed));
    table.row(of(&format!("constant, {} req/s", count(STALL_RATE as u64)), paced));
    table
}

fn row(name: &str, h: &Histogram<u64>, max_ns: u64) -> Vec<String> {
    let at = |q: f64| duration(h.value_at_quantile(q) as f64);
    vec![
        name.to_owned(),
        duration(h.mean()),
        at(0.5),
        at(0.99),
        duration(max_ns as f64),
        count(h.len()),
    ]
}
