//! Where this process stands in the control groups: whose quota and account of CPU time
//! hold for it. Both generations (cgroups(7)); a machine may have one, both or none.

use super::counters::{cpu_list, value};
use std::path::{Path, PathBuf};

/// Folders of this process's groups. Empty where the system has none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cgroups {
    /// With a say on CPU time: its own first, then upward as far as can be seen.
    cpu: Vec<PathBuf>,
    /// With a say on which CPUs: its own.
    cpuset: Option<PathBuf>,
    /// Account of CPU time by CPU, of the whole machine. Only the first generation has it.
    usage_percpu: Option<PathBuf>,
}

/// How much CPU time a group may use.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quota {
    /// As much as there is.
    Unlimited,
    /// As many CPUs' worth.
    Cpus(f64),
}

/// What a quota has taken so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which somebody had to stop.
    pub periods: u64,
    /// Time stopped, of all CPUs, ns.
    pub time_ns: u64,
}

/// A mounted hierarchy: the group at its top as seen from here, and the folder.
struct Mount {
    top: PathBuf,
    folder: PathBuf,
}

impl Cgroups {
    /// Finds them below `root`, which is `/` but for tests.
    pub fn find(root: &Path) -> Self {
        let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        let (groups, mounts) = (read("proc/self/cgroup"), read("proc/self/mountinfo"));
        let chain = |controller: &str| chain(root, &groups, &mounts, controller);
        let usage_percpu = chain("cpuacct").pop().and_then(|top| {
            // Only the true top of a hierarchy has this file. A container that sees its own
            // group as the top has an account of itself alone.
            let whole = top.join("release_agent").exists();
            Some(top.join("cpuacct.usage_percpu")).filter(|file| whole && file.exists())
        });
        Self { cpu: chain("cpu"), cpuset: chain("cpuset").into_iter().next(), usage_percpu }
    }

    /// The smallest quota that holds for this process; `None` where none can be read.
    pub fn quota(&self) -> Option<Quota> {
        let quotas = self.cpu.iter().filter_map(|folder| quota(folder));
        quotas.reduce(|a, b| match (a, b) {
            (Quota::Cpus(a), Quota::Cpus(b)) => Quota::Cpus(a.min(b)),
            (Quota::Unlimited, other) | (other, Quota::Unlimited) => other,
        })
    }

    /// The file with ns of CPU time by CPU, of everybody.
    pub fn usage_percpu(&self) -> Option<&Path> {
        self.usage_percpu.as_deref()
    }

    /// Groups whose quota can stop this process; a quota above it stops it too.
    pub fn throttling_files(&self) -> Vec<PathBuf> {
        let files = self.cpu.iter().map(|folder| folder.join("cpu.stat"));
        // The top of the second generation has the file, but no quota.
        let limits = |text: String| throttling(&text).is_some();
        files.filter(|f| std::fs::read_to_string(f).is_ok_and(limits)).collect()
    }

    /// The file that lists the CPUs this process's group may use right now.
    pub fn cpus_file(&self) -> Option<PathBuf> {
        let folder = self.cpuset.as_ref()?;
        ["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"]
            .iter()
            .map(|name| folder.join(name))
            .find(|file| std::fs::read_to_string(file).is_ok_and(|text| cpu_list(&text).is_some()))
    }
}

/// Folders of the groups above this process that have `controller`, its own first.
fn chain(root: &Path, groups: &str, mounts: &str, controller: &str) -> Vec<PathBuf> {
    let found = first_generation(groups, mounts, controller).or_else(|| second(groups, mounts));
    let Some((group, mount)) = found else { return Vec::new() };
    let top = root.join(mount.folder.strip_prefix("/").unwrap_or(&mount.folder));
    // A container may see a group's name from outside and its folder from inside: then only
    // the folder at the top is there.
    let below = Path::new(group).strip_prefix(&mount.top).unwrap_or(Path::new(""));
    let own = Some(top.join(below)).filter(|own| own.is_dir()).unwrap_or_else(|| top.clone());
    own.ancestors().take_while(|f| f.starts_with(&top)).map(Path::to_path_buf).collect()
}

fn first_generation<'a>(groups: &'a str, mounts: &str, name: &str) -> Option<(&'a str, Mount)> {
    let has = |list: &str| list.split(',').any(|c| c == name);
    // `3:cpu,cpuacct:/group`
    let group = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?;
        parts.next().filter(|_| has(controllers))
    })?;
    let mount =
        mounts.lines().find_map(|l| mount(l, |kind, options| kind == "cgroup" && has(options)))?;
    Some((group, mount))
}

fn second<'a>(groups: &'a str, mounts: &str) -> Option<(&'a str, Mount)> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mount = mounts.lines().find_map(|l| mount(l, |kind, _| kind == "cgroup2"))?;
    Some((group, mount))
}

/// A line of mountinfo, `ID PARENT DEVICE TOP FOLDER … - TYPE SOURCE OPTIONS`
/// (proc_pid_mountinfo(5)), if its type and options are wanted.
fn mount(line: &str, wanted: impl Fn(&str, &str) -> bool) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut right = right.split(' ');
    let (kind, options) = (right.next()?, right.nth(1)?);
    let mut left = left.split(' ').skip(3);
    let mount = Mount { top: left.next()?.into(), folder: left.next()?.into() };
    wanted(kind, options).then_some(mount)
}

