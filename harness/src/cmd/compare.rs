//! `harness compare`: the main job, from manifests to a table.

use super::prepare::{self, Built, Prepared};
use super::progress::Progress;
use super::project::{Machinery, Project};
use super::{Interrupted, Unsuccessful, Usage, new_seed, plural, print, print_json, say, verify};
use crate::cli::{Compare, PresetName};
use crate::experiment::{self, Bench, Stopped, block, memory};
use crate::host::layout::Layout;
use crate::host::{affinity, facts, limits};
use crate::manifest::Argv;
use crate::plan::{Condition, Plan, Preset};
use crate::process::command;
use crate::record::folder::Entry;
use crate::record::{
    Benchmark, Event, Harness, Member, MemoryLoad, Results, Revision, Run, RunFolder, SCHEMA,
};
use crate::report::summary::summary;
use crate::report::table::Format;
use crate::results;
use crate::scenario::{Request, Scenario};
use crate::selection::{self, Chosen, Rows};
use crate::toml_file::did_you_mean;
use crate::users::User;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub fn run(project: &Project, args: &Compare) -> anyhow::Result<()> {
    let ask = Ask::parse(project, args)?;
    let machinery = Machinery::start()?;
    // Before the run folder is made: it may lie in the repository.
    let repository = repository(&project.root, &machinery);
    let folder = RunFolder::create(&ask.out).map_err(|e| Usage(format!("{e:#}")))?;
    let prepared = match prepare(project, &ask, &machinery) {
        Ok(prepared) => prepared,
        Err(error) => {
            folder.discard();
            return Err(error);
        }
    };
    let failed = prepared.has_failures();
    let (benchmark, failure) = measure(project, &ask, prepared, &machinery, folder, repository)?;
    match args.output.format {
        Format::Json => print_json(&benchmark.results)?,
        format => print(&summary(&benchmark, format))?,
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    if machinery.interrupt.is_set() {
        return Err(Interrupted.into());
    }
    if failed || benchmark.has_holes() {
        return Err(
            Unsuccessful("not everything could be measured; see the notes".to_owned()).into()
        );
    }
    Ok(())
}

/// The command line, checked as far as it can be before anything is started.
struct Ask {
    chosen: Vec<Chosen>,
    scenarios: Vec<Scenario>,
    conditions: Vec<Condition>,
    preset: Preset,
    seed: u64,
    layout: Layout,
    users: Vec<User>,
    users_sha256: String,
    out: PathBuf,
}

impl Ask {
    fn parse(project: &Project, args: &Compare) -> anyhow::Result<Self> {
        let preset = match args.preset {
            PresetName::Smoke => Preset::smoke(),
            PresetName::Quick => Preset::quick(),
        };
        if cfg!(debug_assertions) && preset.is_measurement() {
            return Err(Usage(
                "this is a debug build, whose generator is too slow to measure with; use \
                 `cargo run --release -- compare …` (or --preset smoke)"
                    .to_owned(),
            )
            .into());
        }
        let chosen =
            selection::choose(&project.implementations()?, &args.only, &args.skip, Rows::Standard)
                .map_err(Usage)?;
        let scenarios = scenarios(project, &args.scenario)?;
        let conditions = conditions(&scenarios, &args.concurrency, &preset)?;
        let most = args.concurrency.iter().max().copied().unwrap_or_default();
        // All members of a block hold their connections at the same time.
        limits::ensure_descriptors(most.saturating_mul(chosen.len()) as u64)
            .map_err(|e| Usage(format!("--concurrency {most} × {} members: {e}", chosen.len())))?;
        let allowed = affinity::allowed();
        let layout = match &args.cpus {
            Some(text) => {
                Layout::parse(text, &allowed).map_err(|e| Usage(format!("--cpus {text}: {e}")))?
            }
            None => Layout::default_for(&allowed),
        };
        let out = args.out.clone().unwrap_or_else(|| new_folder(&project.root.join("data/runs")));
        Ok(Self {
            chosen,
            scenarios,
            conditions,
            preset,
            seed: args.seed.unwrap_or_else(new_seed),
            layout,
            users: project.users()?,
            users_sha256: sha256(&project.users_file())?,
            out,
        })
    }
}

/// A name that is free: two runs may begin in the same second.
fn new_folder(runs: &Path) -> PathBuf {
    let stamp = format!("{}-compare", experiment::timestamp().replace(':', "-"));
    let named = |n: u32| runs.join(if n == 1 { stamp.clone() } else { format!("{stamp}-{n}") });
    (1..).map(named).find(|path| !path.exists()).unwrap_or_else(|| runs.join(&stamp))
}

fn scenarios(project: &Project, names: &[String]) -> anyhow::Result<Vec<Scenario>> {
    let known = project.scenarios()?;
    let mut chosen: Vec<Scenario> = Vec::new();
    for name in names {
        let Some(scenario) = known.iter().find(|s| s.name == *name) else {
            let all: Vec<&str> = known.iter().map(|s| s.name.as_str()).collect();
            let near = did_you_mean(name, all.iter().copied());
            let message = format!("unknown scenario `{name}`{near} (known: {})", all.join(", "));
            return Err(Usage(message).into());
        };
        if !chosen.iter().any(|c| c.name == *name) {
            chosen.push(scenario.clone());
        }
    }
    Ok(chosen)
}

fn conditions(
    scenarios: &[Scenario],
    concurrency: &[usize],
    preset: &Preset,
) -> anyhow::Result<Vec<Condition>> {
    let mut levels: Vec<usize> = Vec::new();
    for &n in concurrency {
        if n == 0 {
            return Err(
                Usage("--concurrency 0: at least one connection is needed".to_owned()).into()
            );
        }
        if !levels.contains(&n) {
            levels.push(n);
        }
    }
    Ok(levels
        .iter()
        .flat_map(|&n| scenarios.iter().map(move |s| Condition::closed(&s.name, n, preset)))
        .collect())
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
            kind: "unverified".to_owned(),
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
    folder: RunFolder,
    repository: Revision,
) -> anyhow::Result<(Benchmark, Option<anyhow::Error>)> {
    let plan = Plan {
        seed: ask.seed,
        preset: ask.preset.clone(),
        members: prepared.built.iter().map(|b| b.subject.label()).collect(),
        conditions: ask.conditions.clone(),
    };
    folder.write_plan(&plan)?;
    let specs: Vec<_> = prepared
        .built
        .iter()
        .map(|b| prepare::spec(project, &b.subject, &ask.layout.subject, &ask.users))
        .collect();
    let pool = |scenario: &str, seed: u64| -> Arc<[Request]> {
        let all = ask.scenarios.iter().filter(|s| s.name == scenario);
        all.flat_map(|s| s.pool(&ask.users, seed)).collect()
    };
    let pools: Vec<Arc<[Request]>> = (0..plan.conditions.len())
        .map(|i| pool(&plan.conditions[i].scenario, plan.request_seed(i)))
        .collect();
    let memory_pools: Vec<Arc<[Request]>> =
        ask.scenarios.iter().map(|s| pool(&s.name, plan.request_seed(0))).collect();
    let bench = Bench {
        plan: &plan,
        specs: &specs,
        pools: &pools,
        layout: &ask.layout,
        harness: &machinery.harness,
        guard: &machinery.guard,
        interrupt: &machinery.interrupt,
    };
    let mut session = Session {
        benchmark: blank(ask, &prepared, repository),
        folder,
        progress: Progress::new(
            plan.block_duration() * u32::try_from(plan.preset.blocks)?
                + plan.memory_duration() * u32::try_from(plan.memory().len())?,
        ),
    };
    say(&format!(
        "measuring {} under {} on CPUs {}, seed {}; results in {}",
        plan.members.join(", "),
        plan.conditions.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", "),
        ask.layout,
        ask.seed,
        session.folder.path().display()
    ));
    session.folder.append(&Entry::Begin(&session.benchmark))?;
    // The generator and all that serves it stay off the subjects' CPUs.
    affinity::pin(&ask.layout.load)?;
    let outcome = session.blocks(&bench).and_then(|()| session.memory(&bench, &memory_pools));
    session.finish(outcome)
}

