//! Whether the machine is fit to be measured on, before anything is.

use super::ask::Ask;
use crate::cmd::project::Machinery;
use crate::cmd::{Interrupted, Unsuccessful, say};
use crate::host::gates::{self, Calm, Verdict};
use crate::host::interval::Weather;
use crate::host::lock::{self, Lock, LockError};
use crate::host::probes;
use crate::host::watch::Watch;

/// The machine's lock, or the word that another harness has it and the run is forced.
pub struct Alone {
    _lock: Option<Lock>,
    /// Another harness is at work.
    held: bool,
}

/// Makes sure that no other harness measures at the same time: from before the builds, which
/// would disturb it. What is no measurement disturbs nobody for long, and needs no lock.
///
/// # Errors
/// When another harness is at work, unless forced.
pub fn alone(ask: &Ask) -> anyhow::Result<Alone> {
    if !ask.preset.is_measurement() {
        return Ok(Alone { _lock: None, held: false });
    }
    match lock::take() {
        Ok(lock) => Ok(Alone { _lock: Some(lock), held: false }),
        Err(error @ LockError::Held { .. }) if !ask.force => {
            Err(Unsuccessful(format!("{error} (--force measures all the same)")).into())
        }
        Err(error) => {
            say(&format!("warning: {error}"));
            Ok(Alone { _lock: None, held: matches!(error, LockError::Held { .. }) })
        }
    }
}

/// Says what will make the results noisy, and waits for calm. Gives whether the machine is
/// unfit and the run is wanted all the same.
///
/// # Errors
/// When the machine is too busy, unless forced; on interruption.
pub fn forced(
    ask: &Ask,
    alone: &Alone,
    watch: &Watch,
    machinery: &Machinery,
) -> anyhow::Result<bool> {
    if !ask.preset.is_measurement() {
        return Ok(false);
    }
    let look = watch.look(&ask.layout, gates::LOOK);
    for finding in gates::examine(&probes::read(), watch.source(), &ask.layout, &look) {
        if let (Verdict::Warns, Some(advice)) = (finding.verdict, &finding.advice) {
            say(&format!("warning: {}: {}: {advice}", finding.probe, finding.value));
        }
    }
    if ask.force {
        let busy = |cores: f64| cores > gates::FOREIGN_CORES;
        return Ok(alone.held || gates::foreign_cores(&ask.layout, &look).is_some_and(busy));
    }
    await_calm(ask, look, watch, machinery)?;
    Ok(false)
}

/// `look` is the first of the looks.
fn await_calm(
    ask: &Ask,
    look: Weather,
    watch: &Watch,
    machinery: &Machinery,
) -> anyhow::Result<()> {
    let percent = |cores: f64| format!("{:.0} % of a core", cores * 100.0);
    let (mut first, mut said) = (Some(look), false);
    let calm = gates::await_calm(
        &mut || {
            let look = first.take().unwrap_or_else(|| watch.look(&ask.layout, gates::LOOK));
            gates::foreign_cores(&ask.layout, &look)
        },
        &|| machinery.interrupt.is_set(),
        &mut |cores, left| {
            if !std::mem::replace(&mut said, true) {
                let taken = percent(cores);
                say(&format!(
                    "other processes take {taken}; waiting up to {left} s for them to end"
                ));
            }
        },
    );
    match calm {
        Calm::Calm | Calm::Unknown => Ok(()),
        Calm::Interrupted => Err(Interrupted.into()),
        Calm::Busy(cores) => Err(Unsuccessful(format!(
            "other processes take {} and did not end within {} s; end them, or measure all the \
             same with --force, which claims nothing",
            percent(cores),
            gates::LOOKS
        ))
        .into()),
    }
}