fn quota(folder: &Path) -> Option<Quota> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    if let Some(text) = read("cpu.max") {
        let (quota, period) = text.trim().split_once(' ')?;
        return parse_quota(quota, period);
    }
    parse_quota(read("cpu.cfs_quota_us")?.trim(), read("cpu.cfs_period_us")?.trim())
}

/// `max` or -1 is no limit.
fn parse_quota(quota_us: &str, period_us: &str) -> Option<Quota> {
    if quota_us == "max" || quota_us == "-1" {
        return Some(Quota::Unlimited);
    }
    let (quota, period): (f64, f64) = (quota_us.parse().ok()?, period_us.parse().ok()?);
    (quota > 0.0 && period > 0.0).then_some(Quota::Cpus(quota / period))
}

/// `cpu.stat` of either generation.
pub fn throttling(text: &str) -> Option<Throttling> {
    let second = value(text, "throttled_usec").map(|us| us.saturating_mul(1000));
    let time_ns = second.or_else(|| value(text, "throttled_time"))?;
    Some(Throttling { periods: value(text, "nr_throttled")?, time_ns })
}

#[cfg(test)]
mod tests {
    use super::super::tests::machine;
    use super::*;

    const V1_STAT: &str = "nr_periods 9\nnr_throttled 3\nthrottled_time 5000\n";
    const V2_STAT: &str = "usage_usec 77\nnr_periods 9\nnr_throttled 3\nthrottled_usec 5\n";

    #[test]
    fn the_first_generation() {
        let root = machine(&[
            ("proc/self/cgroup", "3:cpuset:/\n2:cpu,cpuacct:/a/b\n0::/\n"),
            (
                "proc/self/mountinfo",
                "32 31 0:29 / /cg/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
                 33 31 0:30 / /cg/set rw - cgroup cgroup rw,cpuset\n",
            ),
            ("cg/cpu/release_agent", ""),
            ("cg/cpu/cpuacct.usage_percpu", "1 2\n"),
            ("cg/cpu/cpu.cfs_quota_us", "-1\n"),
            ("cg/cpu/cpu.cfs_period_us", "100000\n"),
            ("cg/cpu/a/cpu.cfs_quota_us", "150000\n"),
            ("cg/cpu/a/cpu.cfs_period_us", "100000\n"),
            ("cg/cpu/a/cpu.stat", V1_STAT),
            ("cg/cpu/a/b/cpu.stat", V1_STAT),
            ("cg/set/cpuset.effective_cpus", "0-1\n"),
        ]);
        let found = Cgroups::find(root.path());
        assert_eq!(found.quota(), Some(Quota::Cpus(1.5)), "the one above holds too");
        assert_eq!(found.throttling_files().len(), 2);
        assert!(found.usage_percpu().is_some());
        assert!(found.cpus_file().expect("a file").ends_with("set/cpuset.effective_cpus"));
    }

    #[test]
    fn a_container_of_the_first_generation_has_no_account_of_the_machine() {
        let root = machine(&[
            ("proc/self/cgroup", "2:cpu,cpuacct:/docker/abc\n"),
            (
                "proc/self/mountinfo",
                "32 31 0:29 /docker/abc /cg rw - cgroup cgroup rw,cpu,cpuacct\n",
            ),
            ("cg/cpuacct.usage_percpu", "1 2\n"),
            ("cg/cpu.cfs_quota_us", "50000\n"),
            ("cg/cpu.cfs_period_us", "100000\n"),
        ]);
        let found = Cgroups::find(root.path());
        assert_eq!((found.quota(), found.usage_percpu()), (Some(Quota::Cpus(0.5)), None));
    }

    #[test]
    fn the_second_generation() {
        let root = machine(&[
            ("proc/self/cgroup", "0::/user.slice/run\n"),
            ("proc/self/mountinfo", "32 31 0:29 / /cg rw - cgroup2 cgroup2 rw,nsdelegate\n"),
            ("cg/cpu.stat", "usage_usec 77\n"),
            ("cg/user.slice/cpu.max", "max 100000\n"),
            ("cg/user.slice/run/cpu.max", "200000 100000\n"),
            ("cg/user.slice/run/cpu.stat", V2_STAT),
            ("cg/user.slice/run/cpuset.cpus.effective", "0-3\n"),
        ]);
        let found = Cgroups::find(root.path());
        assert_eq!(found.quota(), Some(Quota::Cpus(2.0)));
        assert_eq!(found.throttling_files().len(), 1, "the top has no quota");
        assert_eq!(found.usage_percpu(), None);
        assert!(found.cpus_file().is_some());
    }

    #[test]
    fn no_groups_at_all() {
        let root = machine(&[]);
        let found = Cgroups::find(root.path());
        assert_eq!(found, Cgroups::default());
        assert_eq!((found.quota(), found.cpus_file()), (None, None));
        assert!(found.throttling_files().is_empty());
    }

    #[test]
    fn throttling_of_both_generations() {
        let same = Some(Throttling { periods: 3, time_ns: 5000 });
        assert_eq!((throttling(V1_STAT), throttling(V2_STAT)), (same, same));
        assert_eq!(throttling("usage_usec 77\n"), None);
        assert_eq!(parse_quota("x", "100000"), None);
    }
}
