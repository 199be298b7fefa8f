//! What the machine does beside the measurement, as the difference of two readings of the
//! kernel's counters. What a system does not tell is `None`; where there is no `/proc`, that
//! is everything.
//!
//! The natural interval is a round (200 to 300 ms), not a slice: steal and idle time count
//! in ticks of 10 ms, and tasks' time is not booked at once (see [`Source`]). A reading takes
//! about 80 µs here (2 CPUs; `/proc/stat` grows with CPUs and interrupt lines): cheap enough
//! between slices, too dear within one.
//!
//! What lies between two readings is [`super::interval`]'s, what to think of it
//! [`super::gates`]'s.

use super::cgroup::{self, Cgroups, Throttling};
use super::counters::{self, CpuTicks, Pressure};
use super::cpu_time;
use super::interval::{CpuInterval, Interval, Weather};
use super::layout::Layout;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where the time that tasks ran comes from, the finest that the machine has. Members' own
/// clocks tick in ns of task time, so what they are held against must too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The whole machine's `cpuacct.usage_percpu` (first generation of control groups): ns
    /// by the very clock of the members, booked at each timer tick and each switch.
    Cpuacct,
    /// `/proc/schedstat`: ns, booked when a task leaves the CPU, interrupts and steal
    /// included. Those are taken off again, in ticks, so that it reads rather too little.
    Schedstat,
    /// `/proc/stat`, user + nice + system: mostly a sample at each timer tick, shown in steps
    /// of 10 ms. Good over seconds only. Interrupts are left out (on many kernels no task's
    /// clock has them, and the load itself makes many), so that it reads rather too little.
    Ticks,
    /// Nothing can be read.
    None,
}

/// The counters' files, found once.
#[derive(Debug)]
pub struct Watch {
    root: PathBuf,
    source: Source,
    usage_percpu: Option<PathBuf>,
    throttling: Vec<PathBuf>,
    cpus_file: Option<PathBuf>,
}

/// The counters at one moment.
#[derive(Debug, Clone)]
pub struct Reading {
    at: Instant,
    cpus: Vec<Cpu>,
    /// Online, and open to this process's group where that can be read.
    available: Option<Vec<usize>>,
    memory: Option<Pressure>,
    io: Option<Pressure>,
    swapped_in_pages: Option<u64>,
    throttled: Option<Throttling>,
    harness_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cpu {
    cpu: usize,
    /// That tasks ran, since some moment, ns.
    busy_ns: i64,
    idle_ns: i64,
    steal_ns: Option<i64>,
}

impl Watch {
    /// Finds what this machine has.
    pub fn open() -> Self {
        Self::below(Path::new("/"))
    }

    fn below(root: &Path) -> Self {
        let cgroups = Cgroups::find(root);
        let mut watch = Self {
            root: root.to_path_buf(),
            source: Source::None,
            usage_percpu: cgroups.usage_percpu().map(Path::to_path_buf),
            throttling: cgroups.throttling_files(),
            cpus_file: cgroups.cpus_file(),
        };
        let stat = watch.stat();
        let sources = [Source::Cpuacct, Source::Schedstat, Source::Ticks];
        // A kernel may have the file and book nothing in it.
        let reads = |&source: &Source| watch.busy(source, &stat).iter().any(|(_, ns)| *ns > 0);
        watch.source = sources.into_iter().find(reads).unwrap_or(Source::None);
        watch
    }