/// A run under way: what it has yielded so far, and where that is kept.
struct Session {
    benchmark: Benchmark,
    folder: RunFolder,
    progress: Progress,
}

impl Session {
    fn blocks(&mut self, bench: &Bench<'_>) -> Result<(), Stopped> {
        let plan = bench.plan;
        let blocks = plan.preset.blocks;
        // A step is a round, of warm-up or of slices; see `experiment::block`.
        let rounds: usize = plan.conditions.iter().map(|c| c.rounds).sum();
        let steps = rounds + plan.conditions.len() * plan.preset.warm_up_slices;
        let step = plan.block_duration() / u32::try_from(steps.max(1)).unwrap_or(u32::MAX);
        for number in 0..blocks {
            let label = format!("block {} of {blocks}", number + 1);
            let progress = &mut self.progress;
            let outcome =
                block::run(bench, &plan.block(number), &mut || progress.advance(step, &label))?;
            for (member, (runtime, workers)) in outcome.said {
                let member = &mut self.benchmark.members[member];
                member.runtime = Some(runtime);
                member.workers = Some(workers);
            }
            self.folder.append(&Entry::Block(&outcome.block))?;
            self.progress.finished(&label);
            self.benchmark.blocks.push(outcome.block);
        }
        Ok(())
    }

