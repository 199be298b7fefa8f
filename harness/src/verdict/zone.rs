//! Which differences are too small to matter, and which figures claims are made about. Both
//! are constants, so that nobody can choose them after having seen the data.

use std::fmt;

/// The metrics claims are made about; all others are exploratory. One for each question of
/// somebody who has to decide: what it costs, how much it can take, how long the unlucky
/// wait, how large the machine must be.
pub const PRIMARY: [&str; 4] = ["cpu-per-request", "throughput", "p99", "memory-pss-loaded"];

/// Whether `metric` is one of the [`PRIMARY`] ones.
pub fn is_primary(metric: &str) -> bool {
    PRIMARY.contains(&metric)
}

/// The ratios that count as equal. Symmetric on the logarithmic scale, from 1 / (1 + x) to
/// 1 + x, so that it does not matter which member stands above the line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Zone {
    percent: u32,
}

/// Nobody rewrites a service for less than a twentieth; and the order of linking or the size
/// of the environment alone can move the same code by several per cent (T. Mytkowicz and
/// others, Producing wrong data without doing anything obviously wrong!, ASPLOS 2009).
const NARROW: Zone = Zone { percent: 5 };
/// Tails and memory are coarser: p99 hangs on a hundredth of the requests, memory on when the
/// last collection ran and in which steps a heap grows.
const WIDE: Zone = Zone { percent: 10 };

impl Zone {
    /// The zone of `metric`: ±5 % for throughput, p50 and CPU per request; ±10 % for p99,
    /// memory and all else.
    pub fn of(metric: &str) -> Self {
        match metric {
            "throughput" | "p50" | "cpu-per-request" | "cpu-per-request-total" => NARROW,
            _ => WIDE,
        }
    }

    /// Its upper edge as the logarithm of a ratio; the lower one is its negative.
    pub fn edge(self) -> f64 {
        (f64::from(self.percent) / 100.0).ln_1p()
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "±{} %", self.percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_and_the_primary_family() {
        for (metric, percent, primary) in [
            ("throughput", 5, true),
            ("p50", 5, false),
            ("cpu-per-request", 5, true),
            ("p99", 10, true),
            ("p99.9", 10, false),
            ("memory-pss-loaded", 10, true),
            ("memory-rss-idle", 10, false),
            ("time-to-ready", 10, false),
        ] {
            let zone = Zone::of(metric);
            assert_eq!(zone.to_string(), format!("±{percent} %"), "{metric}");
            assert!((zone.edge().exp() - 1.0 - f64::from(percent) / 100.0).abs() < 1e-12);
            assert_eq!(is_primary(metric), primary, "{metric}");
        }
    }
}
