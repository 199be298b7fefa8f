//! What a service's process group is made of: its processes, their CPU time, their
//! memory, and who listens on a port.
//!
//! The group, not the descendants: what has left the group cannot be ended with it, so it
//! must not count as the service either.

#[cfg(target_os = "linux")]
use crate::host::cpu_time;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};

/// Memory of a process group, bytes. A figure is `None` when it could not be read for
/// every process: a partial sum would flatter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Proportional set size: shared pages count in part, so that a sum is right.
    pub pss_bytes: Option<u64>,
    /// Pages of this group's processes alone.
    pub uss_bytes: Option<u64>,
    /// Resident set size: shared pages count in full for each process.
    pub rss_bytes: Option<u64>,
    /// Processes in the group.
    pub processes: usize,
}

/// Who listens on a port.
#[derive(Debug, PartialEq, Eq)]
pub enum Listener {
    /// The group, at the address asked for.
    Ours,
    /// Nobody.
    Nobody,
    /// The group, but at other addresses only.
    OtherAddress(Vec<SocketAddr>),
    /// A process outside the group: number and name where they could be found.
    Foreign(Option<(i32, String)>),
    /// This system does not say.
    Unknown,
}

/// Processes of `group`, the leader among them while it lives.
#[cfg(target_os = "linux")]
pub fn processes(group: Pid) -> Vec<Pid> {
    let Ok(all) = procfs::process::all_processes() else { return Vec::new() };
    all.filter_map(Result::ok)
        .filter_map(|p| p.stat().ok())
        // A zombie has ended; it only waits for its parent to take notice.
        .filter(|stat| stat.pgrp == group.as_raw() && stat.state != 'Z')
        .map(|stat| Pid::from_raw(stat.pid))
        .collect()
}

/// CPU time of a process with all its threads, ended ones included, in nanoseconds, from
/// the scheduler's own account (POSIX `clock_getcpuclockid`), not from 10 ms ticks.
#[cfg(target_os = "linux")]
pub fn cpu_ns(process: Pid) -> Option<u64> {
    cpu_time::on(nix::time::clock_getcpuclockid(process).ok()?)
}

/// Memory of `group` as the kernel accounts for it right now.
#[cfg(target_os = "linux")]
pub fn memory(group: Pid) -> Memory {
    let figures: Vec<_> = processes(group).into_iter().map(rollup).collect();
    let sum_of = |names: &[&str]| {
        total(figures.iter().map(|figures| {
            let figures = figures.as_ref()?;
            names.iter().map(|name| figures.get(*name).copied()).sum()
        }))
    };
    Memory {
        pss_bytes: sum_of(&["Pss"]),
        uss_bytes: sum_of(&["Private_Clean", "Private_Dirty"]),
        rss_bytes: sum_of(&["Rss"]),
        processes: figures.len(),
    }
}

/// The sum over processes; `None` where one is unknown, or where there is no process.
#[cfg(any(target_os = "linux", test))]
fn total(figures: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    figures.reduce(|sum, figure| sum.zip(figure).map(|(sum, more)| sum + more)).flatten()
}

/// The peak of a process group from a moment on.
///
/// Linux keeps the highest RSS of each process (`VmHWM`), and what `/proc/PID/clear_refs`
/// takes as 5 sets it to the RSS of that moment (proc_pid_clear_refs(5)): what a service
/// needed to start is not charged to the load, nor what the process was before `exec`.
#[derive(Debug)]
pub struct Peak {
    #[cfg(target_os = "linux")]
    group: Pid,
    /// The group at that moment; `None` when one of it could not be set back.
    #[cfg(target_os = "linux")]
    reset: Option<Vec<Pid>>,
}

#[cfg(target_os = "linux")]
impl Peak {
    /// Begins anew from what each process of `group` holds now.
    pub fn start(group: Pid) -> Self {
        use procfs::process::{ClearRefs, Process};
        let set_back = |pid: Pid| {
            Process::new(pid.as_raw()).and_then(|p| p.clear_refs(ClearRefs::PeakRSS)).ok()?;
            Some(pid)
        };
        Self { group, reset: processes(group).into_iter().map(set_back).collect() }
    }

