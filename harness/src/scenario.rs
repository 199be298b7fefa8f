//! Scenarios: which requests are sent, in which mix, and what each must answer.
//!
//! Reads `data/scenarios/*.toml` and writes, from a seed, a pool of finished requests
//! with their expected answers. Sends nothing.

use crate::toml_file::{self, FileError};
use crate::users::User;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;
use std::path::Path;

/// Requests written beforehand. Enough that no cache line of the service is hit twice in
/// a row, few enough (about 200 kB) to stay in the generator's second-level cache.
pub const POOL_SIZE: usize = 1024;

/// A mix of requests.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Name as on the command line.
    pub name: String,
    /// One line for people.
    pub about: String,
    templates: Vec<Template>,
}

#[derive(Debug, Clone)]
struct Template {
    weight: u32,
    method: String,
    path: String,
    body: Option<String>,
    status: u16,
    answer: Answer,
}

#[derive(Debug, Clone)]
enum Answer {
    User,
    Created,
    Exact(String),
}

/// What a request must be answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// Exactly these bytes.
    Exact(Vec<u8>),
    /// `{"id":"` digits, then exactly these bytes.
    Created(Vec<u8>),
    /// Any body.
    Any,
}

/// One request, ready to be written, and its right answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Everything that goes over the wire.
    pub bytes: Vec<u8>,
    /// Right status.
    pub status: u16,
    /// Right body.
    pub body: Expected,
}

/// What stands before the digits of a new user's id.
const CREATED_PREFIX: &[u8] = b"{\"id\":\"";

