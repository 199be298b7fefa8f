//! Ctrl-C, SIGTERM and SIGHUP as a flag that loops look at between steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set once somebody asked the harness to end. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

/// Exit code of a second Ctrl-C, as shells have it for SIGINT.
const SECOND_INTERRUPT: i32 = 130;

impl Interrupt {
    /// Registers the handlers. The first signal sets the flag; a second one ends the
    /// process at once (the guard then ends the services).
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub fn install() -> std::io::Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: the shutdown sees the flag as it was before this signal.
            signal_hook::flag::register_conditional_shutdown(
                signal,
                SECOND_INTERRUPT,
                Arc::clone(&flag),
            )?;
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
        }
        Ok(Self(flag))
    }

    /// The flag, for a loop that does not know this type.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Whether somebody asked to end.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
