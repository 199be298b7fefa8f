//! What the machine did between two readings, and whose CPU time it was. Pure: who
//! reads is [`super::watch`].

use super::cgroup::Throttling;
use super::counters::Pressure;
use super::layout::Layout;
use serde::{Deserialize, Serialize};

/// The difference of two readings. Never negative: counters that run backward (idle time
/// does, a little, on some kernels) count as standing still.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// Its length.
    pub wall_ns: u64,
    /// CPUs online at both ends.
    pub cpus: Vec<CpuInterval>,
    /// CPUs that may be used at its end.
    pub available: Option<Vec<usize>>,
    /// Time that tasks stood still for memory.
    pub memory: Option<Pressure>,
    /// Time that tasks stood still for disks.
    pub io: Option<Pressure>,
    /// Pages read back from swap.
    pub swapped_in_pages: Option<u64>,
    /// What a quota took.
    pub throttled: Option<Throttling>,
    /// CPU time of this very process, all threads, ns.
    pub harness_ns: Option<u64>,
}

/// What one CPU did over an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuInterval {
    /// Number of the CPU.
    pub cpu: usize,
    /// Running tasks, ns (see [`super::watch::Source`]).
    pub busy_ns: u64,
    /// Doing nothing, ns in ticks of 10 ms.
    pub idle_ns: u64,
    /// Taken by the hypervisor, ns in ticks of 10 ms. On bare metal 0, and where a hypervisor
    /// does not say, 0 as well.
    pub steal_ns: Option<u64>,
}

/// What a round met, for the record. Times on several CPUs are sums over them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Weather {
    /// Length of the interval, ns.
    pub wall_ns: u64,
    /// On the subjects' CPUs.
    pub subject: CpuWeather,
    /// On the generator's CPUs; the same where CPUs are shared.
    pub load: CpuWeather,
    /// Time in which some task stood still for memory, µs.
    pub memory_stall_us: Option<u64>,
    /// Time in which some task stood still for disks, µs.
    pub io_stall_us: Option<u64>,
    /// Pages read back from swap, of the whole machine.
    pub swapped_in_pages: Option<u64>,
    /// Periods in which the quota stopped the harness or a member.
    pub throttled_periods: Option<u64>,
    /// CPUs of the layout that could not be used at its end; null where that is unknown.
    pub lost_cpus: Option<Vec<usize>>,
}

/// What a set of CPUs met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CpuWeather {
    /// Wall time times CPUs, ns.
    pub capacity_ns: u64,
    /// CPU time of neither members nor harness, ns.
    pub foreign_ns: Option<u64>,
    /// CPU time taken by the hypervisor, ns.
    pub steal_ns: Option<u64>,
}

impl Interval {
    /// Time of tasks on `cpus` together; `None` when it is unknown of any.
    pub fn busy_ns(&self, cpus: &[usize]) -> Option<u64> {
        self.sum(cpus, |c| Some(c.busy_ns))
    }

    /// Time that the hypervisor took from `cpus` together; `None` when it is unknown of any.
    pub fn steal_ns(&self, cpus: &[usize]) -> Option<u64> {
        self.sum(cpus, |c| c.steal_ns)
    }

    /// Time on `cpus` of neither the members nor the generator, of whom the caller says how
    /// much they used *on these CPUs*. Members' clocks run ahead of what the kernel has
    /// booked by at most a timer tick, hence the floor of 0.
    pub fn foreign_ns(&self, cpus: &[usize], members_ns: u64, generator_ns: u64) -> Option<u64> {
        Some(self.busy_ns(cpus)?.saturating_sub(members_ns).saturating_sub(generator_ns))
    }

