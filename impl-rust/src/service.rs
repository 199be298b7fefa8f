//! From the environment to a service that has stopped: everything that is not HTTP.

use std::env;
use std::future::Future;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::settings::Settings;
use crate::store::Store;

/// How long requests in flight may take to finish once the service was told to stop. Short
/// of the 2 seconds within which it must be gone.
const GRACE: Duration = Duration::from_millis(1500);

#[derive(Serialize)]
struct Ready {
    host: String,
    port: u16,
    workers: usize,
    runtime: &'static str,
}

/// Runs the service; whatever stops it from running is one line on standard error.
pub fn main<S, F>(serve: S) -> ExitCode
where
    S: FnOnce(TcpListener, Arc<Store>, oneshot::Receiver<()>) -> F,
    F: Future<Output = io::Result<()>>,
{
    match run(serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("users: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run<S, F>(serve: S) -> anyhow::Result<()>
where
    S: FnOnce(TcpListener, Arc<Store>, oneshot::Receiver<()>) -> F,
    F: Future<Output = io::Result<()>>,
{
    let settings =
        Settings::read(|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()))?;
    let store = Arc::new(Store::load(&settings.users_file)?);
    runtime::Builder::new_multi_thread()
        .worker_threads(settings.workers)
        .enable_all()
        .build()
        .context("cannot start the runtime")?
        .block_on(listen_and_serve(&settings, store, serve))
}

async fn listen_and_serve<S, F>(
    settings: &Settings,
    store: Arc<Store>,
    serve: S,
) -> anyhow::Result<()>
where
    S: FnOnce(TcpListener, Arc<Store>, oneshot::Receiver<()>) -> F,
    F: Future<Output = io::Result<()>>,
{
    let address = (settings.host, settings.port);
    let listener = TcpListener::bind(address).await.with_context(|| {
        let (host, port) = address;
        format!("cannot listen on host {host}, port {port} (set HOST and PORT to a free address)")
    })?;
    // Before the ready line: a signal that follows it at once must not find the default action.
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    print_ready(&Ready {
        host: settings.host.to_string(),
        port: listener.local_addr().context("cannot tell the port")?.port(),
        workers: settings.workers,
        runtime: env!("USERS_RUNTIME"),
    })?;

    let (stop, stopped) = oneshot::channel();
    let serving = serve(listener, store, stopped);
    tokio::pin!(serving);
    tokio::select! {
        outcome = &mut serving => return outcome.context("cannot go on serving"),
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    // Neither an app that already ended nor requests still unfinished after the grace make
    // the stop a failure.
    let _ = stop.send(());
    let _ = tokio::time::timeout(GRACE, serving).await;
    Ok(())
}

fn print_ready(ready: &Ready) -> anyhow::Result<()> {
    let line = serde_json::to_string(ready)?;
    writeln!(io::stdout(), "ready {line}").context("cannot print the ready line")
}
