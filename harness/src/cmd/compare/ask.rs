//! The command line of `compare`, checked as far as it can be before anything is started.

use super::record::sha256;
use crate::cli::{Compare, DesignName, PresetName};
use crate::cmd::project::Project;
use crate::cmd::{Usage, new_seed};
use crate::experiment;
use crate::host::layout::Layout;
use crate::host::{affinity, limits};
use crate::plan::{CEILING, Condition, Design, Preset};
use crate::scenario::Scenario;
use crate::selection::{self, Chosen, Rows};
use crate::toml_file::did_you_mean;
use crate::users::User;
use std::path::{Path, PathBuf};

/// The command line, checked as far as it can be before anything is started.
pub struct Ask {
    pub chosen: Vec<Chosen>,
    pub scenarios: Vec<Scenario>,
    pub conditions: Vec<Condition>,
    pub preset: Preset,
    pub seed: u64,
    pub layout: Layout,
    pub users: Vec<User>,
    pub users_sha256: String,
    pub out: PathBuf,
    pub controls: bool,
    pub force: bool,
}

impl Ask {
    pub fn parse(project: &Project, args: &Compare) -> anyhow::Result<Self> {
        let mut preset = match args.preset {
            PresetName::Smoke => Preset::smoke(),
            PresetName::Quick => Preset::quick(),
            PresetName::Standard => Preset::standard(),
            PresetName::Publish => Preset::publish(),
        };
        preset.design = match args.design {
            DesignName::Slices => Design::Slices,
            DesignName::Sequential => Design::Sequential,
        };
        if args.no_memory {
            preset.memory_repeats = 0;
        }
        for text in &args.set {
            set(&mut preset, text).map_err(|e| Usage(format!("--set {text}: {e}")))?;
        }
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
        if chosen.iter().any(|c| c.subject.label() == CEILING) {
            return Err(Usage(format!(
                "an implementation is called {CEILING}, as the control is; rename its folder"
            ))
            .into());
        }
        let scenarios = scenarios(project, &args.scenario)?;
        let conditions = conditions(&scenarios, &args.concurrency, &preset)?;
        let members = chosen.len() + if args.no_controls { 0 } else { 2 };
        ensure_descriptors(&conditions, members)?;
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
            controls: !args.no_controls,
            force: args.force,
        })
    }
}

/// Changes one number of a preset.
fn set(preset: &mut Preset, text: &str) -> Result<(), String> {
    const LARGEST: u64 = 100_000;
    let (key, value) = text.split_once('=').ok_or("write it as KEY=N")?;
    let n: u64 = value.parse().map_err(|_| format!("`{value}` is no number"))?;
    if !(1..=LARGEST).contains(&n) {
        return Err(format!("give 1 to {LARGEST}"));
    }
    match key {
        "blocks" => preset.blocks = n as usize,
        "rounds" => preset.rounds = n as usize,
        "warm-up-slices" => preset.warm_up_slices = n as usize,
        "window-ms" => preset.window_ms = n,
        "settle-ms" => preset.settle_ms = n,
        "throttle-us" => preset.throttle_us = n,
        _ => {
            return Err("known are blocks, rounds, window-ms, settle-ms, warm-up-slices, \
                        throttle-us"
                .into());
        }
    }
    if preset.is_measurement() {
        preset.name = "custom".to_owned();
    }
    Ok(())
}

/// A name that is free: two runs may begin in the same second.
fn new_folder(runs: &Path) -> PathBuf {
    let stamp = format!("{}-compare", experiment::timestamp().replace(':', "-"));
    let named = |n: u32| runs.join(if n == 1 { stamp.clone() } else { format!("{stamp}-{n}") });
    (1..).map(named).find(|path| !path.exists()).unwrap_or_else(|| runs.join(&stamp))
}

/// All members of a block hold their connections at the same time.
pub fn ensure_descriptors(conditions: &[Condition], members: usize) -> anyhow::Result<()> {
    let most = conditions.iter().map(|c| c.connections).max().unwrap_or_default();
    limits::ensure_descriptors(most.saturating_mul(members) as u64)
        .map_err(|e| Usage(format!("--concurrency {most} × {members} members: {e}")).into())
}

pub fn scenarios(project: &Project, names: &[String]) -> anyhow::Result<Vec<Scenario>> {
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