    /// For the record. `members_ns` is the CPU time of all members over this interval, spill
    /// included; without it nobody can say what was foreign. Members are on the subjects'
    /// CPUs; the harness, with all its threads, on the generator's.
    pub fn weather(&self, layout: &Layout, members_ns: Option<u64>) -> Weather {
        let side = |cpus: &[usize], members_ns: Option<u64>, harness_ns: Option<u64>| {
            let own = members_ns.zip(harness_ns);
            CpuWeather {
                capacity_ns: self.wall_ns.saturating_mul(cpus.len() as u64),
                foreign_ns: own.and_then(|(m, h)| self.foreign_ns(cpus, m, h)),
                steal_ns: self.steal_ns(cpus),
            }
        };
        let (subject, load) = if layout.is_shared() {
            // Equal, or overlapping by hand: nobody can say whose time was spent where.
            let both = side(&layout.cpus(), members_ns, self.harness_ns);
            (both, both)
        } else {
            (
                side(&layout.subject, members_ns, Some(0)),
                side(&layout.load, Some(0), self.harness_ns),
            )
        };
        let lost = |available: &Vec<usize>| {
            layout.cpus().into_iter().filter(|cpu| !available.contains(cpu)).collect()
        };
        Weather {
            wall_ns: self.wall_ns,
            subject,
            load,
            memory_stall_us: self.memory.map(|p| p.some_us),
            io_stall_us: self.io.map(|p| p.some_us),
            swapped_in_pages: self.swapped_in_pages,
            throttled_periods: self.throttled.map(|t| t.periods),
            lost_cpus: self.available.as_ref().map(lost),
        }
    }

    fn sum(&self, cpus: &[usize], of: impl Fn(&CpuInterval) -> Option<u64>) -> Option<u64> {
        cpus.iter().map(|&cpu| of(self.cpus.iter().find(|c| c.cpu == cpu)?)).sum()
    }
}

impl CpuWeather {
    /// Foreign share of the CPUs' time, 0 to 1.
    pub fn foreign_share(&self) -> Option<f64> {
        Some(self.foreign_ns? as f64 / self.capacity_ns.max(1) as f64)
    }

    /// Stolen share of the CPUs' time, 0 to 1.
    pub fn steal_share(&self) -> Option<f64> {
        Some(self.steal_ns? as f64 / self.capacity_ns.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(busy_ms: [u64; 2], steal_ms: Option<u64>, harness_ms: u64) -> Interval {
        const MS: u64 = 1_000_000;
        let cpu = |cpu: usize| CpuInterval {
            cpu,
            busy_ns: busy_ms[cpu] * MS,
            idle_ns: 0,
            steal_ns: steal_ms.map(|ms| ms * MS),
        };
        Interval {
            wall_ns: 200 * MS,
            cpus: vec![cpu(0), cpu(1)],
            available: Some(vec![0, 1]),
            memory: None,
            io: None,
            swapped_in_pages: Some(0),
            throttled: None,
            harness_ns: Some(harness_ms * MS),
        }
    }

    #[test]
    fn foreign_is_what_is_nobodys() {
        for (cpus, members, generator, foreign) in [
            (&[0][..], 90, 0, Some(10)),
            (&[0, 1], 90, 50, Some(20)),
            (&[0], 101, 0, Some(0)),
            (&[0, 7], 0, 0, None),
            (&[], 0, 0, Some(0)),
        ] {
            let ms = 1_000_000;
            let i = interval([100, 60], None, 0);
            let found = i.foreign_ns(cpus, members * ms, generator * ms);
            assert_eq!(found, foreign.map(|f| f * ms), "{cpus:?} {members} {generator}");
        }
    }

    #[test]
    fn each_side_is_charged_with_its_own() {
        let split = Layout { subject: vec![0], load: vec![1] };
        let w = interval([100, 60], Some(10), 55).weather(&split, Some(90_000_000));
        assert_eq!(w.subject.foreign_share(), Some(0.05));
        assert_eq!(w.load.foreign_share(), Some(0.025));
        assert_eq!(w.subject.steal_share(), Some(0.05));
        assert_eq!(w.lost_cpus, Some(vec![]));
        let shared = Layout { subject: vec![0, 1], load: vec![0, 1] };
        let w = interval([100, 60], None, 55).weather(&shared, Some(90_000_000));
        assert_eq!((w.subject, w.subject.foreign_ns), (w.load, Some(15_000_000)));
        assert_eq!(w.subject.steal_ns, None);
        let w = interval([100, 60], None, 55).weather(&split, None);
        assert_eq!((w.subject.foreign_ns, w.load.foreign_ns), (None, Some(5_000_000)));
        let lost = Layout { subject: vec![0, 2], load: vec![3] };
        let w = interval([0, 0], None, 0).weather(&lost, Some(0));
        assert_eq!((w.lost_cpus, w.subject.foreign_ns), (Some(vec![2, 3]), None));
    }
}
