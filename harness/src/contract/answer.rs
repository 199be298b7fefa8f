//! Parses one HTTP/1.x answer from the bytes read so far. Starts from the first byte at
//! every call: slower than an incremental parser, but with no state that a split of reads
//! could upset. It does not read, does not time, and shares nothing with the load engine,
//! so that one cannot hide the other's mistakes.

const MAX_HEADERS: usize = 100;

/// A complete answer, its body decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// 0 for HTTP/1.0, 1 for HTTP/1.1.
    pub minor: u8,
    /// The status code.
    pub status: u16,
    /// Names as sent, in order; bytes that are no UTF-8 replaced.
    pub headers: Vec<(String, String)>,
    /// The body without its framing.
    pub body: Vec<u8>,
    /// How the end of the body was known.
    pub framing: Framing,
}

/// How the end of a body is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// By the method or the status: there is no body.
    None,
    /// By `Content-Length`.
    Length,
    /// By the last chunk.
    Chunked,
    /// By the end of the connection.
    Close,
}

/// What the bytes read so far amount to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// More is needed.
    Partial,
    /// An answer that took the first `length` bytes.
    Whole {
        /// The answer.
        answer: Answer,
        /// Bytes it took, framing included.
        length: usize,
    },
    /// No HTTP answer can begin like this.
    Broken(String),
}

impl Answer {
    /// Every value of a header, whatever the case of its name.
    pub fn header<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(move |(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Whether this is a 1xx that a final answer follows.
    pub fn is_interim(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }
}

/// Reads an answer from `bytes`; `head_only` for an answer to HEAD, `closed` when the
/// service has ended the connection and nothing will follow.
pub fn parse(bytes: &[u8], head_only: bool, closed: bool) -> Parsed {
    let mut slots = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Response::new(&mut slots);
    let start = match head.parse(bytes) {
        Ok(httparse::Status::Complete(start)) => start,
        Ok(httparse::Status::Partial) => return Parsed::Partial,
        Err(error) => return Parsed::Broken(error.to_string()),
    };
    let headers = head
        .headers
        .iter()
        .map(|h| (h.name.to_owned(), String::from_utf8_lossy(h.value).trim().to_owned()))
        .collect();
    let mut answer = Answer {
        minor: head.version.unwrap_or(1),
        status: head.code.unwrap_or(0),
        headers,
        body: Vec::new(),
        framing: Framing::None,
    };
    let rest = &bytes[start..];
    match body(&answer, rest, head_only, closed) {
        Ok(Some((framing, body, length))) => {
            answer.framing = framing;
            answer.body = body;
            Parsed::Whole { answer, length: start + length }
        }
        Ok(None) => Parsed::Partial,
        Err(why) => Parsed::Broken(why),
    }
}

type Body = Option<(Framing, Vec<u8>, usize)>;

fn body(answer: &Answer, rest: &[u8], head_only: bool, closed: bool) -> Result<Body, String> {
    if head_only || answer.status < 200 || matches!(answer.status, 204 | 304) {
        return Ok(Some((Framing::None, Vec::new(), 0)));
    }
    if answer.header("transfer-encoding").any(|value| value.eq_ignore_ascii_case("chunked")) {
        let decoded = dechunk(rest)?;
        return Ok(decoded.map(|(body, length)| (Framing::Chunked, body, length)));
    }
    // Of several lengths the first counts here; that there are several is judged elsewhere.
    if let Some(value) = answer.header("content-length").next() {
        let length = decimal(value).ok_or_else(|| format!("Content-Length is {value:?}"))?;
        let body = rest.get(..length).map(<[u8]>::to_vec);
        return Ok(body.map(|body| (Framing::Length, body, length)));
    }
    Ok(closed.then(|| (Framing::Close, rest.to_vec(), rest.len())))
}

fn decimal(text: &str) -> Option<usize> {
    // `parse` alone would accept a sign.
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// The decoded body and the bytes it took, `None` while the last chunk is missing.
fn dechunk(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, String> {
    let mut body = Vec::new();
    let mut at = 0;
    loop {
        let (start, size) = match httparse::parse_chunk_size(&bytes[at..]) {
            Ok(httparse::Status::Complete((start, size))) => (at + start, size),
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        if size == 0 {
            return Ok(end_of_trailers(&bytes[start..]).map(|length| (body, start + length)));
        }
        let size = usize::try_from(size).map_err(|_| "chunk too large".to_owned())?;
        let end = start.checked_add(size).ok_or("chunk too large")?;
        let Some(data) = bytes.get(start..end) else { return Ok(None) };
        let Some(line_end) = bytes.get(end..end + 2) else { return Ok(None) };
        if line_end != b"\r\n" {
            return Err(format!("a chunk of {size} bytes does not end with CRLF"));
        }
        body.extend_from_slice(data);
        at = end + 2;
    }
}

/// Length of the trailer section up to and with its empty line.
fn end_of_trailers(bytes: &[u8]) -> Option<usize> {
    if bytes.starts_with(b"\r\n") {
        return Some(2);
    }
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-TYPE: application/json\r\n\
        Content-Length: 7\r\n\r\n{\"a\":1}";
    const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
        A;x=\"1\"\r\n0123456789\r\n1\r\n!\r\n0\r\nDigest: 1\r\n\r\n";
    const EMPTY: &[u8] = b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n";

    #[test]
    fn every_prefix_is_partial_and_the_whole_is_whole() {
        for (text, body) in [(PLAIN, "{\"a\":1}"), (CHUNKED, "0123456789!"), (EMPTY, "")] {
            for end in 0..text.len() {
                assert_eq!(parse(&text[..end], false, false), Parsed::Partial, "cut at {end}");
            }
            let surplus = [text, b"HTTP/1.1 200".as_slice()].concat();
            for bytes in [text, &surplus] {
                let Parsed::Whole { answer, length } = parse(bytes, false, false) else {
                    panic!("not whole: {}", String::from_utf8_lossy(bytes));
                };
                assert_eq!((answer.body.as_slice(), length), (body.as_bytes(), text.len()));
            }
        }
    }

    #[test]
    fn names_are_found_in_any_case_and_several_values_are_seen() {
        let text = b"HTTP/1.1 200 OK\r\nCONTENT-length: 0\r\nContent-Length:  0 \r\n\r\n";
        let Parsed::Whole { answer, .. } = parse(text, false, false) else { panic!() };
        assert_eq!(answer.header("Content-Length").collect::<Vec<_>>(), ["0", "0"]);
    }

    #[test]
    fn an_answer_to_head_and_a_204_have_no_body() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
        assert!(matches!(parse(head, true, false), Parsed::Whole { length: 38, .. }));
        assert_eq!(parse(head, false, true), Parsed::Partial);
        let none = b"HTTP/1.1 204 No Content\r\n\r\n";
        assert!(matches!(parse(none, false, false), Parsed::Whole { .. }));
    }

    #[test]
    fn without_framing_the_close_ends_the_body() {
        let text = b"HTTP/1.1 200 OK\r\n\r\nabc";
        assert_eq!(parse(text, false, false), Parsed::Partial);
        let Parsed::Whole { answer, .. } = parse(text, false, true) else { panic!() };
        assert_eq!((answer.framing, answer.body.as_slice()), (Framing::Close, b"abc".as_slice()));
    }

    #[test]
    fn what_is_no_answer_is_broken() {
        for text in [
            b"\n{\"error\":\"not found\"}HTTP/1.1 200 OK".as_slice(),
            b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nabcde",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        ] {
            assert!(matches!(parse(text, false, true), Parsed::Broken(_)));
        }
    }
}
