//! The machine: facts about it, its limits, how its CPUs are shared out, and what else it
//! does while something is measured.
//!
//! Reads, never tunes (but for this process's own descriptor limit).

pub mod affinity;
pub mod canary;
pub mod cgroup;
pub mod counters;
pub mod cpu_time;
pub mod facts;
pub mod gates;
pub mod hiccup;
pub mod interval;
pub mod judge;
pub mod layout;
pub mod limits;
pub mod lock;
pub mod probes;
pub mod watch;

#[cfg(test)]
mod tests;
