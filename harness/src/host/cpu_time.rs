//! CPU time by the scheduler's own account, in nanoseconds, not in ticks of 10 ms.

use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Of the calling thread.
pub fn of_this_thread() -> Option<u64> {
    on(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// Of this process with all its threads, ended ones included.
pub fn of_this_process() -> Option<u64> {
    on(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// What `clock` shows; `None` where there is no such clock (any more).
pub fn on(clock: ClockId) -> Option<u64> {
    u64::try_from(Duration::from(clock_gettime(clock).ok()?).as_nanos()).ok()
}