    /// How fine the time of tasks is here.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Reads the counters.
    pub fn read(&self) -> Reading {
        let at = Instant::now();
        let stat = self.stat();
        let busy = self.busy(self.source, &stat);
        let cpus = stat.iter().filter_map(|ticks| {
            let (_, busy_ns) = *busy.iter().find(|(cpu, _)| *cpu == ticks.cpu)?;
            let CpuTicks { cpu, idle_ns, steal_ns, .. } = *ticks;
            Some(Cpu { cpu, busy_ns, idle_ns, steal_ns })
        });
        let cpus = cpus.collect();
        let open = self.cpus_file.as_ref().and_then(|f| std::fs::read_to_string(f).ok());
        let open = open.and_then(|text| counters::cpu_list(&text));
        let online = stat.iter().map(|c| c.cpu);
        let available =
            online.filter(|cpu| open.as_ref().is_none_or(|open| open.contains(cpu))).collect();
        let pressure = |name: &str| counters::pressure(&self.text(name)?);
        Reading {
            at,
            available: (!stat.is_empty()).then_some(available),
            cpus,
            memory: pressure("proc/pressure/memory"),
            io: pressure("proc/pressure/io"),
            swapped_in_pages: self
                .text("proc/vmstat")
                .and_then(|text| counters::value(&text, "pswpin")),
            throttled: self.throttled(),
            harness_ns: cpu_time::of_this_process(),
        }
    }

    /// Watches for `length` and does nothing else: before a run, when no member is there.
    pub fn look(&self, layout: &Layout, length: Duration) -> Weather {
        let before = self.read();
        std::thread::sleep(length);
        before.until(&self.read()).weather(layout, Some(0))
    }

    fn text(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.root.join(path)).ok()
    }

    fn stat(&self) -> Vec<CpuTicks> {
        self.text("proc/stat").map(|text| counters::stat(&text)).unwrap_or_default()
    }

    /// Time that tasks ran since some moment, ns, by CPU.
    fn busy(&self, source: Source, stat: &[CpuTicks]) -> Vec<(usize, i64)> {
        let from_file = match source {
            Source::Cpuacct => {
                let text = self.usage_percpu.as_ref().and_then(|f| std::fs::read_to_string(f).ok());
                text.and_then(|text| counters::usage_percpu(&text))
            }
            Source::Schedstat => {
                let text = self.text("proc/schedstat");
                text.and_then(|text| counters::schedstat(&text)).map(|run| without(&run, stat))
            }
            Source::Ticks => Some(stat.iter().map(|t| (t.cpu, t.tasks_ns)).collect()),
            Source::None => None,
        };
        from_file.unwrap_or_default()
    }

    /// Sum over this process's group and those above it; `None` when any cannot be read.
    fn throttled(&self) -> Option<Throttling> {
        let one = |file: &PathBuf| cgroup::throttling(&std::fs::read_to_string(file).ok()?);
        let all: Vec<Throttling> = self.throttling.iter().map(one).collect::<Option<_>>()?;
        all.into_iter().reduce(|a, b| Throttling {
            periods: a.periods + b.periods,
            time_ns: a.time_ns + b.time_ns,
        })
    }
}

/// Run time without interrupts and steal: a member's own clock leaves steal out, and on
/// most kernels interrupts too.
fn without(run: &[(usize, i64)], stat: &[CpuTicks]) -> Vec<(usize, i64)> {
    let own = |&(cpu, ns): &(usize, i64)| {
        let ticks = stat.iter().find(|t| t.cpu == cpu)?;
        Some((cpu, ns - ticks.interrupts_ns - ticks.steal_ns.unwrap_or(0)))
    };
    run.iter().filter_map(own).collect()
}

