//! What a service does where the contract is silent, in words that are the same for services
//! that do the same; and the table that sets several services side by side. Judges nothing.

use std::time::Duration;

use super::answer::{Answer, Framing};
use super::case::Request;
use super::pattern::{LAST_SEEDED_ID, json};
use super::trace::excerpt;
use super::wire::{Connection, Fault, Quiet};
use super::{Report, Target};
use crate::users::User;

/// The time for an answer that may never come.
const PATIENCE: Duration = Duration::from_secs(1);
/// A service that closes after its answer does so at once.
const CLOSES_WITHIN: Duration = Duration::from_millis(60);
const SHOWN_BYTES: usize = 60;

/// Sends a request and words what comes. An error only where the service cannot be reached.
pub fn outcome(target: &Target, request: &Request) -> Result<String, Fault> {
    let mut connection = Connection::open(target.address)?.patient(PATIENCE);
    let mut words = Vec::new();
    let sent = if request.await_100 { request.cuts.first().copied() } else { None };
    let mut finals = 0;
    match sent {
        Some(head) => {
            connection.send(&request.bytes[..head], &[]);
            match connection.receive(false) {
                Ok(answer) => {
                    finals += usize::from(!answer.is_interim());
                    words.push(describe(&answer, target.users));
                }
                Err(Fault::Silent { .. }) => words.push("no 100".to_owned()),
                Err(fault) => return Ok(no_answer(&fault)),
            }
            connection.send(&request.bytes[head..], &[]);
        }
        None => connection.send(&request.bytes, &request.cuts),
    }
    while finals < request.answers {
        match connection.receive(request.head_only) {
            Ok(answer) => {
                finals += usize::from(!answer.is_interim());
                words.push(describe(&answer, target.users));
            }
            Err(fault) => {
                words.push(no_answer(&fault));
                return Ok(words.join("; then "));
            }
        }
    }
    let end = match connection.quiet(CLOSES_WITHIN) {
        Quiet::Closed => ", connection closed",
        Quiet::Open => "",
        Quiet::Surplus => ", then more bytes",
    };
    Ok(format!("{}{end}", words.join("; then ")))
}

fn no_answer(fault: &Fault) -> String {
    match fault {
        Fault::Closed(0) => "no answer, connection closed".to_owned(),
        Fault::Closed(_) => "an unfinished answer, connection closed".to_owned(),
        Fault::Silent { bytes: 0, .. } => "no answer, connection open".to_owned(),
        Fault::Silent { .. } => "an unfinished answer, connection open".to_owned(),
        Fault::Malformed(_) => "no HTTP answer".to_owned(),
        Fault::Refused | Fault::Connect(_) | Fault::Over(_) => fault.to_string(),
    }
}

fn describe(answer: &Answer, users: &[User]) -> String {
    if answer.is_interim() {
        return answer.status.to_string();
    }
    let version = if answer.minor == 0 { "HTTP/1.0 " } else { "" };
    let chunked = if answer.framing == Framing::Chunked { ", chunked" } else { "" };
    format!("{version}{}{}{chunked}", answer.status, describe_body(answer, users))
}

fn describe_body(answer: &Answer, users: &[User]) -> String {
    if let Some(location) = answer.header("location").next() {
        return format!(" to {}", excerpt(location.as_bytes(), SHOWN_BYTES));
    }
    if answer.body.is_empty() {
        return " without body".to_owned();
    }
    let text = String::from_utf8_lossy(&answer.body);
    if let Some(error) = error_of(&text) {
        return format!(" {}", excerpt(error.as_bytes(), SHOWN_BYTES));
    }
    if let Ok(user) = serde_json::from_str::<User>(&text)
        && user.id.parse().is_ok_and(|id: u64| id <= LAST_SEEDED_ID)
        && users.contains(&user)
        && json(&user) == text
    {
        return format!(", user {}", user.id);
    }
    // New ids depend on how many users came before.
    if let Some(rest) = text.strip_prefix("{\"id\":\"") {
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.starts_with('"') {
            let shown = format!("{{\"id\":\"…{rest}");
            return format!(", `{}`", excerpt(shown.as_bytes(), SHOWN_BYTES + 20));
        }
    }
    let kind = answer.header("content-type").next().unwrap_or("without type");
    format!(", {kind} `{}`", excerpt(text.trim_end().as_bytes(), SHOWN_BYTES))
}