    /// The sum of the processes' peaks, bytes. They need not have come at the same time, and
    /// shared pages count in full for each process, as in RSS.
    ///
    /// `None` when a process could not be set back or read, or has ended since: its peak went
    /// with it. A process that was started since counts from its start.
    pub fn bytes(&self) -> Option<u64> {
        let now = processes(self.group);
        if !self.reset.as_ref()?.iter().all(|pid| now.contains(pid)) {
            return None;
        }
        total(now.into_iter().map(high_water_bytes))
    }
}

/// `VmHWM` of one process, bytes.
#[cfg(target_os = "linux")]
fn high_water_bytes(pid: Pid) -> Option<u64> {
    let status = procfs::process::Process::new(pid.as_raw()).ok()?.status().ok()?;
    status.vmhwm?.checked_mul(1024)
}

/// `smaps_rollup` of one process, bytes.
#[cfg(target_os = "linux")]
fn rollup(pid: Pid) -> Option<std::collections::HashMap<String, u64>> {
    let maps = procfs::process::Process::new(pid.as_raw()).ok()?.smaps_rollup().ok()?;
    let map = maps.memory_map_rollup.0.into_iter().next()?;
    Some(map.extension.map)
}

/// Who listens at `address`, seen from `group`.
#[cfg(target_os = "linux")]
pub fn listener(group: Pid, address: SocketAddr) -> Listener {
    use procfs::net::TcpState;
    let mut entries = procfs::net::tcp().unwrap_or_default();
    entries.extend(procfs::net::tcp6().unwrap_or_default());
    let listening: Vec<(SocketAddr, u64)> = entries
        .into_iter()
        .filter(|e| e.state == TcpState::Listen && e.local_address.port() == address.port())
        .map(|e| (e.local_address, e.inode))
        .collect();
    let inodes: HashSet<u64> = processes(group).into_iter().flat_map(sockets).collect();
    let (ours, foreign): (Vec<_>, Vec<_>) =
        listening.into_iter().partition(|(_, inode)| inodes.contains(inode));
    let reaches = |local: &SocketAddr| {
        local.ip() == address.ip()
            // The wildcards take connections for every address (`::` for IPv4 too, unless
            // told otherwise; the correct answer asked for afterwards settles that).
            || local.ip().is_unspecified()
            || matches!(local.ip(), IpAddr::V6(v6) if v6.to_ipv4_mapped().map(IpAddr::V4) == Some(address.ip()))
    };
    if let Some((_, inode)) = foreign.iter().find(|(local, _)| reaches(local)) {
        return Listener::Foreign(owner(*inode));
    }
    if ours.is_empty() {
        return Listener::Nobody;
    }
    if ours.iter().any(|(local, _)| reaches(local)) {
        return Listener::Ours;
    }
    Listener::OtherAddress(ours.into_iter().map(|(local, _)| local).collect())
}

/// The service that listens at `address`, when it is on this machine and may be looked at: all
/// processes of its group, or the one that listens where that is the harness's own group, as
/// when a script starts both. Empty when it is unknown.
pub fn listening_service(address: SocketAddr) -> Vec<Pid> {
    let Some(process) = listening_process(address) else { return Vec::new() };
    match nix::unistd::getpgid(Some(process)) {
        Ok(group) if group != nix::unistd::getpgrp() => processes(group),
        _ => vec![process],
    }
}

/// The process that listens at `address`, when it is on this machine and may be looked at.
#[cfg(target_os = "linux")]
fn listening_process(address: SocketAddr) -> Option<Pid> {
    use procfs::net::TcpState;
    let mut entries = procfs::net::tcp().unwrap_or_default();
    entries.extend(procfs::net::tcp6().unwrap_or_default());
    let entry = entries.into_iter().find(|e| {
        e.state == TcpState::Listen
            && e.local_address.port() == address.port()
            && (e.local_address.ip() == address.ip() || e.local_address.ip().is_unspecified())
    })?;
    address.ip().is_loopback().then(|| owner(entry.inode))?.map(|(pid, _)| Pid::from_raw(pid))
}

