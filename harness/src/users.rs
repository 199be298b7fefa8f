//! The seeded users: their type, the file they are read from, and the generator of that file.
//!
//! `data/users.json` is committed, since it is part of every result; `generate` is its source,
//! and a test holds the two together. This module knows nothing of services or requests.

use std::{collections::HashSet, fs, path::Path};

use anyhow::{Result, anyhow, ensure};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use serde::{Deserialize, Serialize};

mod names;

/// How many users `generate` makes; their ids are "1" to "10000".
pub const COUNT: usize = 10_000;

/// Thirty-two bytes rather than a number: the key goes into the cipher as it is, with no step in
/// between that a new version of the library could change.
const SEED: [u8; 32] = *b"ten thousand users, always these";

/// No name is shorter than this where a long one is wanted, in characters.
const LONG_NAME_CHARS: usize = 120;

const NEXT_STEP: &str = "regenerate it with `cargo run --release -- users`";

/// One user, with its keys in the order in which every service writes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// A decimal number without leading zeros, as text.
    pub id: String,
    /// Not empty; any script, quotes, backslashes and emoji included.
    pub name: String,
    /// ASCII, with an `@`.
    pub email: String,
}

/// Reads a users file.
///
/// # Errors
///
/// One message with the file, the place and the next step where the file is missing, unreadable,
/// cut short or malformed, where it has no users, where the ids are not 1, 2, 3 … in order, or
/// where a user would not pass the services' own checks (a name; an `@` in the e-mail).
pub fn load(path: &Path) -> Result<Vec<User>> {
    let shown = path.display();
    let bytes =
        fs::read(path).map_err(|e| anyhow!("cannot read users file {shown}: {e}; {NEXT_STEP}"))?;
    let users: Vec<User> = serde_json::from_slice(&bytes).map_err(|e| {
        let what = if e.is_eof() { "is cut short" } else { "is malformed" };
        anyhow!("users file {shown} {what}: {e}; {NEXT_STEP}")
    })?;
    ensure!(!users.is_empty(), "users file {shown} holds no users; {NEXT_STEP}");
    for (id, user) in (1_usize..).zip(&users) {
        let found = &user.id;
        ensure!(
            *found == id.to_string(),
            "users file {shown}: user number {id} has the id {found:?}, but ids must run from 1 \
             in order; {NEXT_STEP}"
        );
        ensure!(!user.name.is_empty(), "users file {shown}: user {id} has no name; {NEXT_STEP}");
        ensure!(
            user.email.contains('@'),
            "users file {shown}: the e-mail of user {id} has no @; {NEXT_STEP}"
        );
    }
    Ok(users)
}

/// The text of a users file: a JSON array with one user a line, so that a change shows in a diff
/// as the lines it touches.
#[must_use]
pub fn to_json(users: &[User]) -> String {
    let lines: Vec<String> = users
        .iter()
        .map(|user| serde_json::to_string(user).expect("a struct of strings always serialises"))
        .collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

/// The ten thousand users, the same on every machine and in every version.
///
/// No name holds a control character, U+2028 or U+2029: encoders of different languages disagree
/// on whether and how to escape these, and an answer's bytes must not depend on that. (Lone
/// surrogates, the other such case, cannot exist in a Rust string.)
#[must_use]
pub fn generate() -> Vec<User> {
    let mut draw = Draw(ChaCha8Rng::from_seed(SEED));
    let mut taken = HashSet::new();
    (1..=COUNT)
        .map(|id| {
            let person = Person::draw(&mut draw);
            let (local, domain) = address(&mut draw, &person);
            let mut email = format!("{local}@{domain}");
            if !taken.insert(email.clone()) {
                // Unique without a look: no first choice has a number behind a dot.
                email = format!("{local}.{id}@{domain}");
            }
            User { id: id.to_string(), name: name(&mut draw, &person), email }
        })
        .collect()
}

/// Draws in plain 32-bit arithmetic: ready-made ranges and shuffles may depend on the width of
/// `usize` and change between versions.
struct Draw(ChaCha8Rng);

impl Draw {
    fn below(&mut self, bound: u32) -> u32 {
        // The high half of the product; its bias is below one in 10⁵ for the bounds used here.
        let product = u64::from(self.0.next_u32()) * u64::from(bound);
        (product >> 32) as u32
    }

    fn word(&mut self, list: &'static str) -> &'static str {
        let count = list.split_whitespace().count() as u32;
        let nth = self.below(count) as usize;
        list.split_whitespace().nth(nth).expect("drawn below the count")
    }
}

/// One given and one family name, as drawn from a script's lists.
struct Person {
    script: &'static names::Script,
    given: &'static str,
    family: &'static str,
}

impl Person {
    fn draw(draw: &mut Draw) -> Self {
        let mut left = draw.below(1_000);
        let script = names::SCRIPTS
            .iter()
            .find(|script| match left.checked_sub(script.per_mille) {
                Some(rest) => {
                    left = rest;
                    false
                }
                None => true,
            })
            .expect("the shares add up to 1,000");
        Self { script, given: draw.word(script.given), family: draw.word(script.family) }
    }
}

/// A word as its owner writes it.
fn written(word: &'static str) -> &'static str {
    word.split_once('=').map_or(word, |(written, _)| written)
}

/// A word as its owner spells it in an address.
fn roman(word: &'static str) -> String {
    word.split_once('=').map_or_else(
        || word.chars().filter(char::is_ascii_alphabetic).collect::<String>().to_ascii_lowercase(),
        |(_, roman)| roman.to_owned(),
    )
}

/// The full name; for a few users in one of the forms that trip encoders.
fn name(draw: &mut Draw, person: &Person) -> String {
    let Person { script, given, family } = *person;
    let (given, family) = (written(given), written(family));
    let join = |given: &str, family: &str| {
        let (first, last) = if script.family_first { (family, given) } else { (given, family) };
        format!("{first}{}{last}", script.separator)
    };
    match draw.below(1_000) {
        0..8 => {
            let nickname = written(draw.word(script.given));
            join(&format!("{given} \"{nickname}\""), family)
        }
        8..12 => format!("{family}\\{given}"),
        12..16 => format!("{} <{family} & Co>", join(given, family)),
        16..28 => format!("{} {}", join(given, family), draw.word(names::EMOJI)),
        28..31 => given.chars().take(1).collect(),
        31..34 => {
            let mut all = given.to_owned();
            while all.chars().count() < LONG_NAME_CHARS {
                all = format!("{all} {}", written(draw.word(script.given)));
            }
            join(&all, family)
        }
        34..80 => join(&format!("{given} {}", written(draw.word(script.given))), family),
        80..100 => join(given, &format!("{family}-{}", written(draw.word(script.family)))),
        _ => join(given, family),
    }
}

/// The two sides of an e-mail address.
fn address(draw: &mut Draw, person: &Person) -> (String, &'static str) {
    let (given, family) = (roman(person.given), roman(person.family));
    let initial = &given[..1];
    let local = match draw.below(100) {
        0..40 => format!("{given}.{family}"),
        40..55 => format!("{initial}{family}"),
        55..70 => format!("{given}{family}{}", 1 + draw.below(99)),
        70..80 => format!("{given}_{family}"),
        80..88 => format!("{family}.{given}"),
        88..94 => format!("{given}{}", 1950 + draw.below(60)),
        94..97 => format!("{given}.{family}+newsletter"),
        _ => initial.to_owned(),
    };
    (local, draw.word(names::DOMAINS))
}

#[cfg(test)]
mod tests;
