//! `harness doctor`: toolchains, the machine, and what on it will make results noisy.

use super::project::{Machinery, Project};
use super::{print, print_json};
use crate::cli::Output;
use crate::host::facts::{self, Host};
use crate::host::gates::{self, Finding, Verdict};
use crate::host::layout::Layout;
use crate::host::probes;
use crate::host::watch::Watch;
use crate::process::toolchain::{self, Toolchain};
use crate::report::number;
use crate::report::table::{Format, Table};
use serde::Serialize;

#[derive(Serialize)]
struct Diagnosis {
    toolchains: Vec<(String, Toolchain)>,
    host: Host,
    layout: Layout,
    noise: Vec<Finding>,
}

pub fn run(project: &Project, args: &Output) -> anyhow::Result<()> {
    let implementations = project.implementations()?;
    let machinery = Machinery::start()?;
    let toolchains = implementations
        .iter()
        .flat_map(|i| {
            toolchain::check(i, &machinery.guard, &machinery.interrupt)
                .into_iter()
                .map(|t| (i.name.clone(), t))
        })
        .collect();
    let host = facts::read();
    let layout = Layout::default_for(&host.cpus);
    // Last: the questions to the toolchains must not pass for foreign CPU.
    let noise = noise(&layout);
    let diagnosis = Diagnosis { toolchains, host, layout, noise };
    if args.format == Format::Json {
        return print_json(&diagnosis);
    }
    print(&format!(
        "{}\n{}\n{}",
        toolchain_table(&diagnosis.toolchains).print(args.format),
        machine_table(&diagnosis).print(args.format),
        noise_table(&diagnosis.noise).print(args.format)
    ))
}

fn noise(layout: &Layout) -> Vec<Finding> {
    let watch = Watch::open();
    let look = watch.look(layout, gates::LOOK);
    gates::examine(&probes::read(), watch.source(), layout, &look)
}

fn noise_table(findings: &[Finding]) -> Table {
    let title = "What makes results noisy (foreign CPU and steal over one second)";
    let mut table = Table::new(title, &["probe", "is", "verdict"]).words();
    for finding in findings {
        let word = match finding.verdict {
            Verdict::Ok => "ok",
            Verdict::Unknown => "cannot tell",
            Verdict::Warns => "warns",
            Verdict::Refuses => "refuses",
        };
        let verdict = match &finding.advice {
            Some(advice) => format!("{word}: {advice}"),
            None => word.to_owned(),
        };
        table.row(vec![finding.probe.clone(), finding.value.clone(), verdict]);
    }
    table
}

fn toolchain_table(toolchains: &[(String, Toolchain)]) -> Table {
    let columns = ["implementation", "asked", "found", "wanted", "verdict"];
    let mut table = Table::new("Toolchains", &columns).words();
    for (name, t) in toolchains {
        let verdict = if t.sufficient { "ok".to_owned() } else { format!("skipped: {}", t.hint) };
        table.row(vec![
            name.clone(),
            t.command.clone(),
            t.found.clone().unwrap_or_else(|| "nothing".to_owned()),
            format!("≥ {}", t.minimum),
            verdict,
        ]);
    }
    table
}

fn machine_table(d: &Diagnosis) -> Table {
    let gibibytes = |bytes: Option<u64>| {
        let unknown = || "unknown".to_owned();
        bytes.map_or_else(unknown, |b| {
            format!("{} GiB", number::three_digits(b as f64 / 1024_f64.powi(3)))
        })
    };
    let host = &d.host;
    let mut table = Table::new("Machine", &["what", "is"]).words();
    let mut row = |what: &str, is: String| table.row(vec![what.to_owned(), is]);
    row("system", format!("{}, kernel {}, {}", host.os, host.kernel, host.architecture));
    row("CPU", host.cpu_model.clone());
    row("CPUs that may be used", host.cpus.len().to_string());
    row("memory", gibibytes(host.memory_bytes));
    row("memory available", gibibytes(host.memory_available_bytes));
    let layout = if d.layout.is_shared() {
        format!("{} (shared: the generator takes CPU from what it measures)", d.layout)
    } else {
        d.layout.to_string()
    };
    row("CPU layout of compare", layout);
    row("pinning", if host.can_pin { "yes" } else { "not on this system" }.to_owned());
    row(
        "build of the harness",
        if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
    );
    table
}
