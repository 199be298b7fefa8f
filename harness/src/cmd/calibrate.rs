//! `harness calibrate`: the load engine beside its peers.

use super::project::{Machinery, Project};
use super::{
    Interrupted, Unsuccessful, Usage, check_spliced, check_writable, goose, new_seed, prepare,
    print, print_json, refuse_debug_build, say, write_spliced,
};
use crate::calibrate::peer::{self, Peer};
use crate::calibrate::{Bench, Cell, LEAN, Size};
use crate::cli::Calibrate;
use crate::experiment::timestamp;
use crate::host::affinity;
use crate::host::facts::{self, Host};
use crate::host::layout::Layout;
use crate::plan::CEILING;
use crate::process::Service;
use crate::report::number;
use crate::report::table::{Format, Table};
use crate::selection::{self, Rows};
use serde::Serialize;
use std::collections::BTreeMap;

/// Name of the spliced part of the document.
const SPLICE: &str = "calibration";
const LEVELS: [usize; 2] = [50, 300];

#[derive(Serialize)]
struct Calibration {
    started: String,
    host: Host,
    layout: Layout,
    size: Size,
    seed: u64,
    peers: BTreeMap<String, String>,
    cells: Vec<Cell>,
}

pub fn run(project: &Project, args: &Calibrate) -> anyhow::Result<()> {
    if let Some(file) = &args.out {
        check_writable("--out", file)?;
    }
    if let Some(file) = &args.write_docs {
        check_spliced("--write-docs", file, SPLICE)?;
    }
    refuse_debug_build("calibrate")?;
    let size = if args.quick {
        Size { rounds: 6, slice_ms: 1_000 }
    } else {
        Size { rounds: 12, slice_ms: 2_000 }
    };
    let only: Vec<String> = args.service.iter().cloned().collect();
    let chosen = selection::choose(&project.implementations()?, &only, &[], Rows::Standard)
        .map_err(Usage)?;
    let users = project.users()?;
    let machinery = Machinery::start()?;
    let prepared = prepare::build(chosen, &machinery)?;
    let built = prepared
        .built
        .first()
        .ok_or_else(|| Unsuccessful("the service could not be built".to_owned()))?;
    let service = built.subject.label();
    let host = facts::read();
    let layout = Layout::default_for(&host.cpus);
    let mut peers = peer::find(&machinery.guard, &machinery.interrupt);
    peers.extend(goose(project, &machinery)?);
    let seed = args.seed.unwrap_or_else(new_seed);
    let bench = Bench {
        size,
        peers: &peers,
        guard: &machinery.guard,
        interrupt: &machinery.interrupt,
        seed,
    };
    let specs = [
        (CEILING, prepare::null_spec(project, &machinery, &layout.subject)),
        (service.as_str(), prepare::spec(project, &built.subject, &layout.subject, &users)),
    ];
    say(&format!("calibrating on CPUs {layout}, peers: {}; seed {seed}", names(&peers)));
    // Engines in this process and those started from it stay off the server's CPUs.
    affinity::pin(&layout.load)?;
    let mut cells = Vec::new();
    for (name, spec) in &specs {
        let started =
            Service::start(spec, &machinery.harness, &machinery.guard, &machinery.interrupt);
        if machinery.interrupt.is_set() {
            return Err(Interrupted.into());
        }
        let service = started.map_err(|e| Unsuccessful(e.to_string()))?;
        for connections in LEVELS {
            let measured = bench.run(name, &service, connections);
            if machinery.interrupt.is_set() {
                return Err(Interrupted.into());
            }
            cells.extend(measured.map_err(|e| Unsuccessful(format!("{e:#}")))?);
            say(&format!("{name} at {connections} connections: done"));
        }
        service.stop();
    }
    let calibration = Calibration {
        started: timestamp(),
        host,
        layout,
        size,
        seed,
        peers: peers.iter().map(|p| (p.name.clone(), p.version.clone())).collect(),
        cells,
    };
    show(&calibration, args)
}

/// Goose, unless it cannot be built here.
fn goose(project: &Project, machinery: &Machinery) -> anyhow::Result<Option<Peer>> {
    let found = goose::build(project, machinery).and_then(|goose| {
        let version = goose.version(&machinery.guard, &machinery.interrupt)?;
        Ok(Peer::goose(goose, version))
    });
    if machinery.interrupt.is_set() {
        return Err(Interrupted.into());
    }
    if let Err(error) = &found {
        say(&format!("{error:#}\ncalibrating without goose"));
    }
    Ok(found.ok())
}

fn names(peers: &[Peer]) -> String {
    let all: Vec<String> = peers.iter().map(|p| format!("{} ({})", p.name, p.version)).collect();
    if all.is_empty() { "none found".to_owned() } else { all.join(", ") }
}

/// Printed first: what cannot be written shall not be lost.
fn show(c: &Calibration, args: &Calibrate) -> anyhow::Result<()> {
    match args.output.format {
        Format::Json => print_json(c)?,
        format => print(&tables(c, format))?,
    }
    if let Some(file) = &args.out {
        std::fs::write(file, serde_json::to_string_pretty(c)? + "\n")
            .map_err(|e| Usage(format!("--out {}: {e}", file.display())))?;
    }
    if let Some(file) = &args.write_docs {
        write_spliced("--write-docs", file, SPLICE, &tables(c, Format::Markdown))?;
    }
    Ok(())
}

fn tables(c: &Calibration, format: Format) -> String {
    let mut parts = Vec::new();
    for group in c.cells.chunk_by(|a, b| (&a.server, a.connections) == (&b.server, b.connections)) {
        let first = &group[0];
        let title = format!(
            "{} at {} connections, GET, median of {} slices of {} ms",
            first.server, first.connections, c.size.rounds, c.size.slice_ms
        );
        let columns =
            ["engine", "req/s", "generator CPU/req", "server CPU/req", "CPU/req lean ÷ this"];
        let mut table = Table::new(title, &columns);
        for cell in group {
            table.row(vec![
                cell.engine.clone(),
                number::three_digits(cell.median.throughput),
                number::duration(cell.median.generator_cpu_ns),
                cell.median.server_cpu_ns.map_or_else(|| "unknown".to_owned(), number::duration),
                match &cell.lean_over_this {
                    Some(r) => number::ratio(r.ratio, r.low, r.high),
                    None => "–".to_owned(),
                },
            ]);
        }
        parts.push(table.print(format));
    }
    let peers: Vec<String> = c.peers.iter().map(|(n, v)| format!("{n}: {v}")).collect();
    parts.push(format!(
        "Measured {} on {}, {} CPUs ({}), kernel {}; seed {}. {LEAN} is this project's engine, floor a loop \
         that parses nothing. Peers: {}.\n",
        c.started, c.host.cpu_model, c.host.cpus.len(), c.layout, c.host.kernel, c.seed,
        if peers.is_empty() { "none".to_owned() } else { peers.join("; ") }
    ));
    parts.join("\n")
}
