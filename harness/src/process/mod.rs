//! Starts and ends other programs. The only room that spawns.
//!
//! Every child leads a process group of its own, is started through the [`launch`] step,
//! and is known to the [`guard`], so that nothing is left behind however the harness ends.

pub mod command;
pub mod guard;
pub mod interrupt;
pub mod launch;
pub mod output;
pub mod service;
pub mod toolchain;
pub mod tree;

pub use guard::Guard;
pub use interrupt::Interrupt;
pub use service::{Service, ServiceSpec, StartError, StopReport};
