//! The machine: facts about it, its limits, and how its CPUs are shared out.
//!
//! Reads, never tunes (but for this process's own descriptor limit).

pub mod affinity;
pub mod facts;
pub mod layout;
pub mod limits;
