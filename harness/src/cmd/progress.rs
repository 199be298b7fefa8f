//! Shows how far a run is: a bar with the remaining time on a terminal, a plain line for
//! each block elsewhere. Called between slices only: nothing is drawn while a window is open.

use super::say;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Between two drawings on a terminal.
const REDRAW: Duration = Duration::from_secs(1);

/// Progress through work of a known expected length.
pub struct Progress {
    bar: Option<ProgressBar>,
    drawn: Instant,
    started: Instant,
    expected: Duration,
    done: Duration,
}

impl Progress {
    /// Nothing is done yet of what is expected to take `expected`.
    pub fn new(expected: Duration) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            // Hidden from the bar's own clock: it draws when told to.
            let bar = ProgressBar::with_draw_target(
                Some(expected.as_millis() as u64),
                ProgressDrawTarget::stderr(),
            );
            if let Ok(style) = ProgressStyle::with_template("{bar:30} {msg}") {
                bar.set_style(style);
            }
            bar
        });
        let now = Instant::now();
        Self { bar, drawn: now, started: now, expected, done: Duration::ZERO }
    }

    /// So much of the expected time is behind; `what` is under way.
    pub fn advance(&mut self, by: Duration, what: &str) {
        self.done += by;
        let Some(bar) = &self.bar else { return };
        if self.drawn.elapsed() >= REDRAW {
            self.drawn = Instant::now();
            bar.set_message(format!("{what}, {}", self.remaining()));
            bar.set_position(self.done.as_millis() as u64);
        }
    }

    /// A block or memory run is finished.
    pub fn finished(&mut self, what: &str) {
        let line = format!("{what}, {}", self.remaining());
        match &self.bar {
            Some(bar) => bar.suspend(|| say(&line)),
            None => say(&line),
        }
    }

    fn remaining(&self) -> String {
        let left = self.expected.saturating_sub(self.done);
        // What was done took longer or shorter than expected; so will the rest.
        let pace = if self.done.is_zero() {
            1.0
        } else {
            self.started.elapsed().as_secs_f64() / self.done.as_secs_f64()
        };
        let seconds = (left.as_secs_f64() * pace).round() as u64;
        if seconds >= 60 {
            format!("about {} min {:02} s left", seconds / 60, seconds % 60)
        } else {
            format!("about {seconds} s left")
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
