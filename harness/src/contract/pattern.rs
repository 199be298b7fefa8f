//! Expected bodies: exact text with placeholders, and where a body departs from it.
//! `{new-id}` is the id a service gave, `{user:500}` the seeded user as JSON, `{fill}` the
//! filling of a body of a stated size. Nothing here is HTTP.

use std::collections::HashMap;

use serde_json::Value;

use super::trace::{excerpt, thousands};
use crate::toml_file::did_you_mean;
use crate::users::User;

/// Ids up to this one belong to the seeded users.
pub const LAST_SEEDED_ID: u64 = 10_000;
const NEW_ID: &str = "{new-id}";
const PLACEHOLDERS: [&str; 3] = ["new-id", "user", "fill"];

/// The seeded users by id.
pub type Users<'a> = HashMap<&'a str, &'a User>;

/// An expected body as the case file states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
    users: Vec<String>,
}

/// An expected body with its users filled in: `before`, an id if `after` is there, `after`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    before: String,
    after: Option<String>,
}

/// How a body departs from what was expected. Where it still tells its id, that is kept:
/// such a habit must not keep a check from going on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// As expected, then white space.
    TrailingSpace(String, Option<u64>),
    /// The same object with its keys in another order.
    KeyOrder(String, Option<u64>),
    /// Anything else.
    Other(String),
}

impl Template {
    /// Checks the placeholders of `text`; `fill` stands for `{fill}`.
    pub fn parse(text: &str, fill: &str) -> Result<Template, String> {
        let mut users = Vec::new();
        for (at, _) in text.match_indices('{') {
            let rest = &text[at + 1..];
            // JSON has a quote or a brace here, a placeholder a letter.
            if !rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
                continue;
            }
            let inner = rest.split('}').next().unwrap_or(rest);
            match inner.split_once(':') {
                Some(("user", id)) => users.push(id.to_owned()),
                None if inner == "new-id" || inner == "fill" => {}
                _ => {
                    let near = did_you_mean(inner, PLACEHOLDERS);
                    return Err(format!("unknown placeholder {{{inner}}}{near}"));
                }
            }
        }
        if text.matches(NEW_ID).count() > 1 {
            return Err(format!("more than one {NEW_ID}"));
        }
        Ok(Template { text: text.replace("{fill}", fill), users })
    }

    /// Whether an id is captured.
    pub fn has_new_id(&self) -> bool {
        self.text.contains(NEW_ID)
    }

    /// Puts in the users; an error names one that the seed lacks.
    pub fn resolve(&self, users: &Users) -> Result<Pattern, String> {
        let mut text = self.text.clone();
        for id in &self.users {
            let user = users.get(id.as_str()).ok_or(format!("the seed has no user {id}"))?;
            text = text.replace(&format!("{{user:{id}}}"), &json(user));
        }
        Ok(match text.split_once(NEW_ID) {
            Some((before, after)) => {
                Pattern { before: before.to_owned(), after: Some(after.to_owned()) }
            }
            None => Pattern::exactly(text),
        })
    }
}

impl Pattern {
    /// This text and nothing else.
    pub fn exactly(text: String) -> Pattern {
        Pattern { before: text, after: None }
    }

    /// What a service answers to a new user.
    pub fn created(name: &str, email: &str) -> Pattern {
        let rest =
            json(&User { id: String::new(), name: name.to_owned(), email: email.to_owned() });
        let after = rest.strip_prefix("{\"id\":\"").map(str::to_owned);
        Pattern { before: "{\"id\":\"".to_owned(), after }
    }

    /// Compares; the id where the pattern has one.
    pub fn check(&self, got: &[u8]) -> Result<Option<u64>, Difference> {
        let Some(after) = &self.after else {
            return compare(self.before.as_bytes(), got, None).map(|()| None);
        };
        let digits = match got.strip_prefix(self.before.as_bytes()) {
            Some(rest) => digits(rest),
            // In another order of keys the id can still be told by its name.
            None => id_by_name(got).unwrap_or_default(),
        };
        let new = |id: &u64| *id > LAST_SEEDED_ID && !digits.starts_with('0');
        let id = digits.parse().ok().filter(new);
        compare(format!("{}{digits}{after}", self.before).as_bytes(), got, id)?;
        if id.is_none() {
            return Err(Difference::Other(format!(
                "the new id is {digits:?}; expected a decimal number above {LAST_SEEDED_ID} \
                 without leading zeros"
            )));
        }
        Ok(id)
    }
}

/// A user as every service writes it.
pub fn json(user: &User) -> String {
    // A struct of three strings has no way to fail.
    serde_json::to_string(user).unwrap_or_default()
}

fn digits(text: &[u8]) -> String {
    text.iter().take_while(|b| b.is_ascii_digit()).map(|b| char::from(*b)).collect()
}

fn id_by_name(got: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(got).ok()?;
    Some(digits(value.get("id")?.as_str()?.as_bytes()))
}

