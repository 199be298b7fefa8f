//! The second engine for `load` and `calibrate`: built when it is asked for, then run.

use super::prepare::BUILD_LIMIT;
use super::project::{Machinery, Project};
use super::{Interrupted, Unsuccessful, Usage, print, print_json, say};
use crate::cli::{Load, LoadFormat};
use crate::goose::{self, GOOSE, Goose, METHODS, Order, Request};
use crate::host::limits;
use crate::load::measure::Options;
use crate::process::command;
use crate::report::foreign::hgrm;
use crate::report::goose::GooseReport;
use anyhow::Context;
use std::net::TcpStream;
use std::time::Duration;

/// Whether goose can do what `load` is asked for.
pub fn check(args: &Load) -> Result<(), String> {
    if args.rate.is_some() {
        return Err(
            "--rate: goose has a closed pace only; leave out this or --engine goose".to_owned()
        );
    }
    if args.format == LoadFormat::Oha {
        return Err("--format oha: of the lean engine only; use json or hgrm".to_owned());
    }
    if !METHODS.contains(&args.method.as_str()) {
        return Err(format!("--method {}: goose knows {}", args.method, METHODS.join(", ")));
    }
    Ok(())
}

/// `harness load --engine goose`.
pub fn run(
    args: &Load,
    options: &Options,
    target: String,
    headers: Vec<(String, String)>,
    project: impl FnOnce() -> anyhow::Result<Project>,
) -> anyhow::Result<()> {
    let project = project().context("goose is built in the repository")?;
    let address = options.target.address;
    let unsuccessful = |e: anyhow::Error| Unsuccessful(format!("goose: {e:#}"));
    limits::ensure_descriptors(options.connections as u64).map_err(Usage)?;
    // Building takes a while: better told before.
    TcpStream::connect_timeout(&address, options.target.open_timeout)
        .map_err(|e| Unsuccessful(format!("{address}: nothing accepts connections there: {e}")))?;
    let machinery = Machinery::start()?;
    let goose = build(&project, &machinery)?;
    let ms = |time: Duration| time.as_micros().div_ceil(1_000) as u64;
    let order = Order {
        address,
        connections: options.connections,
        threads: Some(options.threads),
        warm_up_ms: ms(options.warm_up),
        window_ms: ms(options.duration),
        timeout_ms: ms(options.target.timeout),
        request: Request {
            method: args.method.clone(),
            target,
            headers,
            body: args.body.clone(),
            status: args.expect_status,
            expected_body: None,
        },
    };
    say(&format!("{} at {address}, closed pace, {GOOSE}", args.url));
    let report = goose.run(&order, &machinery.guard, &machinery.interrupt);
    let interrupted = machinery.interrupt.is_set();
    if interrupted && report.is_err() {
        return Err(Interrupted.into());
    }
    let report = report.map_err(unsuccessful)?;
    let latency = report.latency.unpack().map_err(Unsuccessful)?;
    let target = format!("{} ({address})", args.url);
    let shown = GooseReport::new(&report, &latency, target, options.connections);
    match args.format {
        LoadFormat::Text => print(&shown.text())?,
        LoadFormat::Hgrm => {
            let failed = report.counts.failures();
            if failed > 0 {
                say(&format!("warning: {failed} of {} requests failed", report.counts.sent));
            }
            print(&hgrm(&latency, report.latency.max_ns.unwrap_or(0)))?;
        }
        LoadFormat::Json | LoadFormat::Oha => print_json(&shown)?,
    }
    if interrupted {
        return Err(Interrupted.into());
    }
    if report.counts.ok == 0 {
        return Err(Unsuccessful("no request was answered as expected".to_owned()).into());
    }
    Ok(())
}

/// Builds it, which cargo does at most once for a version.
pub fn build(project: &Project, machinery: &Machinery) -> anyhow::Result<Goose> {
    let (argv, root) = (goose::build_command(), &project.root);
    say(&format!("goose: building ({argv}); the first time takes minutes"));
    let built = command::run(&argv, root, BUILD_LIMIT, &machinery.guard, &machinery.interrupt);
    if machinery.interrupt.is_set() {
        return Err(Interrupted.into());
    }
    built.map_err(|e| Unsuccessful(format!("goose: the build failed: {e:#}")))?;
    Ok(Goose::built_in(root))
}
