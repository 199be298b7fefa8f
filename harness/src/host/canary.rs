//! A canary: a fixed computation, counted for 50 ms. Two counts, before and after a block,
//! say whether the CPU's own speed (clock, heat, a neighbour on the same core) has moved.
//! On a virtual machine twenty in a row lay within 5 %: less than that is no finding.

use super::affinity;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// How long it sings.
pub const LENGTH: Duration = Duration::from_millis(50);
/// Iterations between two looks at the clock: some 2 µs, so that looking costs a few percent
/// at most, the same each time.
const STRIDE: u32 = 1024;

/// Iterations per ms of wall time, in a thread on `cpu`, or wherever the system puts it.
/// What takes the CPU away for part of the time counts as slowness too.
///
/// # Errors
/// When that CPU may not be used or no thread can be started.
pub fn sing(cpu: Option<usize>) -> std::io::Result<f64> {
    let thread = std::thread::Builder::new().name("canary".to_owned()).spawn(move || {
        if let Some(cpu) = cpu {
            affinity::pin(&[cpu])?;
        }
        Ok(count(LENGTH))
    })?;
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn count(length: Duration) -> f64 {
    let (start, mut iterations, mut state) = (Instant::now(), 0_u64, 0x9e37_79b9_7f4a_7c15);
    loop {
        for _ in 0..STRIDE {
            state = step(state);
        }
        iterations += u64::from(STRIDE);
        let elapsed = start.elapsed();
        if elapsed >= length {
            black_box(state);
            return iterations as f64 / (elapsed.as_secs_f64() * 1e3);
        }
    }
}

/// Marsaglia's xorshift64 (2003): a chain of dependent operations in registers, so that
/// neither memory nor the compiler has a say in its speed.
fn step(mut x: u64) -> u64 {
    x ^= x << 13;
    x ^= x >> 7;
    x ^ (x << 17)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_wherever_it_may_run() {
        let cpu = affinity::allowed().first().copied();
        for cpu in [None, cpu] {
            let speed = sing(cpu).expect("a CPU that may be used");
            assert!(speed > 0.0 && speed.is_finite(), "{speed}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_cpu_that_is_not_there_is_an_error() {
        assert!(sing(Some(1023)).is_err());
    }

    #[test]
    fn the_computation_does_not_get_stuck() {
        let mut x = 1;
        for _ in 0..1000 {
            x = step(x);
            assert_ne!(x, 0);
        }
    }
}