impl Expected {
    /// Whether `body` is right.
    pub fn matches(&self, body: &[u8]) -> bool {
        match self {
            Expected::Exact(bytes) => body == bytes,
            Expected::Any => true,
            Expected::Created(suffix) => body
                .strip_prefix(CREATED_PREFIX)
                .and_then(|rest| rest.strip_suffix(suffix.as_slice()))
                .is_some_and(|id| {
                    !id.is_empty() && id[0] != b'0' && id.iter().all(u8::is_ascii_digit)
                }),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireScenario {
    name: String,
    about: String,
    request: Vec<WireRequest>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireRequest {
    weight: u32,
    method: String,
    path: String,
    body: Option<String>,
    status: u16,
    answer: WireAnswer,
    exact: Option<String>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum WireAnswer {
    User,
    Created,
    Exact,
}

/// Reads every scenario in `dir`, in order of name.
///
/// # Errors
/// Names the file, the line and the key.
pub fn load_all(dir: &Path) -> Result<Vec<Scenario>, FileError> {
    let entries = std::fs::read_dir(dir)
        .map_err(|e| FileError::whole(dir, format!("cannot be listed: {e}")))?;
    let mut files: Vec<_> = entries
        .filter_map(Result::ok)
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    files.iter().map(|f| load(f)).collect()
}

fn load(file: &Path) -> Result<Scenario, FileError> {
    let (wire, text) = toml_file::read::<WireScenario>(file)?;
    if file.file_stem().is_none_or(|s| s != wire.name.as_str()) {
        return Err(FileError::at(
            file,
            &text,
            "name",
            format!("name `{}` must be that of the file", wire.name),
        ));
    }
    let templates = wire
        .request
        .into_iter()
        .map(|r| template(r).map_err(|m| FileError::at(file, &text, "[[request]]", m)))
        .collect::<Result<Vec<_>, _>>()?;
    if templates.is_empty() {
        return Err(FileError::whole(file, "has no [[request]]; add at least one"));
    }
    Ok(Scenario { name: wire.name, about: wire.about, templates })
}

fn template(wire: WireRequest) -> Result<Template, String> {
    if wire.weight == 0 {
        return Err("`weight` is 0; leave the request out instead".to_owned());
    }
    if wire.exact.is_some() != (wire.answer == WireAnswer::Exact) {
        return Err("`exact` goes with answer = \"exact\", and only with it".to_owned());
    }
    let answer = match wire.answer {
        WireAnswer::User if !wire.path.contains("{id}") => {
            return Err("answer = \"user\" needs {id} in `path`".to_owned());
        }
        WireAnswer::User => Answer::User,
        WireAnswer::Created => Answer::Created,
        WireAnswer::Exact => Answer::Exact(wire.exact.unwrap_or_default()),
    };
    Ok(Template {
        weight: wire.weight,
        method: wire.method,
        path: wire.path,
        body: wire.body,
        status: wire.status,
        answer,
    })
}

impl Scenario {
    /// Writes [`POOL_SIZE`] requests. The same seed gives the same requests in the same
    /// order, so that every member is sent the same.
    pub fn pool(&self, users: &[User], seed: u64) -> Vec<Request> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..POOL_SIZE).map(|_| self.pick(&mut rng).request(users, &mut rng)).collect()
    }

    fn pick(&self, rng: &mut impl Rng) -> &Template {
        let total: u32 = self.templates.iter().map(|t| t.weight).sum();
        let mut left = rng.random_range(0..total);
        for template in &self.templates {
            if left < template.weight {
                return template;
            }
            left -= template.weight;
        }
        unreachable!("the weights add up to the total")
    }
}

impl Template {
    fn request(&self, users: &[User], rng: &mut impl Rng) -> Request {
        let user = &users[rng.random_range(0..users.len())];
        // Far above any id that a run can reach by posting.
        let miss: u64 = rng.random_range(1_000_000_000..2_000_000_000);
        let path = self.path.replace("{id}", &user.id).replace("{miss}", &miss.to_string());
        let body = self.body.as_ref().map(|b| {
            b.replace("\"{name}\"", &json(&user.name)).replace("\"{email}\"", &json(&user.email))
        });
        let expected = match &self.answer {
            Answer::User => Expected::Exact(json(user).into_bytes()),
            Answer::Exact(body) => Expected::Exact(body.clone().into_bytes()),
            Answer::Created => Expected::Created(
                format!("\",\"name\":{},\"email\":{}}}", json(&user.name), json(&user.email))
                    .into_bytes(),
            ),
        };
        let bytes = write_request(&self.method, &path, body.as_deref());
        Request { bytes, status: self.status, body: expected }
    }
}

fn json<T: serde::Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|e| unreachable!("plain strings serialise: {e}"))
}

/// The header set is small and the same for every service; `docs/ARCHITECTURE.md` shows it.
fn write_request(method: &str, path: &str, body: Option<&str>) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n");
    if let Some(body) = body {
        text += &format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
    } else {
        text += "\r\n";
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users() -> Vec<User> {
        (1..=50)
            .map(|i| User {
                id: i.to_string(),
                name: format!("Ada \"{i}\" <&>"),
                email: format!("ada{i}@example.com"),
            })
            .collect()
    }

    fn scenario(text: &str) -> Result<Scenario, FileError> {
        let dir = tempfile::tempdir().expect("temporary folder");
        let file = dir.path().join("demo.toml");
        std::fs::write(&file, text).expect("write scenario");
        load(&file)
    }

    const MIXED: &str = r#"
name = "demo"
about = "both"
[[request]]
weight = 9
method = "GET"
path = "/users/{id}"
status = 200
answer = "user"
[[request]]
weight = 1
method = "POST"
path = "/users"
body = '{"name":"{name}","email":"{email}"}'
status = 201
answer = "created"
"#;

    #[test]
    fn one_seed_gives_one_sequence() {
        let s = scenario(MIXED).expect("good scenario");
        assert_eq!(s.pool(&users(), 7), s.pool(&users(), 7));
        assert_ne!(s.pool(&users(), 7), s.pool(&users(), 8));
    }

    #[test]
    fn the_mix_follows_the_weights() {
        let pool = scenario(MIXED).expect("good scenario").pool(&users(), 1);
        let posts = pool.iter().filter(|r| r.status == 201).count();
        assert!((60..=150).contains(&posts), "{posts} of {POOL_SIZE}");
    }

    #[test]
    fn names_are_escaped_in_requests_and_answers() {
        let pool = scenario(MIXED).expect("good scenario").pool(&users(), 1);
        let post = pool.iter().find(|r| r.status == 201).expect("a post");
        let text = String::from_utf8(post.bytes.clone()).expect("utf-8");
        let (head, body) = text.split_once("\r\n\r\n").expect("head and body");
        assert!(head.contains(&format!("Content-Length: {}", body.len())));
        serde_json::from_str::<serde_json::Value>(body).expect("valid JSON");
    }

    #[test]
    fn created_answers_need_digits_and_the_right_frame() {
        let expected = Expected::Created(b"\",\"name\":\"A\"}".to_vec());
        assert!(expected.matches(b"{\"id\":\"10001\",\"name\":\"A\"}"));
        for wrong in [
            &b"{\"id\":\"\",\"name\":\"A\"}"[..],
            b"{\"id\":\"1x\",\"name\":\"A\"}",
            b"{\"id\":\"010\",\"name\":\"A\"}",
            b"{\"id\":10001,\"name\":\"A\"}",
            b"{\"id\":\"10001\",\"name\":\"A\"}\n",
            b"{\"id\":\"",
            b"",
        ] {
            assert!(!expected.matches(wrong), "{}", String::from_utf8_lossy(wrong));
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (from, to, part) in [
            ("weight = 9", "weight = 0", "`weight` is 0"),
            ("answer = \"user\"", "answer = \"exact\"", "`exact` goes with"),
            ("/users/{id}", "/users/1", "needs {id}"),
            ("name = \"demo\"", "name = \"other\"", "must be that of the file"),
            ("weight = 9", "wieght = 9", "did you mean `weight`"),
        ] {
            let error = scenario(&MIXED.replacen(from, to, 1)).expect_err(to);
            assert!(error.message.contains(part), "{error}");
        }
    }
}
