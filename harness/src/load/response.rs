//! Parses HTTP/1.1 answers: pure functions over the bytes that have arrived so far.
//!
//! Call again with more bytes when the answer is not complete. Nothing is copied but the
//! body of a chunked answer. Does not decide whether an answer is right.

use std::ops::Range;

/// Headers an answer may have. More than any service here sends; more is an error.
const MAX_HEADERS: usize = 64;
/// Longest head, interim answers included, bytes; also longest line of a chunked body. What
/// no service here comes near to; without a limit one endless line would take all memory.
pub const MAX_HEAD: usize = 64 * 1024;
/// Longest answer, head included, bytes. A connection holds the bytes and, when they are
/// chunked, the body: up to twice this.
pub const MAX_ANSWER: usize = 16 * 1024 * 1024;

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
    /// A head or an answer beyond [`MAX_HEAD`] or [`MAX_ANSWER`].
    #[error("longer than an answer may be")]
    TooLong,
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
            Ok(httparse::Status::Partial) => return incomplete(bytes, MAX_HEAD),
            Err(_) => return Err(ProtocolError::NotHttp),
        };
        if skipped + len > MAX_HEAD {
            return Err(ProtocolError::TooLong);
        }
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

/// More has to come, unless it is too much already.
fn incomplete<T>(bytes: &[u8], most: usize) -> Result<Option<T>, ProtocolError> {
    if bytes.len() > most { Err(ProtocolError::TooLong) } else { Ok(None) }
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
    /// In the [`Chunks`] given to [`body`].
    Decoded,
}

/// How far a chunked body is decoded: each chunk once, however the answer is cut.
#[derive(Debug, Default)]
pub struct Chunks {
    /// Bytes of the answer that are done with; 0: none of the body.
    at: usize,
    /// The last chunk is among them; the trailer follows.
    last: bool,
    decoded: Vec<u8>,
}

/// Finds the body behind `head` in `bytes`, which are all that came; `None` while it is
/// not complete. `chunks` is cleared before an answer, and kept while more of it comes.
///
/// # Errors
/// Malformed chunks, too long an answer, and bytes behind the end.
pub fn body(bytes: &[u8], head: &Head, chunks: &mut Chunks) -> Result<Option<Body>, ProtocolError> {
    let (body, end) = match head.framing {
        Framing::Length(n) => {
            let end = head.len.checked_add(n).ok_or(ProtocolError::BadLength)?;
            // Told beforehand: there is no reason to read 16 MiB first.
            if end > MAX_ANSWER {
                return Err(ProtocolError::TooLong);
            }
            if bytes.len() < end {
                return Ok(None);
            }
            (Body::InPlace(head.len..end), end)
        }
        Framing::Chunked => match chunks.advance(bytes, head.len)? {
            Some(end) => (Body::Decoded, end),
            None => return incomplete(bytes, MAX_ANSWER),
        },
    };
    if bytes.len() > end {
        return Err(ProtocolError::Surplus);
    }
    Ok(Some(body))
}

impl Chunks {
    /// The chunks so far, put together.
    pub fn decoded(&self) -> &[u8] {
        &self.decoded
    }

    /// For another answer.
    pub fn clear(&mut self) {
        (self.at, self.last) = (0, false);
        self.decoded.clear();
    }

    /// Goes on with a body that begins at `from`; gives the offset behind the trailer.
    fn advance(&mut self, bytes: &[u8], from: usize) -> Result<Option<usize>, ProtocolError> {
        self.at = self.at.max(from);
        while !self.last {
            let rest = &bytes[self.at..];
            // httparse takes a line without any digit for a size of 0.
            if rest.first().is_some_and(|b| !b.is_ascii_hexdigit()) {
                return Err(ProtocolError::BadChunk);
            }
            let (line, size) = match httparse::parse_chunk_size(rest) {
                Ok(httparse::Status::Complete((line, size))) => (line, size),
                Ok(httparse::Status::Partial) => return incomplete(rest, MAX_HEAD),
                Err(_) => return Err(ProtocolError::BadChunk),
            };
            let size = usize::try_from(size).map_err(|_| ProtocolError::BadChunk)?;
            let end = line.checked_add(size).ok_or(ProtocolError::BadChunk)?;
            if size == 0 {
                (self.at, self.last) = (self.at + end, true);
                break;
            }
            if end > MAX_ANSWER {
                return Err(ProtocolError::TooLong);
            }
            match rest.get(end..end + 2) {
                Some(b"\r\n") => self.decoded.extend_from_slice(&rest[line..end]),
                Some(_) => return Err(ProtocolError::BadChunk),
                None => return Ok(None),
            }
            self.at += end + 2;
        }
        self.trailer(bytes)
    }

    /// Trailer fields are skipped; an empty line ends them.
    fn trailer(&mut self, bytes: &[u8]) -> Result<Option<usize>, ProtocolError> {
        loop {
            let rest = &bytes[self.at..];
            match rest.iter().position(|&b| b == b'\n') {
                None => return incomplete(rest, MAX_HEAD),
                Some(0) => return Err(ProtocolError::BadChunk),
                Some(i) if rest[i - 1] != b'\r' => return Err(ProtocolError::BadChunk),
                Some(1) => return Ok(Some(self.at + 2)),
                Some(i) => self.at += i + 1,
            }
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
        let mut chunks = Chunks::default();
        Ok(body(wire, &head, &mut chunks)?.map(|body| match body {
            Body::InPlace(range) => (head, wire[range].to_vec()),
            Body::Decoded => (head, chunks.decoded),
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
    #[test]
    fn endless_answers_are_given_up() {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let length = "HTTP/1.1 200 OK\r\nContent-Length: ";
        let table = [
            format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(MAX_HEAD)),
            format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(MAX_HEAD)),
            "HTTP/1.1 100 Continue\r\n\r\n".repeat(3_000),
            format!("{length}{MAX_ANSWER}\r\n\r\n"),
            format!("{chunked}1000000\r\nx"),
            format!("{chunked}1;{}", "x".repeat(MAX_HEAD)),
            format!("{chunked}0\r\n{}", "x".repeat(MAX_HEAD + 1)),
            format!("{chunked}{}", "1\r\nx\r\n".repeat(MAX_ANSWER / 6)),
        ];
        for wire in table {
            let shown = &wire[..wire.len().min(70)];
            assert_eq!(step(wire.as_bytes()), Err(ProtocolError::TooLong), "{shown}");
        }
        // The longest that is taken.
        let wire = format!("{length}{}\r\n\r\n", MAX_ANSWER - 45);
        assert_eq!(wire.len(), 45);
        assert_eq!(step(wire.as_bytes()), Ok(None));
    }

    #[test]
    fn a_chunk_is_decoded_once() {
        let head_of = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let wire = format!("{head_of}2\r\nhi\r\n1\r\n!\r\n0\r\nA: b\r\n\r\n").into_bytes();
        let head = head(&wire).expect("parses").expect("complete");
        let mut chunks = Chunks::default();
        let first = head.len + 7;
        assert_eq!(body(&wire[..first], &head, &mut chunks), Ok(None));
        assert_eq!((chunks.at, chunks.decoded()), (first, &b"hi"[..]));
        assert_eq!(body(&wire, &head, &mut chunks), Ok(Some(Body::Decoded)));
        assert_eq!(chunks.decoded(), b"hi!");
    }
}
