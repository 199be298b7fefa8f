//! Which CPUs the subjects get and which the generator.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A division of the CPUs. Where the two lists are equal, the CPUs are shared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// CPUs of every member, by number.
    pub subject: Vec<usize>,
    /// CPUs of the generator, one thread each.
    pub load: Vec<usize>,
}

impl Layout {
    /// The generator takes max(1, n/4) of the CPUs, from the end of the list; the subjects
    /// take the rest. A single CPU is shared.
    pub fn default_for(allowed: &[usize]) -> Self {
        if allowed.len() < 2 {
            return Self::shared(allowed);
        }
        let load = (allowed.len() / 4).max(1);
        let (subject, load) = allowed.split_at(allowed.len() - load);
        Self { subject: subject.to_vec(), load: load.to_vec() }
    }

    /// Everybody on every CPU, nobody pinned to one.
    fn shared(allowed: &[usize]) -> Self {
        Self { subject: allowed.to_vec(), load: allowed.to_vec() }
    }

    /// Threads of the generator: one a CPU of its own, or, on shared CPUs, one for every four,
    /// which the scheduler may move.
    pub fn load_threads(&self) -> usize {
        if self.is_shared() { (self.load.len() / 4).max(1) } else { self.load.len() }
    }

    /// CPUs to pin these threads to; none where CPUs are shared.
    pub fn pinned(&self) -> &[usize] {
        if self.is_shared() { &[] } else { &self.load }
    }

    /// Whether subjects and generator compete for the same CPUs.
    pub fn is_shared(&self) -> bool {
        self.subject.iter().any(|cpu| self.load.contains(cpu))
    }

    /// All CPUs in use, in order.
    pub fn cpus(&self) -> Vec<usize> {
        let mut all = [self.subject.as_slice(), &self.load].concat();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Parses `shared` or `subject=0-2,load=3` (lists as `0,1` or `0-1`).
    ///
    /// # Errors
    /// Says what is wrong and which CPUs there are.
    pub fn parse(text: &str, allowed: &[usize]) -> Result<Self, String> {
        let wanted = "write `shared`, or `subject=0-2,load=3`";
        if text == "shared" {
            return Ok(Self::shared(allowed));
        }
        let (mut subject, mut load) = (Vec::new(), Vec::new());
        let mut key = "";
        for part in text.split(',') {
            let numbers = match part.split_once('=') {
                Some((k, numbers)) => {
                    key = k;
                    numbers
                }
                None => part,
            };
            let list = match key {
                "subject" => &mut subject,
                "load" => &mut load,
                _ => return Err(format!("`{part}` is neither subject=… nor load=…; {wanted}")),
            };
            for cpu in range(numbers).ok_or(format!("`{numbers}` is no CPU; {wanted}"))? {
                if !allowed.contains(&cpu) {
                    return Err(format!("CPU {cpu} may not be used; there are {allowed:?}"));
                }
                if !list.contains(&cpu) {
                    list.push(cpu);
                }
            }
        }
        if subject.is_empty() || load.is_empty() {
            return Err(format!("both subject and load need a CPU; {wanted}"));
        }
        Ok(Self { subject, load })
    }
}

/// CPUs from `2` or `0-3`.
pub(super) fn range(text: &str) -> Option<std::ops::RangeInclusive<usize>> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let (from, to) = (from.parse().ok()?, to.parse().ok()?);
    // A bound, so that a typing error cannot make a list of a billion.
    (from <= to && to < 4096).then_some(from..=to)
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |cpus: &[usize]| cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        write!(f, "subject={},load={}", list(&self.subject), list(&self.load))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gets_a_quarter_and_at_least_one() {
        for (n, load) in [(2, 1), (4, 1), (8, 2), (16, 4)] {
            let layout = Layout::default_for(&(0..n).collect::<Vec<_>>());
            assert_eq!(layout.load.len(), load, "{n} CPUs");
            assert_eq!(layout.subject.len(), n - load);
            assert!(!layout.is_shared());
        }
        let single = Layout::default_for(&[3]);
        assert!(single.is_shared());
        assert_eq!((single.load_threads(), single.pinned()), (1, &[][..]));
    }

    #[test]
    fn a_layout_reads_back_as_it_prints() {
        let all = [0, 1, 2, 3];
        for text in ["subject=0,1,load=2,3", "subject=0-2,load=3", "load=3,subject=0"] {
            let layout = Layout::parse(text, &all).expect(text);
            assert_eq!(Layout::parse(&layout.to_string(), &all), Ok(layout));
        }
        assert!(Layout::parse("shared", &all).expect("shared").is_shared());
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("", "neither subject"),
            ("subject=0", "both subject and load"),
            ("subject=0,load=9", "CPU 9 may not be used"),
            ("subject=x,load=1", "`x` is no CPU"),
            ("sbject=0,load=1", "neither subject"),
            ("subject=0-99999999999,load=1", "is no CPU"),
            ("subject=2-1,load=1", "is no CPU"),
        ] {
            let error = Layout::parse(text, &[0, 1]).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
