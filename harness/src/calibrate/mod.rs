//! What the load engine costs beside its peers, on this machine, in one run.
//!
//! Engines take turns in slices of random order against the same server, so that all meet
//! the same weather; ratios are paired within rounds. Judges engines, not services.

pub mod peer;

use crate::load::floor::Floor;
use crate::load::{Load, Target};
use crate::process::{Guard, Interrupt, Service, tree};
use crate::scenario::{Expected, Request};
use crate::stats::{paired, quantile};
use peer::Peer;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The engine that everything else is compared with.
pub const LEAN: &str = "lean";
/// A loop without parsing.
pub const FLOOR: &str = "floor";

/// How much to measure.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Size {
    /// Slices of every engine.
    pub rounds: usize,
    /// Length of a slice, ms; a peer's start and end come on top.
    pub slice_ms: u64,
}

/// One engine's slice.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Observed {
    /// Answers.
    pub requests: u64,
    /// Answers a second.
    pub throughput: f64,
    /// CPU time of the generator for a request, ns.
    pub generator_cpu_ns: f64,
    /// CPU time of the server for a request, ns; null where it is unknown.
    pub server_cpu_ns: Option<f64>,
}

/// All slices of one engine against one server at one number of connections.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// Name of the server.
    pub server: String,
    /// Connections.
    pub connections: usize,
    /// Name of the engine.
    pub engine: String,
    /// One a round.
    pub slices: Vec<Observed>,
    /// Medians over rounds.
    pub median: Observed,
    /// Generator CPU of the lean engine over that of this one; null for itself.
    pub lean_over_this: Option<Ratio>,
}

/// A ratio with its 95 % interval; null below six rounds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Ratio {
    /// exp of the median of the rounds' log ratios (Hodges–Lehmann).
    pub ratio: f64,
    /// Lower end.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// Everything that calibrating needs.
pub struct Bench<'a> {
    /// How much.
    pub size: Size,
    /// Engines that run as programs of their own.
    pub peers: &'a [Peer],
    /// Ends children when the harness dies.
    pub guard: &'a Guard,
    /// Somebody wants to end.
    pub interrupt: &'a Interrupt,
    /// Orders follow from it.
    pub seed: u64,
}

/// The request that every engine sends, all the time.
pub const PATH: &str = "/users/500";

impl Bench<'_> {
    /// Measures every engine against `service` at `connections`.
    ///
    /// # Errors
    /// When an engine cannot be run or gets wrong answers; on interruption.
    pub fn run(
        &self,
        name: &str,
        service: &Service,
        connections: usize,
    ) -> anyhow::Result<Vec<Cell>> {
        let mut engines: Vec<(String, Engine<'_>)> = vec![
            (LEAN.to_owned(), Engine::Lean(Box::new(self.lean(service, connections)?))),
            (
                FLOOR.to_owned(),
                Engine::Floor(Floor::open(service.address(), connections, &request().bytes)?),
            ),
        ];
        engines.extend(self.peers.iter().map(|p| (p.name.clone(), Engine::Peer(p))));
        let mut slices: Vec<Vec<Observed>> = vec![Vec::new(); engines.len()];
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        // The first round warms up and is not kept.
        for round in 0..=self.size.rounds {
            let mut order: Vec<usize> = (0..engines.len()).collect();
            order.shuffle(&mut rng);
            for i in order {
                anyhow::ensure!(!self.interrupt.is_set(), "interrupted");
                let observed = self.slice(&mut engines[i].1, service, connections)?;
                if round > 0 {
                    slices[i].push(observed);
                }
            }
        }
        let lean = slices[0].clone();
        let cell = |(engine, slices): (String, Vec<Observed>)| Cell {
            server: name.to_owned(),
            connections,
            median: median(&slices),
            lean_over_this: (engine != LEAN).then(|| ratio(&lean, &slices)).flatten(),
            engine,
            slices,
        };
        Ok(engines.into_iter().map(|e| e.0).zip(slices).map(cell).collect())
    }

    fn lean(&self, service: &Service, connections: usize) -> anyhow::Result<Load> {
        let target = Target {
            address: service.address(),
            pool: Arc::from([request()]),
            open_timeout: Duration::from_secs(5),
            throttle: None,
            timeout: Duration::from_secs(5),
            stop: None,
        };
        Ok(Load::open(&target, connections, 1, &[])?)
    }

    fn slice(
        &self,
        engine: &mut Engine<'_>,
        service: &Service,
        connections: usize,
    ) -> anyhow::Result<Observed> {
        let window = Duration::from_millis(self.size.slice_ms);
        let server_cpu = || tree::processes(service.group()).into_iter().map(tree::cpu_ns).sum();
        let (before, began): (Option<u64>, _) = (server_cpu(), Instant::now());
        let (requests, served, cpu_ns, took) = match engine {
            Engine::Lean(load) => {
                let slice = load.slice(Duration::ZERO, window)?;
                let counts = load.take_tally().counts;
                anyhow::ensure!(
                    counts.failures() == 0,
                    "the lean engine got wrong answers: {counts:?}"
                );
                (slice.ok, slice.ok, slice.account.cpu_ns, began.elapsed())
            }
            Engine::Floor(floor) => {
                let (answers, account) = floor.slice(window)?;
                (answers, answers, account.cpu_ns, began.elapsed())
            }
            Engine::Peer(peer) => {
                let run = peer.run(self, service.address(), connections, window)?;
                (run.requests, run.served, Some(run.cpu_ns), run.took)
            }
        };
        let after: Option<u64> = server_cpu();
        anyhow::ensure!(requests > 0, "no answers");
        let each = |ns: u64| ns as f64 / requests as f64;
        let each_served = |ns: u64| ns as f64 / served as f64;
        Ok(Observed {
            requests,
            throughput: requests as f64 / took.as_secs_f64(),
            generator_cpu_ns: each(
                cpu_ns.ok_or_else(|| anyhow::anyhow!("CPU time is unknown here"))?,
            ),
            server_cpu_ns: before
                .zip(after)
                .map(|(then, now)| each_served(now.saturating_sub(then))),
        })
    }
}

enum Engine<'a> {
    Lean(Box<Load>),
    Floor(Floor),
    Peer(&'a Peer),
}

fn request() -> Request {
    let bytes = format!("GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").into_bytes();
    Request { bytes, status: 200, body: Expected::Any }
}

fn median(slices: &[Observed]) -> Observed {
    let of = |f: &dyn Fn(&Observed) -> f64| {
        quantile::median(&slices.iter().map(f).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    };
    let server: Option<Vec<f64>> = slices.iter().map(|s| s.server_cpu_ns).collect();
    Observed {
        requests: slices.iter().map(|s| s.requests).sum(),
        throughput: of(&|s| s.throughput),
        generator_cpu_ns: of(&|s| s.generator_cpu_ns),
        server_cpu_ns: server.as_deref().and_then(quantile::median),
    }
}

fn ratio(lean: &[Observed], other: &[Observed]) -> Option<Ratio> {
    let logs: Vec<f64> = lean
        .iter()
        .zip(other)
        .map(|(a, b)| (a.generator_cpu_ns / b.generator_cpu_ns).ln())
        .collect();
    let estimate = paired::estimate(&logs)?;
    Some(Ratio {
        ratio: estimate.ratio,
        low: estimate.interval.map(|i| i.0),
        high: estimate.interval.map(|i| i.1),
    })
}
