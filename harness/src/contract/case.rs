//! Reads the cases of `data/contract/`: TOML to requests that are ready to send and answers
//! that can be compared. A mistake in a file is an error that names the file, the case and
//! the nearest known key. Nothing is sent here.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::Deserialize;

use super::pattern::Template;
use crate::toml_file::with_nearest_key;

/// All cases, in the order of the file names and within each file as written.
#[derive(Debug, Clone)]
pub struct Contract {
    /// The cases.
    pub cases: Vec<Case>,
}

/// One request and what must come of it.
#[derive(Debug, Clone)]
pub struct Case {
    /// Unique, kebab-case.
    pub name: String,
    /// What goes wrong for a user or a comparison if this breaks.
    pub why: String,
    /// What is sent.
    pub request: Request,
    /// The answer of a `must` case; `None` where the outcome is only observed.
    pub expect: Option<Expect>,
}

/// A request as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Head and body.
    pub bytes: Vec<u8>,
    /// Where the bytes are cut into segments: ascending, within `bytes`.
    pub cuts: Vec<usize>,
    /// Whether the answer has no body because the method is HEAD.
    pub head_only: bool,
    /// Whether the sender waits for `100 Continue` at the first cut.
    pub await_100: bool,
    /// How many answers the bytes ask for.
    pub answers: usize,
}

/// The answer of a `must` case.
#[derive(Debug, Clone)]
pub struct Expect {
    /// The status.
    pub status: u16,
    /// Headers that must be there with this value, beside those of every answer.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Template,
    /// What becomes of the connection.
    pub after: After,
}