/// The message of an error as the contract spells it.
fn error_of(body: &str) -> Option<&str> {
    let message = body.strip_prefix(r#"{"error":""#)?.strip_suffix(r#""}"#)?;
    (!message.contains(['"', '\\'])).then_some(message)
}

/// A Markdown table: case, why, one column for each service, and whether all are alike.
pub fn observed_table(columns: &[(String, &Report)]) -> String {
    let mut cases: Vec<(&str, &str)> = Vec::new();
    for observation in columns.iter().flat_map(|(_, report)| &report.observed) {
        if cases.iter().all(|(case, _)| *case != observation.case) {
            cases.push((&observation.case, &observation.why));
        }
    }
    let names = columns.iter().map(|(name, _)| cell(name));
    let head = ["case".to_owned(), "why".to_owned()].into_iter().chain(names);
    let mut table = row(head.chain(["alike".to_owned()]));
    table.push_str(&row((0..columns.len() + 3).map(|_| "---".to_owned())));
    for (case, why) in cases {
        let outcomes: Vec<&str> = columns
            .iter()
            .map(|(_, report)| {
                let found = report.observed.iter().find(|observation| observation.case == case);
                found.map_or("not observed", |observation| observation.outcome.as_str())
            })
            .collect();
        let alike =
            if outcomes.windows(2).all(|pair| pair[0] == pair[1]) { "yes" } else { "**no**" };
        let cells = [cell(case), cell(why)].into_iter().chain(outcomes.into_iter().map(cell));
        table.push_str(&row(cells.chain([alike.to_owned()])));
    }
    table
}

fn row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

/// Text that means itself within a cell.
fn cell(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => escaped.push(' '),
            '|' | '`' | '\\' | '*' | '_' | '<' | '>' | '[' | ']' | '~' | '#' | '&' => {
                escaped.extend(['\\', c]);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::Observation;
    use super::super::answer::{Parsed, parse};
    use super::*;

    fn described(text: &str) -> String {
        let (id, name, email) = ("500".to_owned(), "Ada".to_owned(), "a@b".to_owned());
        let Parsed::Whole { answer, .. } = parse(text.as_bytes(), false, true) else { panic!() };
        describe(&answer, &[User { id, name, email }])
    }

    fn answer(status: &str, body: &str) -> String {
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    }

    #[test]
    fn outcomes_are_short_and_do_not_depend_on_ids() {
        let user = r#"{"id":"500","name":"Ada","email":"a@b"}"#;
        assert_eq!(described(&answer("200 OK", user)), "200, user 500");
        let new = r#"{"id":"10017","name":"last","email":"a@b"}"#;
        assert_eq!(
            described(&answer("201 Created", new)),
            r#"201, `{"id":"…","name":"last","email":"a@b"}`"#
        );
        assert_eq!(described(&answer("400 B", r#"{"error":"invalid json"}"#)), "400 invalid json");
        assert_eq!(described(&answer("404 N", "")), "404 without body");
        assert_eq!(
            described(&answer("400 B", "Bad\nRequest\n")),
            "400, text/plain `Bad\\nRequest`"
        );
        assert_eq!(
            described("HTTP/1.0 301 M\r\nLocation: /users/1\r\n\r\n"),
            "HTTP/1.0 301 to /users/1"
        );
        assert_eq!(described("HTTP/1.1 100 Continue\r\n\r\n"), "100");
    }

    #[test]
    fn the_table_escapes_cells_and_marks_what_is_alike() {
        let report = |outcomes: &[(&str, &str)]| {
            let observed = outcomes.iter().map(|(case, outcome)| Observation {
                case: (*case).to_owned(),
                why: "a|b\nc".to_owned(),
                outcome: (*outcome).to_owned(),
            });
            Report { observed: observed.collect(), ..Report::default() }
        };
        let one = report(&[("head", "404"), ("x", "200, `a|b`")]);
        let two = report(&[("head", "404"), ("x", "no answer"), ("y", "1")]);
        let table = observed_table(&[("one".to_owned(), &one), ("t<o".to_owned(), &two)]);
        assert_eq!(
            table,
            "| case | why | one | t\\<o | alike |\n\
             | --- | --- | --- | --- | --- |\n\
             | head | a\\|b c | 404 | 404 | yes |\n\
             | x | a\\|b c | 200, \\`a\\|b\\` | no answer | **no** |\n\
             | y | a\\|b c | not observed | 1 | **no** |\n"
        );
    }
}