fn compare(expected: &[u8], got: &[u8], id: Option<u64>) -> Result<(), Difference> {
    if expected == got {
        return Ok(());
    }
    let at = expected.iter().zip(got).take_while(|(a, b)| a == b).count();
    let text = sentence(expected, got, at);
    if got.strip_prefix(expected).is_some_and(|rest| rest.iter().all(u8::is_ascii_whitespace)) {
        return Err(Difference::TrailingSpace(text, id));
    }
    let parse = |bytes| serde_json::from_slice::<Value>(bytes).ok();
    // Same members in as many bytes, yet not the same bytes: they stand in another order.
    // (The map of serde_json compares without regard to it.)
    let same_members = expected.len() == got.len() && parse(expected) == parse(got);
    Err(match same_members && parse(got).is_some_and(|value| value.is_object()) {
        true => Difference::KeyOrder(text, id),
        false => Difference::Other(text),
    })
}

/// Says where two bodies part, with a little of what stands around.
fn sentence(expected: &[u8], got: &[u8], at: usize) -> String {
    const BEFORE: usize = 16;
    const SHOWN: usize = 48;
    let window = |bytes: &[u8]| {
        let mut from = at.saturating_sub(BEFORE).min(bytes.len());
        while from > 0 && from < bytes.len() && bytes[from] & 0xc0 == 0x80 {
            from -= 1;
        }
        let lead = if from > 0 { "…" } else { "" };
        format!("`{lead}{}` ({} bytes)", excerpt(&bytes[from..], SHOWN), thousands(bytes.len()))
    };
    let at_text = thousands(at);
    format!(
        "the body differs at byte {at_text}: expected {}, got {}",
        window(expected),
        window(got)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user() -> User {
        User { id: "500".to_owned(), name: "A \"b\" <c>".to_owned(), email: "a@b".to_owned() }
    }

    fn pattern(text: &str) -> Pattern {
        let user = user();
        let users = HashMap::from([("500", &user)]);
        Template::parse(text, "xx").unwrap().resolve(&users).unwrap()
    }

    #[test]
    fn placeholders_are_filled_in() {
        assert_eq!(
            pattern("{user:500}"),
            Pattern::exactly(r#"{"id":"500","name":"A \"b\" <c>","email":"a@b"}"#.to_owned())
        );
        assert_eq!(pattern("a{fill}{}b"), Pattern::exactly("axx{}b".to_owned()));
        let created = pattern(r#"{"id":"{new-id}","name":"Ada","email":"a@b"}"#);
        assert_eq!(created, Pattern::created("Ada", "a@b"));
        let lacking = Template::parse("{user:501}", "").unwrap().resolve(&Users::new());
        assert_eq!(lacking.unwrap_err(), "the seed has no user 501");
    }

    #[test]
    fn unknown_placeholders_are_refused_with_the_nearest() {
        let error = Template::parse(r#"{"id":"{newid}"}"#, "").unwrap_err();
        assert_eq!(error, "unknown placeholder {newid}; did you mean `new-id`?");
        assert!(Template::parse("{new-id}{new-id}", "").is_err());
    }

    #[test]
    fn a_new_id_is_decimal_without_leading_zeros_and_above_the_seed() {
        let created = Pattern::created("Ada", "a@b");
        let body = |id: &str| format!(r#"{{"id":"{id}","name":"Ada","email":"a@b"}}"#);
        assert_eq!(created.check(body("10001").as_bytes()), Ok(Some(10_001)));
        for id in ["", "7", "10000", "010001", "1e5", "99999999999999999999999"] {
            assert!(
                matches!(created.check(body(id).as_bytes()), Err(Difference::Other(_))),
                "{id}"
            );
        }
        let number = br#"{"id":10001,"name":"Ada","email":"a@b"}"#;
        assert!(matches!(created.check(number), Err(Difference::Other(_))));
    }

    #[test]
    fn the_first_byte_that_differs_is_named() {
        let Err(Difference::Other(text)) = pattern("{user:500}").check(b"{\"id\":\"500\"}") else {
            panic!("no difference");
        };
        assert_eq!(
            text,
            r#"the body differs at byte 11: expected `{"id":"500","name":"A \"b\" <c>","email":"a@b"}` (47 bytes), got `{"id":"500"}` (12 bytes)"#
        );
    }

    #[test]
    fn differences_with_a_rule_of_their_own_are_told_apart() {
        let check = |text: &str| pattern("{user:500}").check(text.as_bytes()).unwrap_err();
        let right = json(&user());
        assert!(matches!(check(&format!("{right}\n")), Difference::TrailingSpace(_, None)));
        assert!(matches!(
            check(r#"{"name":"A \"b\" <c>","id":"500","email":"a@b"}"#),
            Difference::KeyOrder(_, None)
        ));
        let escaped = right.replace('<', "\\u003c");
        assert!(matches!(check(&escaped), Difference::Other(_)));
        assert!(matches!(check(&format!(" {right}")), Difference::Other(_)));
        let created = Pattern::created("Ada", "a@b");
        let order = created.check(br#"{"email":"a@b","id":"10001","name":"Ada"}"#);
        assert!(matches!(order, Err(Difference::KeyOrder(_, Some(10_001)))));
    }
}
