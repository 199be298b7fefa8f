//! Runs the plan: blocks of slices, and memory runs. What it yields are records.
//!
//! Does not decide what is measured (`plan`), nor what follows from it (`results`).

pub mod block;
pub mod memory;
mod weather;

use crate::host::layout::Layout;
use crate::host::watch::Watch;
use crate::plan::Plan;
use crate::process::{Guard, Interrupt, ServiceSpec};
use crate::record::{Event, EventKind};
use crate::scenario::Request;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A request that takes longer has failed. Shorter than the engine's usual 10 s: a slice
/// waits for its last answer, and the other members wait with it.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Everything that running a plan needs.
pub struct Bench<'a> {
    /// What to do.
    pub plan: &'a Plan,
    /// How to start each of the plan's members, in their order.
    pub specs: &'a [ServiceSpec],
    /// Requests of each of the plan's conditions, in their order.
    pub pools: &'a [Pool],
    /// Whose CPUs are whose.
    pub layout: &'a Layout,
    /// Sees what the machine does meanwhile.
    pub watch: &'a Watch,
    /// The program that has the `launch` step.
    pub harness: &'a Path,
    /// Ends services when the harness dies.
    pub guard: &'a Guard,
    /// Somebody wants to end.
    pub interrupt: &'a Interrupt,
}

/// Requests of a condition: the same bytes for all, but not the same answers.
pub struct Pool {
    /// With the answers of subjects.
    pub subjects: Arc<[Request]>,
    /// With the answers of the null server.
    pub ceiling: Arc<[Request]>,
}

/// Why a block or a memory run yielded no record.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// Somebody asked to end.
    #[error("interrupted")]
    Interrupted,
    /// The harness itself failed.
    #[error(transparent)]
    Failed(#[from] anyhow::Error),
}

impl Bench<'_> {
    fn check_interrupt(&self) -> Result<(), Stopped> {
        if self.interrupt.is_set() { Err(Stopped::Interrupted) } else { Ok(()) }
    }

    fn pool(&self, condition: usize, member: usize) -> Arc<[Request]> {
        let pool = &self.pools[condition];
        let ceiling = self.plan.ceiling == Some(member);
        Arc::clone(if ceiling { &pool.ceiling } else { &pool.subjects })
    }

    /// Sleeps, but looks at the interrupt.
    fn sleep(&self, mut left: Duration) -> Result<(), Stopped> {
        const STEP: Duration = Duration::from_millis(50);
        while !left.is_zero() {
            self.check_interrupt()?;
            let step = left.min(STEP);
            std::thread::sleep(step);
            left -= step;
        }
        Ok(())
    }
}

fn event(
    kind: EventKind,
    member: &str,
    condition: Option<&str>,
    message: impl Into<String>,
) -> Event {
    Event {
        kind,
        member: Some(member.to_owned()),
        condition: condition.map(str::to_owned),
        message: message.into(),
    }
}

/// The present moment, RFC 3339, UTC, whole seconds.
pub fn timestamp() -> String {
    jiff::Timestamp::now()
        .round(jiff::Unit::Second)
        .unwrap_or_else(|_| jiff::Timestamp::now())
        .to_string()
}
