//! `harness compare`: the main job, from manifests to a table.

mod ask;
mod fitness;
mod record;
mod resume;
mod session;

use super::prepare::{self, Built, Prepared};
use super::progress::Progress;
use super::project::{Machinery, Project};
use super::{Interrupted, Unsuccessful, Usage, plural, print, print_json, say, verify};
use crate::cli::Compare;
use crate::experiment::{Bench, Pool};
use crate::host::affinity;
use crate::host::watch::Watch;
use crate::load::null;
use crate::manifest::Argv;
use crate::plan::Plan;
use crate::process::{ServiceSpec, command};
use crate::record::folder::Entry;
use crate::record::{Benchmark, Control, Event, EventKind, Member, Revision, RunFolder};
use crate::report::summary::summary;
use crate::report::table::Format;
use crate::scenario::Request;
use ask::Ask;
use resume::Past;
use session::Session;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub fn run(project: &Project, args: &Compare) -> anyhow::Result<()> {
    let past = args.resume.as_deref().map(Past::read).transpose()?;
    if let Some(finished) = past.as_ref().and_then(Past::finished) {
        show(&finished, args.output.format)?;
        return whole(&finished);
    }
    let ask = match &past {
        Some(past) => past.ask(project, args.force)?,
        None => Ask::parse(project, args)?,
    };
    let alone = fitness::alone(&ask)?;
    let machinery = Machinery::start()?;
    let repository = repository(&project.root, &ask.out, &machinery);
    let start = match past {
        Some(past) => Start::Resumed(past.unchanged(&ask, repository)?.into()),
        None => {
            let folder = RunFolder::create(&ask.out).map_err(|e| Usage(format!("{e:#}")))?;
            Start::New(folder, repository)
        }
    };
    let watch = Watch::open();
    let fit = |prepared| Ok((prepared, fitness::forced(&ask, &alone, &watch, &machinery)?));
    let (prepared, forced) = match prepare(project, &ask, &machinery).and_then(fit) {
        Ok(ready) => ready,
        Err(error) => {
            start.discard();
            return Err(error);
        }
    };
    let machine = Machine { watch, forced };
    let (benchmark, failure) = measure(project, &ask, prepared, &machinery, &machine, start)?;
    show(&benchmark, args.output.format)?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    if machinery.interrupt.is_set() {
        return Err(Interrupted.into());
    }
    whole(&benchmark)
}

fn show(benchmark: &Benchmark, format: Format) -> anyhow::Result<()> {
    match format {
        Format::Json => print_json(&benchmark.results),
        format => print(&summary(benchmark, format)),
    }
}

/// Exit code 3 when something is missing.
fn whole(benchmark: &Benchmark) -> anyhow::Result<()> {
    if benchmark.has_holes() {
        let message = "not everything could be measured; see the notes".to_owned();
        return Err(Unsuccessful(message).into());
    }
    Ok(())
}

/// The machine, looked at.
struct Machine {
    watch: Watch,
    /// It is unfit, and the run is wanted all the same.
    forced: bool,
}

/// Where a run comes from.
enum Start {
    /// A new folder, and the state of the repository before it was made.
    New(RunFolder, Revision),
    /// The journal of a run that had not ended.
    Resumed(Box<Past>),
}

impl Start {
    fn discard(self) {
        if let Start::New(folder, _) = self {
            folder.discard();
        }
    }

    /// The folder to write to, and the record to go on with.
    fn open(
        self,
        ask: &Ask,
        plan: &Plan,
        cast: &Cast,
        missing: &[Event],
        forced: bool,
    ) -> anyhow::Result<(RunFolder, Benchmark)> {
        let (mut folder, repository) = match self {
            Start::New(folder, repository) => (folder, repository),
            Start::Resumed(past) => return past.open(plan, &cast.members, missing, forced),
        };
        let mut benchmark = record::blank(ask, cast.members.clone(), missing, repository);
        benchmark.run.forced = forced;
        let begun = folder
            .write_plan(plan)
            .and_then(|()| folder.append(&Entry::Begin(Cow::Borrowed(&benchmark))));
        match begun {
            Ok(()) => Ok((folder, benchmark)),
            Err(error) => {
                folder.discard();
                Err(error)
            }
        }
    }
}

/// Who takes part: the subjects, then the controls.
struct Cast {
    specs: Vec<ServiceSpec>,
    members: Vec<Member>,
}

impl Cast {
    fn new(project: &Project, ask: &Ask, prepared: &Prepared, machinery: &Machinery) -> Self {
        let cpus = &ask.layout.subject;
        let spec = |b: &Built| prepare::spec(project, &b.subject, cpus, &ask.users);
        let mut specs: Vec<_> = prepared.built.iter().map(spec).collect();
        let mut members: Vec<_> = prepared.built.iter().map(record::member).collect();
        if ask.controls {
            let twin = record::twin(&members[0]);
            let ceiling = prepare::null_spec(project, machinery, cpus);
            specs.push(ServiceSpec { label: twin.name.clone(), ..specs[0].clone() });
            members.extend([twin, record::ceiling(&ceiling)]);
            specs.push(ceiling);
        }
        Self { specs, members }
    }
}