impl Reading {
    /// From this reading to a later one.
    pub fn until(&self, later: &Self) -> Interval {
        let since = |then: i64, now: i64| u64::try_from(now - then).unwrap_or(0);
        let cpus = self.cpus.iter().filter_map(|before| {
            let after = later.cpus.iter().find(|c| c.cpu == before.cpu)?;
            Some(CpuInterval {
                cpu: before.cpu,
                busy_ns: since(before.busy_ns, after.busy_ns),
                idle_ns: since(before.idle_ns, after.idle_ns),
                steal_ns: before.steal_ns.zip(after.steal_ns).map(|(a, b)| since(a, b)),
            })
        });
        let stalled = |then: Option<Pressure>, now: Option<Pressure>| {
            then.zip(now).map(|(then, now)| Pressure {
                some_us: now.some_us.saturating_sub(then.some_us),
                full_us: now.full_us.saturating_sub(then.full_us),
            })
        };
        let count = |then: Option<u64>, now: Option<u64>| Some(now?.saturating_sub(then?));
        Interval {
            wall_ns: later.at.duration_since(self.at).as_nanos() as u64,
            cpus: cpus.collect(),
            available: later.available.clone(),
            memory: stalled(self.memory, later.memory),
            io: stalled(self.io, later.io),
            swapped_in_pages: count(self.swapped_in_pages, later.swapped_in_pages),
            throttled: self.throttled.zip(later.throttled).map(|(then, now)| Throttling {
                periods: now.periods.saturating_sub(then.periods),
                time_ns: now.time_ns.saturating_sub(then.time_ns),
            }),
            harness_ns: count(self.harness_ns, later.harness_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine whose counters say this.
    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Watch) {
        let root = super::super::tests::machine(files);
        let watch = Watch::below(root.path());
        (root, watch)
    }

    #[test]
    fn the_finest_source_is_taken_and_interrupts_are_taken_off() {
        let stat = "cpu0 100 0 0 500 0 1 2 3
";
        let schedstat = "version 17
cpu0 0 0 0 0 0 0 2000000000 0 0
";
        let (_root, watch) = machine(&[("proc/stat", stat), ("proc/schedstat", schedstat)]);
        assert_eq!(watch.source(), Source::Schedstat);
        assert_eq!(watch.read().cpus[0].busy_ns, 2_000_000_000 - 60_000_000);
        let dead = schedstat.replace("2000000000", "0");
        let (_root, watch) = machine(&[("proc/stat", stat), ("proc/schedstat", &dead)]);
        assert_eq!(watch.source(), Source::Ticks);
        assert_eq!(watch.read().cpus[0].busy_ns, 1_000_000_000);
    }

    #[test]
    fn a_machine_that_tells_nothing_reads_unknown() {
        let (_root, watch) = machine(&[]);
        assert_eq!(watch.source(), Source::None);
        let interval = watch.read().until(&watch.read());
        let layout = Layout { subject: vec![0], load: vec![1] };
        let w = interval.weather(&layout, Some(0));
        assert_eq!((w.subject.foreign_ns, w.subject.steal_ns, w.lost_cpus), (None, None, None));
        assert_eq!(
            (w.swapped_in_pages, w.throttled_periods, w.memory_stall_us),
            (None, None, None)
        );
    }

    #[test]
    fn counters_become_differences() {
        let stat = |t: u32| {
            format!(
                "cpu0 {t} 0 0 {} 0 0 0 {t}
cpu1 0 0 0 9 0 0 0 0
",
                1000 - t
            )
        };
        let pressure = |t: u32| {
            format!(
                "some avg10=0.00 total={t}
full avg10=0.00 total=0
"
            )
        };
        let (root, watch) = machine(&[
            ("proc/stat", &stat(100)),
            (
                "proc/vmstat",
                "pswpin 4
",
            ),
            ("proc/pressure/memory", &pressure(10)),
        ]);
        let before = watch.read();
        let set =
            |path: &str, text: &str| std::fs::write(root.path().join(path), text).expect(path);
        set("proc/stat", stat(103).lines().next().expect("cpu0"));
        set(
            "proc/vmstat",
            "pswpin 9
",
        );
        set("proc/pressure/memory", &pressure(15));
        let interval = before.until(&watch.read());
        let ms = 1_000_000;
        let cpu0 = CpuInterval { cpu: 0, busy_ns: 30 * ms, idle_ns: 0, steal_ns: Some(30 * ms) };
        assert_eq!(interval.cpus, [cpu0]);
        assert_eq!(interval.available, Some(vec![0]));
        assert_eq!(interval.swapped_in_pages, Some(5));
        assert_eq!(interval.memory.map(|p| p.some_us), Some(5));
        assert_eq!(interval.io, None);
    }
}
