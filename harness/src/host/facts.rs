//! What the machine is, for the record and for `doctor`.

use super::affinity;
use serde::{Deserialize, Serialize};

/// Facts about the machine. What a system does not tell reads `unknown`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Operating system and version.
    pub os: String,
    /// Kernel version.
    pub kernel: String,
    /// Instruction set.
    pub architecture: String,
    /// Model of the first CPU.
    pub cpu_model: String,
    /// CPUs that the harness may use, by number.
    pub cpus: Vec<usize>,
    /// Memory, bytes; unknown is null.
    pub memory_bytes: Option<u64>,
    /// Memory that could be used when the run began, bytes.
    pub memory_available_bytes: Option<u64>,
    /// Whether members can be pinned to CPUs here.
    pub can_pin: bool,
}

/// Reads the facts.
pub fn read() -> Host {
    use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};
    let wanted = RefreshKind::nothing()
        .with_cpu(CpuRefreshKind::nothing())
        .with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(wanted).ok();
    let cpu_model = system.as_ref().and_then(|s| Some(s.cpus().first()?.brand().trim().to_owned()));
    Host {
        os: known(System::long_os_version().ok()),
        kernel: known(System::kernel_version().ok()),
        architecture: std::env::consts::ARCH.to_owned(),
        cpu_model: known(cpu_model),
        cpus: affinity::allowed(),
        memory_bytes: system.as_ref().map(System::total_memory),
        memory_available_bytes: system.as_ref().map(System::available_memory),
        can_pin: affinity::CAN_PIN,
    }
}

fn known(text: Option<String>) -> String {
    text.filter(|t| !t.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}