/// Everything that comes before measuring.
fn prepare(project: &Project, ask: &Ask, machinery: &Machinery) -> anyhow::Result<Prepared> {
    let prepared = prepare::build(ask.chosen.clone(), machinery)?;
    let prepared = verified(project, ask, prepared, machinery)?;
    if prepared.built.is_empty() {
        return Err(Unsuccessful("there is nothing to measure".to_owned()).into());
    }
    Ok(prepared)
}

/// Leaves only what keeps the contract: a service that answers differently does other work.
fn verified(
    project: &Project,
    ask: &Ask,
    mut prepared: Prepared,
    machinery: &Machinery,
) -> anyhow::Result<Prepared> {
    let contract = project.contract()?;
    say(&format!("verifying {}", plural(prepared.built.len(), "service")));
    let all = prepare::verify(project, &contract, &prepared.built, &ask.users, ask.seed, machinery);
    if machinery.interrupt.is_set() {
        return Err(Interrupted.into());
    }
    for v in all {
        if v.passed() {
            continue;
        }
        say(&format!("{}left out: {} does not keep the contract", verify::failures(&v), v.label));
        let message = match &v.report {
            Ok(report) => {
                format!("{} of {} checks of the contract failed", report.failed, report.total)
            }
            Err(error) => error.clone(),
        };
        prepared.built.retain(|b| b.subject.label() != v.label);
        prepared.missing.push(Event {
            kind: EventKind::Unverified,
            member: Some(v.label),
            condition: None,
            message: format!("left out: {message}"),
        });
    }
    Ok(prepared)
}

fn measure(
    project: &Project,
    ask: &Ask,
    prepared: Prepared,
    machinery: &Machinery,
    machine: &Machine,
    start: Start,
) -> anyhow::Result<(Benchmark, Option<anyhow::Error>)> {
    let cast = Cast::new(project, ask, &prepared, machinery);
    let plan = Plan {
        seed: ask.seed,
        preset: ask.preset.clone(),
        members: cast.members.iter().map(|m| m.name.clone()).collect(),
        subjects: prepared.built.len(),
        ceiling: cast.members.iter().position(|m| m.control == Some(Control::Ceiling)),
        conditions: ask.conditions.clone(),
    };
    let pool = |scenario: &str, seed: u64| -> Arc<[Request]> {
        let all = ask.scenarios.iter().filter(|s| s.name == scenario);
        all.flat_map(|s| s.pool(&ask.users, seed)).collect()
    };
    let pools: Vec<Pool> = (0..plan.conditions.len())
        .map(|i| {
            let subjects = pool(&plan.conditions[i].scenario, plan.request_seed(i));
            Pool { ceiling: subjects.iter().map(null::expecting).collect(), subjects }
        })
        .collect();
    let memory_pools: Vec<Arc<[Request]>> =
        ask.scenarios.iter().map(|s| pool(&s.name, plan.request_seed(0))).collect();
    let bench = Bench {
        plan: &plan,
        specs: &cast.specs,
        pools: &pools,
        layout: &ask.layout,
        watch: &machine.watch,
        harness: &machinery.harness,
        guard: &machinery.guard,
        interrupt: &machinery.interrupt,
    };
    let is_new = matches!(start, Start::New(..));
    let (folder, benchmark) = start.open(ask, &plan, &cast, &prepared.missing, machine.forced)?;
    let progress = Progress::new(remaining(&plan, &benchmark));
    let mut session = Session { benchmark, folder, is_new, progress };
    say(&format!(
        "measuring {} under {} on CPUs {}, seed {}; results in {}",
        plan.members.join(", "),
        plan.conditions.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", "),
        ask.layout,
        ask.seed,
        session.folder.path().display()
    ));
    // The generator and all that serves it stay off the subjects' CPUs.
    affinity::pin(&ask.layout.load)?;
    let outcome = session.blocks(&bench).and_then(|()| session.memory(&bench, &memory_pools));
    session.finish(outcome)
}

/// About how long what is left takes.
fn remaining(plan: &Plan, benchmark: &Benchmark) -> Duration {
    let left = |planned: usize, done: usize| planned.saturating_sub(done) as u32;
    let blocks = left(plan.preset.blocks, benchmark.used_blocks().count());
    let memory = left(plan.memory().len(), benchmark.memory.len());
    plan.block_duration() * blocks + plan.memory_duration() * memory
}

/// The state from which the services are built, the folder of the run left out: it may lie in
/// the repository.
fn repository(root: &Path, run: &Path, machinery: &Machinery) -> Revision {
    let git = |args: &[&str]| {
        let words = ["git"].iter().chain(args).map(|&w| w.to_owned()).collect();
        let limit = Duration::from_secs(10);
        command::run(&Argv::new(words)?, root, limit, &machinery.guard, &machinery.interrupt).ok()
    };
    let run = std::path::absolute(run).unwrap_or_else(|_| run.to_owned());
    let without = run.strip_prefix(root).map(|below| format!(":(exclude){}", below.display()));
    let mut status = vec!["status", "--porcelain", "--", "."];
    status.extend(without.as_deref());
    Revision {
        commit: git(&["rev-parse", "HEAD"])
            .map_or_else(|| "unknown".to_owned(), |t| t.trim().to_owned()),
        dirty: git(&status).map(|t| !t.trim().is_empty()),
    }
}
