//! A slow and obvious parser of HTTP/1.1 answers, written to be read, and the comparison of
//! the engine's with it. Shared by the property test (`parser.rs`) and the fuzz target
//! (`harness/fuzz`).

use harness::load::response::{self, Body, Chunks, Head};
use regex::bytes::Regex;
use std::sync::LazyLock;

/// What the bytes of an answer that have come are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// More are needed.
    Incomplete,
    /// An answer, and nothing behind it.
    Complete { status: u16, close: bool, body: Vec<u8> },
    /// Nothing that could become one.
    Wrong,
}

static STATUS_LINE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?-u)^HTTP/1\.([01]) ([0-9]{3})(?: [\t -~\x80-\xff]*)?$"));
static FIELD: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(?-u)^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[\t ]*([\t -~\x80-\xff]*?)[\t ]*$")
});
static SIZE_LINE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?-u)^([0-9A-Fa-f]{1,16})[\t ]*(?:;[^\r]*)?$"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a pattern")
}

/// Why there is no answer.
enum Stop {
    Incomplete,
    Wrong,
}

/// Reads a whole answer as RFC 9112 describes it; like the RFC it allows LF alone behind a
/// line of the header and empty lines before the status line. It looks at a part only when
/// that is complete, so it may see a fault later than the engine.
pub fn slow(bytes: &[u8]) -> Verdict {
    match answer(bytes) {
        Ok((status, close, body)) => Verdict::Complete { status, close, body },
        Err(Stop::Incomplete) => Verdict::Incomplete,
        Err(Stop::Wrong) => Verdict::Wrong,
    }
}

fn answer(mut bytes: &[u8]) -> Result<(u16, bool, Vec<u8>), Stop> {
    let (old, status, fields) = loop {
        let (old, status, fields) = header(&mut bytes)?;
        if !(100..200).contains(&status) || status == 101 {
            break (old, status, fields);
        }
    };
    let values = |name: &str| -> Vec<String> {
        fields.iter().filter(|(n, _)| n == name).map(|(_, v)| v.clone()).collect()
    };
    let connection = values("connection").join(",");
    let has = |option: &str| connection.split(',').any(|o| o.trim() == option);
    let close = has("close") || (old && !has("keep-alive"));

    let mut lengths = values("content-length");
    lengths.dedup_by(|a, b| a.parse::<usize>() == b.parse::<usize>());
    let codings = values("transfer-encoding");
    if lengths.iter().any(|l| l.is_empty() || !l.bytes().all(|b| b.is_ascii_digit()))
        || lengths.len() > 1
        || codings.iter().any(|c| c != "chunked")
    {
        return Err(Stop::Wrong);
    }
    let length =
        lengths.first().map(|l| l.parse::<usize>().map_err(|_| Stop::Wrong)).transpose()?;
    let body = match (length, codings.is_empty()) {
        _ if status == 204 || status == 304 => Vec::new(),
        (Some(length), true) => take(&mut bytes, length)?,
        (None, false) => chunks(&mut bytes)?,
        (Some(_), false) | (None, true) => return Err(Stop::Wrong),
    };
    if bytes.is_empty() { Ok((status, close, body)) } else { Err(Stop::Wrong) }
}

/// Whether it is HTTP/1.0, the status, and the fields in lower case.
type Header = (bool, u16, Vec<(String, String)>);

fn header(bytes: &mut &[u8]) -> Result<Header, Stop> {
    let mut lines = Vec::new();
    loop {
        let mut line = line(bytes, b"\n")?;
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        match (line.is_empty(), lines.is_empty()) {
            (true, true) => {}
            (true, false) => break,
            (false, _) => lines.push(line),
        }
    }
    let status_line = STATUS_LINE.captures(&lines[0]).ok_or(Stop::Wrong)?;
    let status = String::from_utf8_lossy(&status_line[2]).parse().expect("three digits");
    let lower = |part: &[u8]| String::from_utf8_lossy(part).to_ascii_lowercase();
    let fields: Option<Vec<_>> = lines[1..]
        .iter()
        .map(|line| FIELD.captures(line).map(|f| (lower(&f[1]), lower(&f[2]))))
        .collect();
    let fields = fields.filter(|f| f.len() <= 64).ok_or(Stop::Wrong)?;
    Ok((&status_line[1] == b"0", status, fields))
}

