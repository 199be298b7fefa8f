//! Parses HTTP/1.1 answers: pure functions over the bytes that have arrived so far.
//!
//! Call again with more bytes when the answer is not complete. Nothing is copied but the
//! body of a chunked answer. Does not decide whether an answer is right.

use std::ops::Range;

/// Headers an answer may have. More than any service here sends; more is an error.
const MAX_HEADERS: usize = 64;

/// How the end of a body is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// So many bytes.
    Length(usize),
    /// `Transfer-Encoding: chunked`.
    Chunked,
}

/// A parsed status line and header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Status code; never 1xx, those are skipped.
    pub status: u16,
    /// Bytes up to the body, interim answers included.
    pub len: usize,
    /// How the end of the body is known.
    pub framing: Framing,
    /// The service will close the connection after this answer.
    pub close: bool,
}

/// An answer that is no HTTP/1.x, or whose end cannot be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// Not an HTTP/1.x status line and header.
    #[error("not an HTTP/1.x answer")]
    NotHttp,
    /// Neither a length nor chunks: the body would end with the connection.
    #[error("neither Content-Length nor chunked")]
    Unframed,
    /// A length that is no number, or two that differ, or a length beside chunks.
    #[error("Content-Length is no number or is contradicted")]
    BadLength,
    /// A chunk size that is no hexadecimal number, or no line end behind a chunk.
    #[error("malformed chunk")]
    BadChunk,
    /// Bytes behind the answer: more than one answer to one request.
    #[error("bytes behind the end of the answer")]
    Surplus,
}

/// Parses the head of the answer at the start of `bytes`; `None` while it is not complete.
///
/// # Errors
/// When no further bytes could make it an answer that this engine can measure.
pub fn head(bytes: &[u8]) -> Result<Option<Head>, ProtocolError> {
    let mut skipped = 0;
    loop {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let len = match response.parse(&bytes[skipped..]) {
            Ok(httparse::Status::Complete(len)) => len,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(ProtocolError::NotHttp),
        };
        let status = response.code.unwrap_or_default();
        // 100 Continue, 103 Early Hints: the final answer follows.
        if (100..200).contains(&status) && status != 101 {
            skipped += len;
            continue;
        }
        let (framing, close) = fields(&response, status)?;
        return Ok(Some(Head { status, len: skipped + len, framing, close }));
    }
}

fn fields(
    response: &httparse::Response<'_, '_>,
    status: u16,
) -> Result<(Framing, bool), ProtocolError> {
    let mut length = None;
    let mut chunked = false;
    let (mut close, mut keep_alive) = (false, response.version != Some(0));
    for header in response.headers.iter() {
        if header.name.eq_ignore_ascii_case("content-length") {
            let value = decimal(header.value).ok_or(ProtocolError::BadLength)?;
            if length.is_some_and(|l| l != value) {
                return Err(ProtocolError::BadLength);
            }
            length = Some(value);
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            chunked = header.value.trim_ascii().eq_ignore_ascii_case(b"chunked");
            if !chunked {
                return Err(ProtocolError::Unframed);
            }
        } else if header.name.eq_ignore_ascii_case("connection") {
            let has = |token: &[u8]| {
                header
                    .value
                    .split(|&b| b == b',')
                    .any(|t| t.trim_ascii().eq_ignore_ascii_case(token))
            };
            close |= has(b"close");
            keep_alive |= has(b"keep-alive");
        }
    }
    let framing = match (length, chunked) {
        _ if status == 204 || status == 304 => Framing::Length(0),
        (Some(_), true) => return Err(ProtocolError::BadLength),
        (Some(n), false) => Framing::Length(n),
        (None, true) => Framing::Chunked,
        (None, false) => return Err(ProtocolError::Unframed),
    };
    // RFC 9112, 9.3: `close` counts whatever else is said.
    Ok((framing, close || !keep_alive))
}

/// Digits only: `usize::from_str` would take a sign.
fn decimal(value: &[u8]) -> Option<usize> {
    let value = value.trim_ascii();
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Where the body stands, once all of it has arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// In the bytes themselves.
    InPlace(Range<usize>),
    /// In the buffer given to [`body`].
    Decoded,
}

/// Finds the body behind `head` in `bytes`, which are all that came; `None` while it is
/// not complete. A chunked body is written to `decoded`.
///
/// # Errors
/// Malformed chunks, and bytes behind the end.
pub fn body(
    bytes: &[u8],
    head: &Head,
    decoded: &mut Vec<u8>,
) -> Result<Option<Body>, ProtocolError> {
    let (body, end) = match head.framing {
        Framing::Length(n) => {
            let end = head.len.checked_add(n).ok_or(ProtocolError::BadLength)?;
            if bytes.len() < end {
                return Ok(None);
            }
            (Body::InPlace(head.len..end), end)
        }
        Framing::Chunked => match chunks(bytes, head.len, decoded)? {
            Some(end) => (Body::Decoded, end),
            None => return Ok(None),
        },
    };
    if bytes.len() > end {
        return Err(ProtocolError::Surplus);
    }
    Ok(Some(body))
}