/// What becomes of the connection after the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum After {
    /// The next request over it is answered.
    #[default]
    Open,
    /// The service ends it.
    Closed,
    /// Both are right.
    Either,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Level {
    Must,
    Observed,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    level: Level,
    // Read one by one, so that an error can name its case.
    case: Vec<toml::Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseText {
    name: String,
    why: String,
    request: RequestText,
    expect: Option<ExpectText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RequestText {
    method: Option<String>,
    path: Option<String>,
    #[serde(default)]
    headers: Vec<String>,
    body: Option<String>,
    body_escaped: Option<String>,
    body_size: Option<usize>,
    chunk_size: Option<usize>,
    raw: Option<String>,
    segments: Option<Segments>,
    #[serde(default)]
    cut_at: Vec<usize>,
    #[serde(default)]
    await_100: bool,
    answers: Option<usize>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Segments {
    EveryByte,
    EveryLine,
    HeadThenBody,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectText {
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: String,
    #[serde(default)]
    after: After,
}

/// Reads every `*.toml` of `dir`.
pub fn load(dir: &Path) -> Result<Contract> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
        let path = entry.with_context(|| format!("reading {}", dir.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let file = path.display().to_string();
        let text = fs::read_to_string(&path).with_context(|| format!("reading {file}"))?;
        cases.extend(parse_file(&file, &text)?);
    }
    ensure!(!cases.is_empty(), "{} holds no contract cases (*.toml)", dir.display());
    let mut names = HashSet::new();
    for case in &cases {
        let name = &case.name;
        ensure!(names.insert(name), "{}: the case name `{name}` is used twice", dir.display());
    }
    Ok(Contract { cases })
}

fn parse_file(file: &str, text: &str) -> Result<Vec<Case>> {
    let parsed: FileText =
        toml::from_str(text).map_err(|error| anyhow!("{file}: {}", with_nearest(&error)))?;
    let mut cases = Vec::new();
    for (index, table) in parsed.case.into_iter().enumerate() {
        let name = table.get("name").and_then(|name| name.as_str());
        let label = match name {
            Some(name) => format!("{file}, case `{name}`"),
            None => format!("{file}, case number {}", index + 1),
        };
        let case: CaseText =
            table.try_into().map_err(|error| anyhow!("{label}: {}", with_nearest(&error)))?;
        cases.push(build(case, parsed.level).with_context(|| label)?);
    }
    Ok(cases)
}

/// The message of a TOML error, place included, with the nearest known word if one was unknown.
fn with_nearest(error: &toml::de::Error) -> String {
    let (whole, message) = (error.to_string(), error.message());
    whole.trim_end().replacen(message, &with_nearest_key(message), 1)
}

fn build(text: CaseText, level: Level) -> Result<Case> {
    ensure!(is_kebab(&text.name), "a name is lower-case words joined by hyphens");
    ensure!(!text.why.trim().is_empty(), "`why` is empty");
    ensure!(
        text.expect.is_some() == (level == Level::Must),
        "a case of level \"must\" has an `expect`, one of level \"observed\" has none"
    );
    let (request, fill) = request(text.request)?;
    let expect = text
        .expect
        .map(|expect| -> Result<Expect> {
            let body = Template::parse(&expect.body, &fill).map_err(|why| anyhow!(why))?;
            let ExpectText { status, headers, after, .. } = expect;
            Ok(Expect { status, headers, body, after })
        })
        .transpose()?;
    Ok(Case { name: text.name, why: text.why, request, expect })
}

fn is_kebab(name: &str) -> bool {
    let word =
        |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    name.split('-').all(word)
}

/// The request as bytes, and what stood for `{fill}`.
fn request(text: RequestText) -> Result<(Request, String)> {
    let (segments, cut_at) = (text.segments, text.cut_at.clone());
    let answers = text.answers.unwrap_or(1);
    let method = text.method.clone().unwrap_or_else(|| "GET".to_owned());
    let mut fill = String::new();
    let bytes = match &text.raw {
        Some(raw) => {
            let alone = text.method.is_none()
                && text.path.is_none()
                && text.headers.is_empty()
                && text.body.is_none()
                && text.body_escaped.is_none();
            ensure!(
                alone,
                "`raw` is the whole request: no method, path, headers or body beside it"
            );
            unescape(raw)?
        }
        None => {
            let path = text.path.as_deref().context("a request has a `path` or is `raw`")?;
            let headers: Vec<_> = text.headers.iter().map(|line| repeat(line)).collect();
            let (body, filling) = body(&text)?;
            fill = filling;
            encode(&method, &repeat(path), &headers, body, text.chunk_size)
        }
    };
    let head_end = find(&bytes, b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    let cuts = match segments {
        None => cut_at,
        Some(_) if !cut_at.is_empty() => bail!("`segments` and `cut-at` exclude each other"),
        Some(Segments::EveryByte) => (1..bytes.len()).collect(),
        Some(Segments::HeadThenBody) => vec![head_end],
        Some(Segments::EveryLine) => (1..head_end).filter(|at| bytes[at - 1] == b'\n').collect(),
    };
    let ascending = cuts.is_sorted_by(|a, b| a < b);
    let within = cuts.iter().all(|at| (1..bytes.len()).contains(at));
    ensure!(ascending && within, "cuts must ascend and lie within the {} bytes", bytes.len());
    let (head_only, await_100) = (method == "HEAD", text.await_100);
    Ok((Request { bytes, cuts, head_only, await_100, answers }, fill))
}

/// The body, and what stood for `{fill}`.
fn body(text: &RequestText) -> Result<(Option<Vec<u8>>, String)> {
    let body = match (&text.body, &text.body_escaped) {
        (Some(_), Some(_)) => bail!("`body` and `body-escaped` exclude each other"),
        (Some(body), None) => Some(repeat(body).into_bytes()),
        (None, Some(body)) => Some(unescape(body)?),
        (None, None) => None,
    };
    let Some(size) = text.body_size else { return Ok((body, String::new())) };
    let template = text.body.as_deref().context("`body-size` needs a `body` with {fill}")?;
    ensure!(template.matches("{fill}").count() == 1, "`body-size` needs one {{fill}} in `body`");
    let bare = template.len() - "{fill}".len();
    let missing = size.checked_sub(bare).context("`body-size` is smaller than the body")?;
    let fill = "x".repeat(missing);
    Ok((Some(template.replace("{fill}", &fill).into_bytes()), fill))
}

/// `{1000*x}` is `x` a thousand times; other braces are themselves.
fn repeat(text: &str) -> String {
    let mut parts = text.split('{');
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let counted = part.split_once('}').and_then(|(inner, rest)| {
            let (count, unit) = inner.split_once('*')?;
            Some((count.parse::<usize>().ok()?, unit, rest))
        });
        match counted {
            Some((count, unit, rest)) => result.extend([&unit.repeat(count), rest]),
            None => result.extend(["{", part]),
        }
    }
    result
}

/// `\xNN` is the byte NN, every other backslash is itself: bytes that TOML cannot hold.
fn unescape(text: &str) -> Result<Vec<u8>> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2).context("`\\x` needs two hexadecimal digits")?;
        let byte = u8::from_str_radix(digits, 16)
            .with_context(|| format!("`\\x{digits}` is no hexadecimal byte"))?;
        bytes.push(byte);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    Ok(bytes)
}

/// A request with the headers that a usual client sends, where the case has not its own.
fn encode(
    method: &str,
    path: &str,
    headers: &[String],
    body: Option<Vec<u8>>,
    chunk_size: Option<usize>,
) -> Vec<u8> {
    let has = |name: &str| {
        headers.iter().any(|line| {
            line.split(':').next().is_some_and(|key| key.trim().eq_ignore_ascii_case(name))
        })
    };
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    let mut add = |line: &str| head.extend([line, "\r\n"]);
    if !has("host") {
        add("Host: localhost");
    }
    for line in headers {
        add(line);
    }
    if let Some(body) = &body {
        if !has("content-type") {
            add("Content-Type: application/json");
        }
        match chunk_size {
            Some(_) if !has("transfer-encoding") => add("Transfer-Encoding: chunked"),
            None if !has("content-length") => add(&format!("Content-Length: {}", body.len())),
            _ => {}
        }
    }
    add("");
    let mut bytes = head.into_bytes();
    match (body, chunk_size) {
        (Some(body), Some(size)) => {
            for chunk in body.chunks(size.max(1)) {
                bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
        }
        (Some(body), None) => bytes.extend_from_slice(&body),
        (None, _) => {}
    }
    bytes
}

/// A GET as the checks outside the case files send it.
pub fn get(path: &str) -> Vec<u8> {
    encode("GET", path, &[], None, None)
}

/// A POST to `/users` as the checks outside the case files send it.
pub fn post(body: Vec<u8>, chunk_size: Option<usize>) -> Vec<u8> {
    encode("POST", "/users", &[], Some(body), chunk_size)
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
#[path = "case_tests.rs"]
mod tests;
