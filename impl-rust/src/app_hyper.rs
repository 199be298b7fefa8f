//! The app on bare hyper.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::body;
use crate::refusal::{NOT_FOUND, Refusal};
use crate::store::Store;
use crate::user::NewUser;

/// Serves until `stopped` resolves, then finishes what is in flight.
pub async fn serve(
    listener: TcpListener,
    store: Arc<Store>,
    mut stopped: oneshot::Receiver<()>,
) -> io::Result<()> {
    let connections = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut stopped => break,
        };
        let Ok((stream, _)) = accepted else {
            // Out of descriptors, or a client that left early: neither ends the service.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // A socket that refuses the option is broken anyway and fails at its first read.
        drop(stream.set_nodelay(true));
        let store = Arc::clone(&store);
        let app = service_fn(move |request| app(request, Arc::clone(&store)));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), app);
        // The error is the client's: it left, or it does not speak HTTP.
        let connection = connections.watch(connection);
        tokio::spawn(async move { drop(connection.await) });
    }
    // Closed at once, so that late clients are refused and not left waiting.
    drop(listener);
    connections.shutdown().await;
    Ok(())
}

/// Which request goes where.
async fn app(
    request: Request<Incoming>,
    store: Arc<Store>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let answer = match (&head.method, head.uri.path()) {
        (&Method::GET, path) => {
            body::discard(body);
            get_user(&store, path)
        }
        (&Method::POST, "/users") => post_user(&store, body).await,
        _ => {
            body::discard(body);
            Err(NOT_FOUND)
        }
    };
    Ok(answer.unwrap_or_else(|refusal| send(refusal.status, &refusal)))
}

fn get_user(store: &Store, path: &str) -> Result<Response<Full<Bytes>>, Refusal> {
    let id = path.strip_prefix("/users/").ok_or(NOT_FOUND)?;
    let user = store.get(id).ok_or(NOT_FOUND)?;
    Ok(send(StatusCode::OK, &*user))
}

async fn post_user(store: &Store, body: Incoming) -> Result<Response<Full<Bytes>>, Refusal> {
    let body = body::read(body).await?;
    let user = store.add(NewUser::parse(&body)?);
    Ok(send(StatusCode::CREATED, &*user))
}

fn send(status: StatusCode, value: &impl Serialize) -> Response<Full<Bytes>> {
    let body = serde_json::to_vec(value).expect("strings always serialise");
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