/// Decodes chunks from `at`; gives the offset behind the trailer.
fn chunks(
    bytes: &[u8],
    mut at: usize,
    decoded: &mut Vec<u8>,
) -> Result<Option<usize>, ProtocolError> {
    decoded.clear();
    loop {
        // httparse takes a line without any digit for a size of 0.
        if bytes.get(at).is_some_and(|b| !b.is_ascii_hexdigit()) {
            return Err(ProtocolError::BadChunk);
        }
        let (line, size) = match httparse::parse_chunk_size(&bytes[at..]) {
            Ok(httparse::Status::Complete((line, size))) => (line, size),
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(ProtocolError::BadChunk),
        };
        at += line;
        if size == 0 {
            return trailer(bytes, at);
        }
        let size = usize::try_from(size).map_err(|_| ProtocolError::BadChunk)?;
        let end = at.checked_add(size).ok_or(ProtocolError::BadChunk)?;
        match bytes.get(end..end.saturating_add(2)) {
            Some(b"\r\n") => decoded.extend_from_slice(&bytes[at..end]),
            Some(_) => return Err(ProtocolError::BadChunk),
            None => return Ok(None),
        }
        at = end + 2;
    }
}

/// Trailer fields are skipped; an empty line ends them.
fn trailer(bytes: &[u8], mut at: usize) -> Result<Option<usize>, ProtocolError> {
    loop {
        let rest = &bytes[at..];
        match rest.iter().position(|&b| b == b'\n') {
            None => return Ok(None),
            Some(0) => return Err(ProtocolError::BadChunk),
            Some(i) if rest[i - 1] != b'\r' => return Err(ProtocolError::BadChunk),
            Some(1) => return Ok(Some(at + 2)),
            Some(i) => at += i + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `wire` whole, then again one byte more at a time: both must agree.
    fn parse(wire: &[u8]) -> Result<Option<(Head, Vec<u8>)>, ProtocolError> {
        let whole = step(wire);
        if let Ok(Some(_)) = whole {
            for cut in 0..wire.len() {
                assert_eq!(step(&wire[..cut]), Ok(None), "complete after {cut} bytes");
            }
        }
        whole
    }

    fn step(wire: &[u8]) -> Result<Option<(Head, Vec<u8>)>, ProtocolError> {
        let Some(head) = head(wire)? else { return Ok(None) };
        let mut decoded = Vec::new();
        Ok(body(wire, &head, &mut decoded)?.map(|body| match body {
            Body::InPlace(range) => (head, wire[range].to_vec()),
            Body::Decoded => (head, decoded),
        }))
    }

    #[test]
    fn good_answers_at_every_split() {
        let table: [(&str, u16, &str, bool); 10] = [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", false),
            ("HTTP/1.1 404 Not Found\r\ncOnTeNt-LeNgTh:  0 \r\n\r\n", 404, "", false),
            (
                "HTTP/1.1 200 OK\r\nConnection: foo, Close\r\nContent-Length: 1\r\n\r\nx",
                200,
                "x",
                true,
            ),
            ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, "x", true),
            (
                "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
                200,
                "x",
                false,
            ),
            (
                "HTTP/1.1 200 OK\r\nConnection: close\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
                200,
                "x",
                true,
            ),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\ny",
                201,
                "y",
                false,
            ),
            ("HTTP/1.1 204 No Content\r\n\r\n", 204, "", false),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n1;a=b\r\n!\r\n0\r\n\r\n",
                200,
                "hi!",
                false,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n",
                200,
                "0123456789",
                false,
            ),
        ];
        for (wire, status, body, close) in table {
            let (head, got) = parse(wire.as_bytes()).expect(wire).expect(wire);
            assert_eq!(
                (head.status, got.as_slice(), head.close),
                (status, body.as_bytes(), close),
                "{wire}"
            );
        }
    }

    #[test]
    fn bad_answers_are_named() {
        let table = [
            ("SSH-2.0-OpenSSH\r\n", ProtocolError::NotHttp),
            ("HTTP/1.1 200 OK\r\n\r\nhi", ProtocolError::Unframed),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", ProtocolError::Unframed),
            ("HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nhi", ProtocolError::BadLength),
            ("HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n", ProtocolError::BadLength),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
                ProtocolError::BadLength,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
                ProtocolError::BadLength,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nhi",
                ProtocolError::BadLength,
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi!", ProtocolError::Surplus),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                ProtocolError::BadChunk,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n\r\n",
                ProtocolError::BadChunk,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n ;a=b\r\n\r\n",
                ProtocolError::BadChunk,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi!!0\r\n\r\n",
                ProtocolError::BadChunk,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP",
                ProtocolError::Surplus,
            ),
        ];
        for (wire, error) in table {
            assert_eq!(parse(wire.as_bytes()), Err(error), "{wire}");
        }
    }
}