#[cfg(target_os = "linux")]
fn sockets(pid: Pid) -> Vec<u64> {
    use procfs::process::FDTarget;
    let Ok(fds) = procfs::process::Process::new(pid.as_raw()).and_then(|p| p.fd()) else {
        return Vec::new();
    };
    fds.filter_map(Result::ok)
        .filter_map(|fd| match fd.target {
            FDTarget::Socket(inode) => Some(inode),
            _ => None,
        })
        .collect()
}

#[cfg(target_os = "linux")]
fn owner(inode: u64) -> Option<(i32, String)> {
    procfs::process::all_processes().ok()?.filter_map(Result::ok).find_map(|process| {
        let pid = process.pid();
        sockets(Pid::from_raw(pid))
            .contains(&inode)
            .then(|| (pid, process.stat().map(|s| s.comm).unwrap_or_default()))
    })
}

/// Only the leader can be named without `/proc`.
#[cfg(not(target_os = "linux"))]
pub fn processes(group: Pid) -> Vec<Pid> {
    match nix::sys::signal::kill(group, None) {
        Ok(()) => vec![group],
        Err(_) => Vec::new(),
    }
}

/// Not read on this system.
#[cfg(not(target_os = "linux"))]
pub fn cpu_ns(_process: Pid) -> Option<u64> {
    None
}

/// Not read on this system.
#[cfg(not(target_os = "linux"))]
pub fn memory(group: Pid) -> Memory {
    Memory { pss_bytes: None, uss_bytes: None, rss_bytes: None, processes: processes(group).len() }
}

#[cfg(not(target_os = "linux"))]
impl Peak {
    /// Not read on this system.
    pub fn start(_group: Pid) -> Self {
        Self {}
    }

    /// Not read on this system.
    pub fn bytes(&self) -> Option<u64> {
        None
    }
}

/// Not read on this system.
#[cfg(not(target_os = "linux"))]
pub fn listener(_group: Pid, _address: SocketAddr) -> Listener {
    Listener::Unknown
}

/// Not read on this system.
#[cfg(not(target_os = "linux"))]
fn listening_process(_address: SocketAddr) -> Option<Pid> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_is_never_partial() {
        let table: [(&[Option<u64>], Option<u64>); 5] = [
            (&[Some(3)], Some(3)),
            (&[Some(3), Some(0), Some(4)], Some(7)),
            (&[Some(3), None, Some(4)], None),
            (&[None], None),
            (&[], None),
        ];
        for (figures, sum) in table {
            assert_eq!(total(figures.iter().copied()), sum, "{figures:?}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_peak_is_unknown_once_the_group_has_lost_a_process() {
        use std::os::unix::process::CommandExt;
        let sleeper = |group: i32| {
            let mut command = std::process::Command::new("sleep");
            command.arg("60").process_group(group).spawn().expect("sleep")
        };
        let mut first = sleeper(0);
        let group = Pid::from_raw(first.id() as i32);
        let mut second = sleeper(group.as_raw());
        let peak = Peak::start(group);
        let unset = Peak { group, reset: None };
        let (whole, partly) = (peak.bytes(), unset.bytes());
        second.kill().and_then(|()| second.wait()).expect("ends");
        let (left, without_one) = (memory(group), peak.bytes());
        first.kill().and_then(|()| first.wait()).expect("ends");
        let nothing = Memory { pss_bytes: None, uss_bytes: None, rss_bytes: None, processes: 0 };

        assert!(whole.is_some(), "both could be read");
        assert_eq!((partly, without_one, left.processes), (None, None, 1));
        assert!(left.rss_bytes.is_some(), "{left:?}");
        assert_eq!(memory(group), nothing);
        assert_eq!((rollup(group), high_water_bytes(group)), (None, None));
    }
}
