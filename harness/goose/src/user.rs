//! What Goose's users do: start, then send one request after the other.

use anyhow::{Context, ensure};
use goose::prelude::*;
use harness::goose::{METHODS, Order, Request};
use harness::load::connection::Flight;
use harness::load::tally::{Failure, Tally, nanoseconds};
use hyper_util::client::legacy::connect::HttpInfo;
use reqwest::{Method, Url};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often whoever waits looks whether to go on.
pub const LOOK: Duration = Duration::from_millis(5);
/// How long users rest when nothing is left to send. Goose ends them within half a second,
/// but cannot wake them.
const REST: Duration = Duration::from_millis(50);

/// Where the run is. Users start while it hatches, and send during the next two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    Hatching,
    WarmUp,
    Window,
    Over,
}

/// What the users and their conductor share.
pub struct Shared {
    method: Method,
    url: Url,
    request: Request,
    timeout: Duration,
    /// Users that have started.
    pub hatched: AtomicUsize,
    /// Goose has ended, and all users with it.
    pub ended: AtomicBool,
    phase: AtomicU8,
    /// Behind one lock: it is held for a fraction of a microsecond in a request of tens.
    counted: Mutex<Counted>,
}

/// What the users counted; [`Report`](harness::goose::Report) says what the numbers are.
#[derive(Default)]
pub struct Counted {
    /// Of requests sent within the window.
    pub tally: Tally,
    pub in_window: u64,
    pub ended_in_window: u64,
    pub ended: u64,
    pub connections_used: u64,
    /// Why a user could not start.
    pub stillborn: Option<String>,
    /// This end of every user's connection.
    connections: HashMap<usize, SocketAddr>,
}

/// The failure, and what came instead of the right answer.
type Wrong = (Failure, Vec<u8>);

impl Shared {
    pub fn new(order: &Order) -> anyhow::Result<Self> {
        let Request { method, target, .. } = &order.request;
        ensure!(METHODS.contains(&method.as_str()), "goose cannot send {method}");
        let url = Url::parse(&format!("http://{}{target}", order.address))
            .with_context(|| format!("{target} is no path"))?;
        ensure!(url.as_str().ends_with(target), "goose would ask for {} instead", url.path());
        Ok(Self {
            method: method.parse()?,
            url,
            request: order.request.clone(),
            timeout: Duration::from_millis(order.timeout_ms),
            hatched: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            phase: AtomicU8::new(Phase::Hatching as u8),
            counted: Mutex::default(),
        })
    }

    pub fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    fn phase(&self) -> Phase {
        let all = [Phase::Hatching, Phase::WarmUp, Phase::Window, Phase::Over];
        all[usize::from(self.phase.load(Ordering::Relaxed))]
    }

    pub fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The life of every user.
pub fn scenario(shared: &Arc<Shared>) -> Scenario {
    Scenario::new("closed pace")
        .register_transaction(transaction(shared, hatch).set_on_start())
        .register_transaction(transaction(shared, send))
}

type Step<'r> = Pin<Box<dyn Future<Output = TransactionResult> + Send + 'r>>;

fn transaction(
    shared: &Arc<Shared>,
    step: for<'r> fn(&'r mut GooseUser, Arc<Shared>) -> Step<'r>,
) -> Transaction {
    let shared = Arc::clone(shared);
    Transaction::new(Arc::new(move |user| step(user, Arc::clone(&shared))))
}

/// Gives the user its client.
fn hatch(user: &mut GooseUser, shared: Arc<Shared>) -> Step<'_> {
    Box::pin(async move {
        // As Goose makes them, but deaf to proxy variables and taking every answer as it
        // comes. A client of its own and one request at a time make one connection. Nothing
        // is verified over plain HTTP; saying so spares loading the system's certificates.
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(shared.timeout)
            .tls_danger_accept_invalid_certs(true);
        if let Err(e) = user.set_client_builder(client).await {
            shared.counted().stillborn = Some(e.to_string());
            goose::trigger_killswitch("a user could not start");
        }
        shared.hatched.fetch_add(1, Ordering::Relaxed);
        Ok(())
    })
}

/// Sends the request, judges its answer, and notes both.
fn send(user: &mut GooseUser, shared: Arc<Shared>) -> Step<'_> {
    Box::pin(async move {
        let sent_in = shared.phase();
        match sent_in {
            Phase::Hatching => tokio::time::sleep(LOOK).await,
            Phase::Over => tokio::time::sleep(REST).await,
            Phase::WarmUp | Phase::Window => {
                let sent = Instant::now();
                let (outcome, connection) = match answer(user, &shared).await {
                    Ok((status, connection, body)) => {
                        (judge(&shared.request, status, body.as_ref()), connection)
                    }
                    Err(e) => (Err(failure(&e)), None),
                };
                let (now, ended_in) = (Instant::now(), shared.phase());
                let counted = &mut *shared.counted();
                let index = user.weighted_users_index;
                if let Some(at) = connection
                    && counted.connections.insert(index, at) != Some(at)
                {
                    counted.connections_used += 1;
                }
                counted.ended += 1;
                if ended_in == Phase::Window {
                    counted.ended_in_window += 1;
                    counted.in_window += u64::from(outcome.is_ok());
                }
                if sent_in == Phase::Window {
                    counted.tally.counts.sent += 1;
                    let flight = Flight::unpaced(sent);
                    match outcome {
                        Ok(()) => counted.tally.succeed(&flight, now),
                        Err((failure, came)) => {
                            counted.tally.fail(failure, nanoseconds(now - sent), &came);
                        }
                    }
                }
            }
        }
        Ok(())
    })
}

/// Status, this end of the connection, and the whole body of the answer.
async fn answer(
    user: &mut GooseUser,
    shared: &Shared,
) -> anyhow::Result<(u16, Option<SocketAddr>, impl AsRef<[u8]> + use<>)> {
    let mut built = user.client.request(shared.method.clone(), shared.url.clone());
    for (name, value) in &shared.request.headers {
        built = built.header(name, value);
    }
    if let Some(body) = &shared.request.body {
        built = built.body(body.clone());
    }
    let answer = user.request(GooseRequest::builder().set_request_builder(built).build()).await?;
    let response = answer.response?;
    let connection = response.extensions().get::<HttpInfo>().map(HttpInfo::local_addr);
    Ok((response.status().as_u16(), connection, response.bytes().await?))
}

fn judge(request: &Request, status: u16, body: &[u8]) -> Result<(), Wrong> {
    let right = request.expected_body.as_ref().is_none_or(|right| right.as_bytes() == body);
    match (status == request.status, right) {
        (true, true) => Ok(()),
        (true, false) => Err((Failure::WrongBody, body.to_vec())),
        (false, _) => Err((Failure::WrongStatus(status), body.to_vec())),
    }
}

/// No complete answer. Goose's client does not say where it broke off.
fn failure(error: &anyhow::Error) -> Wrong {
    let mut clients = error.chain().filter_map(|e| e.downcast_ref::<reqwest::Error>());
    let timed_out = clients.any(reqwest::Error::is_timeout);
    let kind = if timed_out { Failure::TimedOut } else { Failure::ProtocolError };
    (kind, format!("{error:#}").into_bytes())
}
