//! A timer finer than the millisecond to which `epoll_wait` rounds: requests of a constant
//! pace are due at any microsecond.

use mio::{Registry, Token};
use std::io;
use std::time::Duration;

/// Less than this is waited for by looking again and again: setting a timer, sleeping and
/// waking take about as long.
const SPIN: Duration = Duration::from_micros(60);

/// Wakes the loop of the registry that it was made with.
pub struct Timer {
    #[cfg(target_os = "linux")]
    timer: nix::sys::timerfd::TimerFd,
}

#[cfg(target_os = "linux")]
impl Timer {
    /// A timer that is not set.
    ///
    /// # Errors
    /// When the system refuses one.
    pub fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        use nix::sys::timerfd::{ClockId, TimerFd, TimerFlags};
        use std::os::fd::{AsFd, AsRawFd};
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        let descriptor = timer.as_fd().as_raw_fd();
        let mut source = mio::unix::SourceFd(&descriptor);
        registry.register(&mut source, token, mio::Interest::READABLE)?;
        Ok(Self { timer })
    }

    /// Sees to it that the loop wakes after `delay`; gives the longest that it may wait for
    /// other events.
    pub fn sleep(&self, delay: Duration) -> Option<Duration> {
        use nix::sys::time::TimeSpec;
        use nix::sys::timerfd::{Expiration, TimerSetTimeFlags};
        if delay <= SPIN {
            return Some(Duration::ZERO);
        }
        let expiration = Expiration::OneShot(TimeSpec::from_duration(delay - SPIN));
        match self.timer.set(expiration, TimerSetTimeFlags::empty()) {
            Ok(()) => None,
            // Late by up to a millisecond, which the slip shows.
            Err(_) => Some(delay),
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Timer {
    /// There is none on this system: waiting is rounded up to a millisecond, which the slip
    /// shows.
    ///
    /// # Errors
    /// Never.
    pub fn new(_registry: &Registry, _token: Token) -> io::Result<Self> {
        Ok(Self {})
    }

    /// The delay itself.
    pub fn sleep(&self, delay: Duration) -> Option<Duration> {
        Some(if delay <= SPIN { Duration::ZERO } else { delay })
    }
}
