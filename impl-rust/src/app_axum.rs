//! The app on axum.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::serve::ListenerExt;
use axum::{Json, Router};
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
    stopped: oneshot::Receiver<()>,
) -> io::Result<()> {
    // A socket that refuses the option is broken anyway and fails at its first read.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    axum::serve(listener, app(store)).with_graceful_shutdown(async { drop(stopped.await) }).await
}

/// Which request goes where.
pub fn app(store: Arc<Store>) -> Router {
    // Without `any`, a known path with another method is answered with the header `Allow`;
    // without `head`, `get` takes HEAD too.
    Router::new()
        .route("/users/{id}", any(not_found).get(get_user).head(not_found))
        .route("/users", any(not_found).post(post_user))
        .fallback(not_found)
        .with_state(store)
}

async fn get_user(
    State(store): State<Arc<Store>>,
    id: Result<Path<String>, PathRejection>,
    rest: Body,
) -> Response {
    body::discard(rest);
    // A path that does not decode to UTF-8 names no user.
    match id.ok().and_then(|Path(id)| store.get(&id)) {
        Some(user) => Json(&*user).into_response(),
        None => NOT_FOUND.into_response(),
    }
}

async fn post_user(State(store): State<Arc<Store>>, body: Body) -> Result<Response, Refusal> {
    let body = body::read(body).await?;
    let user = store.add(NewUser::parse(&body)?);
    Ok((StatusCode::CREATED, Json(&*user)).into_response())
}

async fn not_found(rest: Body) -> Refusal {
    body::discard(rest);
    NOT_FOUND
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(self)).into_response()
    }
}
