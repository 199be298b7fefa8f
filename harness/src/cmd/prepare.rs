//! From chosen subjects to subjects that can be started: toolchains, builds, verification.

use super::project::{Machinery, Project};
use super::{Interrupted, Unsuccessful, say};
use crate::contract::{self, Contract};
use crate::load::null;
use crate::manifest::Argv;
use crate::plan::CEILING;
use crate::process::toolchain::{self, Toolchain};
use crate::process::{Service, ServiceSpec, command};
use crate::record::{Event, EventKind};
use crate::selection::{Chosen, Subject};
use crate::users::User;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Longest build; a cold build of the slowest took about a minute on two cores.
pub const BUILD_LIMIT: Duration = Duration::from_secs(15 * 60);

/// A subject that was built.
#[derive(Debug, Clone)]
pub struct Built {
    /// The subject.
    pub subject: Subject,
    /// Toolchains found, by the command that asked.
    pub versions: BTreeMap<String, String>,
}

/// It has nothing to load.
const NULL_READY: Duration = Duration::from_secs(5);

/// The one case that is about the process and not about an address.
const STOP_CASE: &str = "ends-at-sigterm-with-code-0";
const STOP_WHY: &str =
    "a service that has to be killed loses what is in flight at every deployment";

/// What could be built and what could not.
#[derive(Debug, Default)]
pub struct Prepared {
    /// In the order asked for.
    pub built: Vec<Built>,
    /// What is missing of what was asked for: `skipped`, `build-failed`, `unverified`.
    pub missing: Vec<Event>,
}

impl Prepared {
    /// Whether something failed, as opposed to being skipped for want of a toolchain.
    pub fn has_failures(&self) -> bool {
        self.missing.iter().any(|e| e.kind != EventKind::Skipped)
    }
}

/// Checks toolchains and builds, each implementation once.
///
/// # Errors
/// When an implementation that was asked for by name lacks its toolchain; on interruption.
pub fn build(chosen: Vec<Chosen>, machinery: &Machinery) -> anyhow::Result<Prepared> {
    let mut prepared = Prepared::default();
    let mut seen: HashMap<String, Result<BTreeMap<String, String>, Event>> = HashMap::new();
    for Chosen { subject, by_name } in chosen {
        let name = subject.implementation.name.clone();
        if !seen.contains_key(&name) {
            seen.insert(name.clone(), build_one(&subject, by_name, machinery)?);
        }
        match &seen[&name] {
            Ok(versions) => prepared.built.push(Built { subject, versions: versions.clone() }),
            Err(event) => {
                prepared.missing.push(Event { member: Some(subject.label()), ..event.clone() })
            }
        }
    }
    Ok(prepared)
}

fn build_one(
    subject: &Subject,
    by_name: bool,
    machinery: &Machinery,
) -> anyhow::Result<Result<BTreeMap<String, String>, Event>> {
    let implementation = &subject.implementation;
    let name = &implementation.name;
    let event = |kind, message: String| Event {
        kind,
        member: Some(name.clone()),
        condition: None,
        message,
    };
    let toolchains = toolchain::check(implementation, &machinery.guard, &machinery.interrupt);
    if machinery.interrupt.is_set() {
        return Err(Interrupted.into());
    }
    if let Some(missing) = toolchains.iter().find(|t| !t.sufficient) {
        if by_name {
            return Err(Unsuccessful(format!("{name}: {}", missing.complaint())).into());
        }
        say(&format!("{name}: skipped: {}", missing.complaint()));
        return Ok(Err(event(EventKind::Skipped, missing.complaint())));
    }
    for argv in &implementation.build {
        say(&format!("{name}: building ({argv})"));
        let built = command::run(
            argv,
            &implementation.dir,
            BUILD_LIMIT,
            &machinery.guard,
            &machinery.interrupt,
        );
        if machinery.interrupt.is_set() {
            return Err(Interrupted.into());
        }
        if let Err(error) = built {
            say(&format!("{name}: the build failed: {error:#}"));
            return Ok(Err(event(EventKind::BuildFailed, format!("{error:#}"))));
        }
    }
    Ok(Ok(versions(&toolchains)))
}

fn versions(toolchains: &[Toolchain]) -> BTreeMap<String, String> {
    toolchains.iter().filter_map(|t| Some((t.command.clone(), t.found.clone()?))).collect()
}

/// How to start `subject` on `cpus` (empty: all).
pub fn spec(project: &Project, subject: &Subject, cpus: &[usize], users: &[User]) -> ServiceSpec {
    let user = &users[0];
    let body =
        serde_json::to_vec(user).unwrap_or_else(|e| unreachable!("plain strings serialise: {e}"));
    ServiceSpec {
        label: subject.label(),
        command: subject.variant.command.clone(),
        dir: subject.implementation.dir.clone(),
        env: subject.variant.env.clone(),
        cpus: cpus.to_vec(),
        users_file: project.users_file(),
        ready_timeout: subject.variant.ready_timeout,
        probe: (format!("/users/{}", user.id), body),
    }
}

/// The null server is started like any service.
pub fn null_spec(project: &Project, machinery: &Machinery, cpus: &[usize]) -> ServiceSpec {
    let words = vec![machinery.harness.display().to_string(), "null-server".to_owned()];
    ServiceSpec {
        label: CEILING.to_owned(),
        command: Argv::new(words).unwrap_or_else(|| unreachable!("two words are a command")),
        dir: project.root.clone(),
        env: BTreeMap::new(),
        cpus: cpus.to_vec(),
        users_file: project.users_file(),
        ready_timeout: NULL_READY,
        probe: ("/users/1".to_owned(), null::GET_BODY.to_vec()),
    }
}

/// What verification found of one subject.
pub struct Verified {
    /// Whose.
    pub label: String,
    /// The report, or why there is none: the service could not be started, or died.
    pub report: Result<contract::Report, String>,
}

/// Verifies all subjects at the same time, a thread and a fresh process each: most of the
/// time goes into waiting with an idle connection.
pub fn verify(
    project: &Project,
    contract: &Contract,
    built: &[Built],
    users: &[User],
    seed: u64,
    machinery: &Machinery,
) -> Vec<Verified> {
    let stop = machinery.interrupt.flag();
    let one = |subject: &Subject| {
        let mut spec = spec(project, subject, &[], users);
        // Which rule a wrong answer breaks is for the contract to say, case by case.
        spec.probe.1.clear();
        let start =
            Service::start(&spec, &machinery.harness, &machinery.guard, &machinery.interrupt);
        let report = start.map_err(|e| e.to_string()).and_then(|mut service| {
            let target = contract::Target {
                address: service.address(),
                shared_state: subject.variant.state == crate::manifest::State::Shared,
                users,
                seed,
                stop: Some(&stop),
            };
            let mut report = contract::run(contract, &target);
            match service.death() {
                Some(death) if report.is_kept() => return Err(death),
                // The failed cases say which request killed it.
                Some(_) => {}
                None => report.add(STOP_CASE, STOP_WHY, service.stop().complaint()),
            }
            Ok(report)
        });
        Verified { label: subject.label(), report }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = built.iter().map(|b| scope.spawn(|| one(&b.subject))).collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}