fn chunks(bytes: &mut &[u8]) -> Result<Vec<u8>, Stop> {
    let mut body = Vec::new();
    loop {
        let size_line = line(bytes, b"\r\n")?;
        let size = SIZE_LINE.captures(&size_line).ok_or(Stop::Wrong)?;
        let digits = String::from_utf8_lossy(&size[1]).into_owned();
        let size = usize::from_str_radix(&digits, 16).expect("up to 16 digits");
        if size == 0 {
            break;
        }
        let chunk = take(bytes, size.saturating_add(2))?;
        body.extend(chunk.strip_suffix(b"\r\n").ok_or(Stop::Wrong)?);
    }
    loop {
        match line(bytes, b"\n")?.as_slice() {
            b"\r" => return Ok(body),
            [.., b'\r'] => {}
            _ => return Err(Stop::Wrong),
        }
    }
}

/// Takes what stands before the first `end`, and the end.
fn line(bytes: &mut &[u8], end: &[u8]) -> Result<Vec<u8>, Stop> {
    let at = bytes.windows(end.len()).position(|w| w == end).ok_or(Stop::Incomplete)?;
    let line = bytes[..at].to_vec();
    *bytes = &bytes[at + end.len()..];
    Ok(line)
}

fn take(bytes: &mut &[u8], n: usize) -> Result<Vec<u8>, Stop> {
    let (taken, rest) = bytes.split_at_checked(n).ok_or(Stop::Incomplete)?;
    *bytes = rest;
    Ok(taken.to_vec())
}

/// Gets the answer in ever longer pieces; parses its head once.
#[derive(Default)]
struct Incremental {
    head: Option<Head>,
    chunks: Chunks,
}

impl Incremental {
    fn feed(&mut self, bytes: &[u8]) -> Verdict {
        if self.head.is_none() {
            match response::head(bytes) {
                Ok(head) => self.head = head,
                Err(_) => return Verdict::Wrong,
            }
        }
        let Some(head) = self.head else { return Verdict::Incomplete };
        let body = match response::body(bytes, &head, &mut self.chunks) {
            Ok(None) => return Verdict::Incomplete,
            Err(_) => return Verdict::Wrong,
            Ok(Some(Body::InPlace(range))) => bytes[range].to_vec(),
            Ok(Some(Body::Decoded)) => self.chunks.decoded().to_vec(),
        };
        Verdict::Complete { status: head.status, close: head.close, body }
    }
}

pub fn fast(bytes: &[u8]) -> Verdict {
    Incremental::default().feed(bytes)
}

/// Compares the two parsers on the beginnings of `wire` that end at `cuts`, which ascend.
///
/// # Errors
/// Says where they disagree, or where the engine's contradicts itself.
pub fn agree(wire: &[u8], cuts: impl IntoIterator<Item = usize>) -> Result<(), String> {
    let mut incremental = Incremental::default();
    let mut before = Verdict::Incomplete;
    for cut in cuts {
        let bytes = &wire[..cut];
        let differ = |what: &str, a: &Verdict, b: &Verdict| {
            Err(format!("{what} after {cut} bytes of \"{}\": {a:?}, {b:?}", wire.escape_ascii()))
        };
        let (fast, slow) = (fast(bytes), slow(bytes));
        // The engine may see a fault before its line is complete.
        if fast != slow && (&fast, &slow) != (&Verdict::Wrong, &Verdict::Incomplete) {
            return differ("engine and reference differ", &fast, &slow);
        }
        let pieces = incremental.feed(bytes);
        if pieces != fast {
            return differ("in pieces and at once differ", &pieces, &fast);
        }
        // More bytes mend no fault, and are too many behind a complete answer.
        if before != Verdict::Incomplete && fast != Verdict::Wrong {
            return differ("a verdict was taken back", &before, &fast);
        }
        before = fast;
    }
    Ok(())
}
