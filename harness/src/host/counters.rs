//! The kernel's texts about what the machine has done so far, as numbers. Pure: who reads
//! the files is [`super::watch`].

use super::layout::range;

/// A tick as `/proc/stat` counts: USER_HZ is 100 on every architecture that this could meet
/// (proc_pid_stat(5), `sysconf(_SC_CLK_TCK)`).
const TICK_NS: i64 = 10_000_000;

/// What one CPU did since boot, ns in steps of 10 ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTicks {
    /// Number of the CPU.
    pub cpu: usize,
    /// In tasks: user, nice, system. A sample at each of the kernel's timer ticks, unlike the
    /// others, on most kernels.
    pub tasks_ns: i64,
    /// In interrupts, hard and soft. Only on some kernels is a task's own clock free of them.
    pub interrupts_ns: i64,
    /// Doing nothing, waiting for a disk included.
    pub idle_ns: i64,
    /// Ready to run while the hypervisor ran somebody else. `None` from kernels that do not count it;
    /// a hypervisor may leave it at 0.
    pub steal_ns: Option<i64>,
}

/// `/proc/stat`: the online CPUs. Malformed lines are left out.
pub fn stat(text: &str) -> Vec<CpuTicks> {
    text.lines().filter_map(stat_line).collect()
}

fn stat_line(line: &str) -> Option<CpuTicks> {
    let mut words = line.strip_prefix("cpu")?.split(' ');
    // The line of all CPUs together has no number.
    let cpu = words.next()?.parse().ok()?;
    let ns: Vec<i64> =
        words.map(|w| w.parse::<i64>().ok()?.checked_mul(TICK_NS)).collect::<Option<_>>()?;
    let [user, nice, system, idle, iowait, irq, softirq, ..] = ns[..] else { return None };
    Some(CpuTicks {
        cpu,
        tasks_ns: user + nice + system,
        interrupts_ns: irq + softirq,
        idle_ns: idle + iowait,
        steal_ns: ns.get(7).copied(),
    })
}

/// `/proc/schedstat`: ns that tasks ran, by CPU (the seventh number since version 15;
/// Documentation/scheduler/sched-stats.rst of the kernel). `None` for older versions.
pub fn schedstat(text: &str) -> Option<Vec<(usize, i64)>> {
    let version: u32 = text.lines().next()?.strip_prefix("version ")?.trim().parse().ok()?;
    if version < 15 {
        return None;
    }
    let line = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split(' ');
        Some((words.next()?.parse().ok()?, words.nth(6)?.parse().ok()?))
    };
    Some(text.lines().filter_map(line).collect())
}

/// `cpuacct.usage_percpu`: ns that tasks ran, by CPU from 0.
pub fn usage_percpu(text: &str) -> Option<Vec<(usize, i64)>> {
    let ns: Vec<i64> = text.split_whitespace().map(|w| w.parse().ok()).collect::<Option<_>>()?;
    Some(ns.into_iter().enumerate().collect())
}

/// Time that tasks stood still for want of something, µs since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pressure {
    /// At least one task did.
    pub some_us: u64,
    /// All that were not idle did.
    pub full_us: u64,
}

/// A file of `/proc/pressure`.
pub fn pressure(text: &str) -> Option<Pressure> {
    let total = |kind: &str| -> Option<u64> {
        let line = text.lines().find(|l| l.split(' ').next() == Some(kind))?;
        line.rsplit_once("total=")?.1.trim().parse().ok()
    };
    Some(Pressure { some_us: total("some")?, full_us: total("full")? })
}

/// The number behind `key` in a text of `key number` lines: `/proc/vmstat`, `cpu.stat`.
pub fn value(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}

/// A list of CPUs as the kernel writes it: `0-3,5`. An empty list is `None`: no machine has
/// no CPU, so the text says nothing.
pub fn cpu_list(text: &str) -> Option<Vec<usize>> {
    let ranges: Vec<_> = text.trim().split(',').map(range).collect::<Option<_>>()?;
    Some(ranges.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_with_and_without_steal() {
        let text = "cpu  9 9 9 9 9 9 9 9 0 0\n\
                    cpu0 100 20 3 4000 50 6 7 8 0 0\n\
                    cpu12 1 2 3 4 5 6 7\n\
                    cpu13 1 2 3\n\
                    cpu14 1 2 x 4 5 6 7\n\
                    intr 12 cpu\n";
        let all = stat(text);
        assert_eq!(all.len(), 2, "{all:?}");
        let ms = |ticks: i64| ticks * TICK_NS;
        assert_eq!(
            all[0],
            CpuTicks {
                cpu: 0,
                tasks_ns: ms(123),
                interrupts_ns: ms(13),
                idle_ns: ms(4050),
                steal_ns: Some(ms(8))
            }
        );
        assert_eq!((all[1].cpu, all[1].steal_ns), (12, None));
        assert_eq!(stat(""), []);
    }

    #[test]
    fn run_time_by_cpu() {
        let text = "version 17\ntimestamp 4297\n\
                    cpu0 0 0 0 0 0 0 2187134 55 99\ndomain0 SMT 3 1 2 3 4 5 6 7\n\
                    cpu1 0 0 0 0 0 0 77 1 2\n";
        assert_eq!(schedstat(text), Some(vec![(0, 2_187_134), (1, 77)]));
        assert_eq!(schedstat(&text.replace("17\n", "14\n")), None);
        assert_eq!(schedstat(""), None);
        assert_eq!(usage_percpu("12 34 \n"), Some(vec![(0, 12), (1, 34)]));
        assert_eq!(usage_percpu("12 x\n"), None);
    }

    #[test]
    fn pressure_and_keys() {
        let text = "some avg10=0.00 avg60=1.2 avg300=0.00 total=41\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(pressure(text), Some(Pressure { some_us: 41, full_us: 7 }));
        // The CPU's has only `some` on older kernels.
        assert_eq!(pressure("some avg10=0.00 total=41\n"), None);
        assert_eq!(pressure(""), None);
        let text = "nr_periods 4\nnr_throttled 3\npswpin 0\npswpin_other 8\n";
        for (key, number) in
            [("nr_throttled", Some(3)), ("pswpin", Some(0)), ("nr", None), ("x", None)]
        {
            assert_eq!(value(text, key), number, "{key}");
        }
    }

    #[test]
    fn lists_of_cpus() {
        for (text, list) in [
            ("0-3,5\n", Some(vec![0, 1, 2, 3, 5])),
            ("0", Some(vec![0])),
            ("\n", None),
            ("0-x", None),
        ] {
            assert_eq!(cpu_list(text), list, "{text:?}");
        }
    }
}
