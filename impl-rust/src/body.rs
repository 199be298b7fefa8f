//! A request's body, up to the limit.

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes};

use crate::refusal::{BODY_TOO_LARGE, INVALID_JSON, Refusal};

/// The greatest body that is read, in bytes.
pub const BODY_LIMIT: usize = 64 * 1024;

/// Reads a body of at most [`BODY_LIMIT`] bytes, whether its length was announced or not.
pub async fn read<B>(mut body: B) -> Result<Vec<u8>, Refusal>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        // Only a client that left or that broke the framing gets here, and neither reads on.
        let frame = frame.map_err(|_| INVALID_JSON)?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > BODY_LIMIT {
            discard(body);
            return Err(BODY_TOO_LARGE);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

/// Reads the rest of a body and drops it, beside the answer. A body that is not read to its
/// end makes hyper close the connection, and the reset may overtake the answer.
pub fn discard<B>(mut body: B)
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
{
    if !body.is_end_stream() {
        tokio::spawn(async move { while let Some(Ok(_)) = body.frame().await {} });
    }
}
