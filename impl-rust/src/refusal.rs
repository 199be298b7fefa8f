//! The five ways in which a request is refused.

use hyper::StatusCode;
use serde::Serialize;

/// A status and the body that goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The status of the answer.
    #[serde(skip)]
    pub status: StatusCode,
    /// The whole body: `{"error":"…"}`.
    pub error: &'static str,
}

/// No such user, path or method.
pub const NOT_FOUND: Refusal = Refusal { status: StatusCode::NOT_FOUND, error: "not found" };
/// The body is not a JSON object.
pub const INVALID_JSON: Refusal =
    Refusal { status: StatusCode::BAD_REQUEST, error: "invalid json" };
/// The name is missing, not a string, or empty.
pub const NAME_REQUIRED: Refusal =
    Refusal { status: StatusCode::BAD_REQUEST, error: "name required" };
/// The email is missing, not a string, or holds no `@`.
pub const INVALID_EMAIL: Refusal =
    Refusal { status: StatusCode::BAD_REQUEST, error: "invalid email" };
/// The body is over the limit.
pub const BODY_TOO_LARGE: Refusal =
    Refusal { status: StatusCode::PAYLOAD_TOO_LARGE, error: "body too large" };