    fn memory(&mut self, bench: &Bench<'_>, pools: &[Arc<[Request]>]) -> Result<(), Stopped> {
        let runs = bench.plan.memory();
        for run in &runs {
            let outcome = memory::run(bench, run, &self.benchmark.run.memory_load, pools)?;
            let label = format!(
                "memory run {} of {} ({})",
                run.number + 1,
                runs.len(),
                bench.plan.members[run.member]
            );
            match outcome {
                Ok(record) => {
                    self.folder.append(&Entry::Memory(&record))?;
                    self.benchmark.memory.push(record);
                }
                Err(event) => {
                    say(&format!("{label}: {}", event.message));
                    self.folder.append(&Entry::Event(&event))?;
                    self.benchmark.events.push(event);
                }
            }
            self.progress.advance(bench.plan.memory_duration(), &label);
            self.progress.finished(&label);
        }
        Ok(())
    }

    /// Computes the results of what there is and writes the roll-up, whatever ended the run.
    /// Gives what went wrong beside what was measured: that is shown in any case.
    fn finish(
        mut self,
        outcome: Result<(), Stopped>,
    ) -> anyhow::Result<(Benchmark, Option<anyhow::Error>)> {
        drop(self.progress);
        if self.benchmark.blocks.is_empty() && self.benchmark.memory.is_empty() {
            self.folder.discard();
            return Err(match outcome {
                Err(Stopped::Failed(error)) => error,
                _ => Interrupted.into(),
            });
        }
        let (stopped_by, failure) = match outcome {
            Ok(()) => ("plan", None),
            Err(Stopped::Interrupted) => ("interrupt", None),
            Err(Stopped::Failed(error)) => ("failure", Some(error)),
        };
        stopped_by.clone_into(&mut self.benchmark.run.stopped_by);
        self.benchmark.results = results::compute(&self.benchmark).map_err(anyhow::Error::msg)?;
        let written = self.folder.write_benchmark(&self.benchmark);
        if let Ok(file) = &written {
            say(&format!("wrote {}", file.display()));
        }
        // The first thing that went wrong is the one to mend.
        Ok((self.benchmark, failure.or(written.err())))
    }
}

/// The record before anything was measured.
fn blank(ask: &Ask, prepared: &Prepared, repository: Revision) -> Benchmark {
    let members = prepared.built.iter().map(member).collect();
    let id = ask.out.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let most = ask.conditions.iter().map(|c| c.connections).max().unwrap_or(1);
    Benchmark {
        schema: SCHEMA,
        run: Run {
            id,
            started: experiment::timestamp(),
            command: std::env::args().collect(),
            preset: ask.preset.clone(),
            seed: ask.seed,
            users_sha256: ask.users_sha256.clone(),
            layout: ask.layout.clone(),
            memory_load: MemoryLoad {
                connections: most,
                scenarios: ask.scenarios.iter().map(|s| s.name.clone()).collect(),
                requests: ask.preset.memory_requests,
            },
            stopped_by: String::new(),
        },
        harness: harness(),
        repository,
        host: facts::read(),
        members,
        conditions: ask.conditions.clone(),
        blocks: Vec::new(),
        memory: Vec::new(),
        events: prepared.missing.clone(),
        results: Results::default(),
    }
}

fn member(built: &Built) -> Member {
    let (implementation, variant) = (&built.subject.implementation, &built.subject.variant);
    Member {
        name: built.subject.label(),
        implementation: implementation.name.clone(),
        variant: variant.name.clone(),
        language: implementation.language.clone(),
        stack: variant.stack.clone(),
        kind: variant.kind,
        versions: built.versions.clone(),
        runtime: None,
        workers: None,
        argv: variant.command.all().to_vec(),
        env: variant.env.clone(),
        binary_sha256: hash_of_program(&implementation.dir, &variant.command),
        control: None,
    }
}

/// Only a program named by a path is a build product; one found on `PATH` is a runtime,
/// whose version is recorded instead.
fn hash_of_program(dir: &Path, command: &Argv) -> Option<String> {
    if !command.program().contains('/') {
        return None;
    }
    sha256(&dir.join(command.program())).ok()
}

fn sha256(file: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(file)
        .map_err(|e| Usage(format!("{} cannot be read: {e}", file.display())))?;
    Ok(Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect())
}

fn harness() -> Harness {
    Harness {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        source: Revision {
            commit: env!("HARNESS_COMMIT").to_owned(),
            dirty: env!("HARNESS_DIRTY").parse().ok(),
        },
        build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
    }
}

/// The state from which the services are built.
fn repository(root: &Path, machinery: &Machinery) -> Revision {
    let git = |args: &[&str]| {
        let words = ["git"].iter().chain(args).map(|&w| w.to_owned()).collect();
        let limit = Duration::from_secs(10);
        command::run(&Argv::new(words)?, root, limit, &machinery.guard, &machinery.interrupt).ok()
    };
    Revision {
        commit: git(&["rev-parse", "HEAD"])
            .map_or_else(|| "unknown".to_owned(), |t| t.trim().to_owned()),
        dirty: git(&["status", "--porcelain"]).map(|t| !t.trim().is_empty()),
    }
}
