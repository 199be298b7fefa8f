//! When a run with an open number of blocks has enough of them.

use super::Zone;
use crate::stats::paired;
use serde::{Deserialize, Serialize};

/// Numbers of blocks after which a run may end; in between nobody looks.
pub const LOOKS: [usize; 4] = [6, 12, 18, 24];

/// Why a run with an open number of blocks ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoppedBy {
    /// Every interval is narrow enough to tell a tie from a difference.
    Width,
    /// The last look: more blocks would hardly help.
    Cap,
}

/// Whether a run of `blocks` finished blocks ends here. `primary` has the zone and the blocks'
/// log ratios of every primary comparison that further blocks would narrow.
///
/// It ends when every interval is at most half as wide as its zone, or at the last look; never
/// because of where the intervals lie. A run that goes on until something is significant finds
/// a difference sooner or later, whether or not there is one.
pub fn stop(blocks: usize, primary: &[(Zone, &[f64])]) -> Option<StoppedBy> {
    let narrow = |(zone, log_ratios): &(Zone, &[f64])| {
        half_width(log_ratios).is_some_and(|half| half <= zone.edge() / 2.0)
    };
    if LOOKS.contains(&blocks) && !primary.is_empty() && primary.iter().all(narrow) {
        return Some(StoppedBy::Width);
    }
    (blocks >= LOOKS[LOOKS.len() - 1]).then_some(StoppedBy::Cap)
}

/// Half the width of the interval, as the logarithm of a ratio.
fn half_width(log_ratios: &[f64]) -> Option<f64> {
    let (low, high) = paired::estimate(log_ratios)?.interval?;
    Some((high / low).ln() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Log ratios around `centre` whose interval at six blocks has the half-width `half`.
    fn six(centre: f64, half: f64) -> Vec<f64> {
        [-1.0, -0.5, -0.1, 0.1, 0.5, 1.0].map(|x| centre + half * x).to_vec()
    }

    #[test]
    fn stops_on_width_whatever_the_figures_say() {
        let five = Zone::of("throughput");
        // Half of the zone's log edge is 0.0244.
        for centre in [0.0, 0.05, -3.0] {
            assert_eq!(stop(6, &[(five, &six(centre, 0.0243))]), Some(StoppedBy::Width));
            assert_eq!(stop(6, &[(five, &six(centre, 0.0245))]), None);
        }
        // The widest decides, each by its own zone.
        let (narrow, wide) = (six(0.0, 0.01), six(0.0, 0.04));
        let ten = Zone::of("p99");
        assert_eq!(stop(6, &[(five, &narrow), (ten, &wide)]), Some(StoppedBy::Width));
        assert_eq!(stop(6, &[(five, &narrow), (five, &wide)]), None);
    }

    #[test]
    fn looks_at_four_numbers_of_blocks_only_and_ends_at_the_last() {
        let d = six(0.0, 0.001);
        let five = Zone::of("throughput");
        for blocks in 0..30 {
            let expected = match blocks {
                6 | 12 | 18 | 24 => Some(StoppedBy::Width),
                25.. => Some(StoppedBy::Cap),
                _ => None,
            };
            assert_eq!(stop(blocks, &[(five, &d)]), expected, "{blocks} blocks");
        }
        assert_eq!(stop(24, &[(five, &six(0.0, 1.0))]), Some(StoppedBy::Cap));
    }

    #[test]
    fn what_was_not_measured_is_not_narrow() {
        let five = Zone::of("throughput");
        assert_eq!(stop(12, &[]), None);
        assert_eq!(stop(12, &[(five, &[0.0; 5])]), None);
        assert_eq!(stop(24, &[]), Some(StoppedBy::Cap));
    }
}
