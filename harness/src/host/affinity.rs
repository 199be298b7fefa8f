//! Which CPUs this process may use, and restricting a thread to some of them.

/// CPUs that the calling thread may use, in order. Where the system does not say, as many
/// as it admits to, from 0.
#[cfg(target_os = "linux")]
pub fn allowed() -> Vec<usize> {
    use nix::sched::{CpuSet, sched_getaffinity};
    let Ok(set) = sched_getaffinity(nix::unistd::Pid::from_raw(0)) else { return counted() };
    (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect()
}

/// See above.
#[cfg(not(target_os = "linux"))]
pub fn allowed() -> Vec<usize> {
    counted()
}

fn counted() -> Vec<usize> {
    (0..std::thread::available_parallelism().map_or(1, usize::from)).collect()
}

/// Whether [`pin`] does anything on this system.
pub const CAN_PIN: bool = cfg!(target_os = "linux");

/// Restricts the calling thread, and what it starts, to `cpus`.
///
/// # Errors
/// When a CPU does not exist or may not be used.
#[cfg(target_os = "linux")]
pub fn pin(cpus: &[usize]) -> std::io::Result<()> {
    use nix::sched::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu)?;
    }
    sched_setaffinity(nix::unistd::Pid::from_raw(0), &set)?;
    Ok(())
}

/// There is no way to pin on this system; reports say so.
///
/// # Errors
/// Never.
#[cfg(not(target_os = "linux"))]
pub fn pin(_cpus: &[usize]) -> std::io::Result<()> {
    Ok(())
}
