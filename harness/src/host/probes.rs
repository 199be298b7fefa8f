//! What about the machine's settings makes results noisy. Read once, before a run; what
//! changes while it runs is [`super::watch`]'s.
//!
//! Does not judge: see [`super::gates`]. What a system does not tell is `None`.

use super::cgroup::{Cgroups, Quota};
use super::counters::cpu_list;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Settings of the machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probes {
    /// Who sets the CPUs' clock: the kinds that occur among them.
    pub governors: Option<Vec<String>>,
    /// Whether the clock may exceed what it can hold for long.
    pub turbo: Option<bool>,
    /// Whether the machine runs on its battery.
    pub on_battery: Option<bool>,
    /// How much CPU time the harness and its members may use.
    pub quota: Option<Quota>,
    /// CPUs that are threads of one core, core by core.
    pub cores: Option<Vec<Vec<usize>>>,
    /// Swap in use, bytes.
    pub swap_used_bytes: Option<u64>,
    /// Whether the kernel says when tasks stand still for want of memory or disks.
    pub pressure: bool,
    /// Whether a hypervisor shows.
    pub virtual_machine: Option<bool>,
}

/// Reads them.
pub fn read() -> Probes {
    Probes { swap_used_bytes: swap_used_bytes(), ..below(Path::new("/")) }
}

/// All that stands in files below `root`, which is `/` but for tests.
fn below(root: &Path) -> Probes {
    Probes {
        governors: governors(root),
        turbo: turbo(root),
        on_battery: on_battery(root),
        quota: Cgroups::find(root).quota(),
        cores: cores(root),
        swap_used_bytes: None,
        pressure: text(&root.join("proc/pressure/memory")).is_some(),
        virtual_machine: virtual_machine(root),
    }
}

fn swap_used_bytes() -> Option<u64> {
    use sysinfo::{MemoryRefreshKind, RefreshKind, System};
    let wanted = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_swap());
    System::new_with_specifics(wanted).ok().map(|system| system.used_swap())
}

fn text(file: &Path) -> Option<String> {
    Some(std::fs::read_to_string(file).ok()?.trim().to_owned())
}

/// What is in a folder, in order.
fn entries(folder: &Path) -> Option<Vec<PathBuf>> {
    let all = std::fs::read_dir(folder).ok()?;
    let mut all: Vec<PathBuf> = all.filter_map(|e| Some(e.ok()?.path())).collect();
    all.sort();
    Some(all)
}

fn governors(root: &Path) -> Option<Vec<String>> {
    let policies = entries(&root.join("sys/devices/system/cpu/cpufreq"))?;
    let mut found: Vec<String> =
        policies.iter().filter_map(|p| text(&p.join("scaling_governor"))).collect();
    found.sort();
    found.dedup();
    Some(found).filter(|found| !found.is_empty())
}

/// One driver has a switch that turns it off, the others one that turns it on
/// (Documentation/admin-guide/pm of the kernel).
fn turbo(root: &Path) -> Option<bool> {
    let cpu = root.join("sys/devices/system/cpu");
    let off = text(&cpu.join("intel_pstate/no_turbo")).map(|t| t == "0");
    off.or_else(|| text(&cpu.join("cpufreq/boost")).map(|t| t == "1"))
}

/// On its battery when one discharges, whatever the mains say. A machine without a battery
/// is not on it.
fn on_battery(root: &Path) -> Option<bool> {
    let supplies = entries(&root.join("sys/class/power_supply"))?;
    let discharges = |supply: &PathBuf| {
        text(&supply.join("type")).as_deref() == Some("Battery")
            // That of a mouse or a pen is somebody else's.
            && text(&supply.join("scope")).as_deref() != Some("Device")
            && text(&supply.join("status")).as_deref() == Some("Discharging")
    };
    Some(supplies.iter().any(discharges))
}

fn cores(root: &Path) -> Option<Vec<Vec<usize>>> {
    let cpus = entries(&root.join("sys/devices/system/cpu"))?;
    let siblings = |cpu: &PathBuf| cpu_list(&text(&cpu.join("topology/thread_siblings_list"))?);
    let mut cores: Vec<Vec<usize>> = cpus.iter().filter_map(siblings).collect();
    cores.sort();
    cores.dedup();
    Some(cores).filter(|cores| !cores.is_empty())
}

/// A flag of the CPU where there is such a list (x86), else what only guests of a device
/// tree have (ARM). That nothing shows proves nothing, but on x86 it is the rule.
fn virtual_machine(root: &Path) -> Option<bool> {
    let cpuinfo = text(&root.join("proc/cpuinfo"))?;
    let flags = cpuinfo.lines().find(|l| l.starts_with("flags"));
    if let Some(flags) = flags {
        return Some(flags.split_whitespace().any(|f| f == "hypervisor"));
    }
    root.join("proc/device-tree/hypervisor").exists().then_some(true)
}

#[cfg(test)]
mod tests {
    use super::super::tests::machine;
    use super::*;

    #[test]
    fn a_laptop() {
        let cpu = "sys/devices/system/cpu";
        let files = [
            ("cpufreq/policy0/scaling_governor", "powersave\n"),
            ("cpufreq/policy1/scaling_governor", "powersave\n"),
            ("intel_pstate/no_turbo", "0\n"),
            ("cpu0/topology/thread_siblings_list", "0,2\n"),
            ("cpu1/topology/thread_siblings_list", "1,3\n"),
            ("cpu2/topology/thread_siblings_list", "0,2\n"),
            ("cpu3/topology/thread_siblings_list", "1,3\n"),
        ]
        .map(|(path, text)| (format!("{cpu}/{path}"), text));
        let mut files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
        files.extend([
            ("sys/class/power_supply/AC/type", "Mains\n"),
            ("sys/class/power_supply/BAT0/type", "Battery\n"),
            ("sys/class/power_supply/BAT0/status", "Discharging\n"),
            ("proc/cpuinfo", "processor : 0\nflags\t\t: fpu vme sse\n"),
            ("proc/pressure/memory", "some total=0\n"),
        ]);
        let root = machine(&files);
        let found = below(root.path());
        let expected = Probes {
            governors: Some(vec!["powersave".to_owned()]),
            turbo: Some(true),
            on_battery: Some(true),
            quota: None,
            cores: Some(vec![vec![0, 2], vec![1, 3]]),
            swap_used_bytes: None,
            pressure: true,
            virtual_machine: Some(false),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_guest_whose_only_battery_is_a_mouse() {
        let root = machine(&[
            ("sys/devices/system/cpu/cpufreq/boost", "0\n"),
            ("sys/class/power_supply/mouse/type", "Battery\n"),
            ("sys/class/power_supply/mouse/scope", "Device\n"),
            ("sys/class/power_supply/mouse/status", "Discharging\n"),
            ("proc/cpuinfo", "flags : fpu hypervisor\n"),
        ]);
        let found = below(root.path());
        assert_eq!((found.turbo, found.on_battery), (Some(false), Some(false)));
        assert_eq!((found.virtual_machine, found.governors), (Some(true), None));
    }

    #[test]
    fn a_machine_that_tells_nothing() {
        assert_eq!(below(machine(&[]).path()), Probes::default());
    }
}
