//! A user, and what makes a body one.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::refusal::{INVALID_EMAIL, INVALID_JSON, NAME_REQUIRED, Refusal};

/// A user as stored and as answered; the order of the fields is the order on the wire.
#[derive(Debug, Deserialize, Serialize)]
pub struct User {
    /// Digits.
    pub id: String,
    /// Never empty.
    pub name: String,
    /// Holds an `@`.
    pub email: String,
}

/// A valid user that has no id yet.
#[derive(Debug, PartialEq, Eq)]
pub struct NewUser {
    /// Never empty.
    pub name: String,
    /// Holds an `@`.
    pub email: String,
}

impl NewUser {
    /// Reads a request's body; fields other than name and email are skipped, whatever they hold.
    pub fn parse(body: &[u8]) -> Result<Self, Refusal> {
        // A derived struct would also take an array and would refuse a key given twice; in a
        // map the last one wins, as it does in the other languages.
        let text = std::str::from_utf8(body).map_err(|_| INVALID_JSON)?;
        let fields: HashMap<Cow<'_, str>, &RawValue> =
            serde_json::from_str(text).map_err(|_| INVALID_JSON)?;
        let name = string(fields.get("name")).filter(|name| !name.is_empty());
        let name = name.ok_or(NAME_REQUIRED)?;
        let email = string(fields.get("email")).filter(|email| email.contains('@'));
        let email = email.ok_or(INVALID_EMAIL)?;
        Ok(Self { name, email })
    }
}

fn string(field: Option<&&RawValue>) -> Option<String> {
    serde_json::from_str(field?.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid() {
        for (body, name, email) in [
            (r#"{"name":"Ada","email":"ada@x"}"#, "Ada", "ada@x"),
            (r#" {"email":"@","name":" "} "#, " ", "@"),
            (r#"{"name":"\u00e9\n\"\\","email":"a@x"}"#, "é\n\"\\", "a@x"),
            (r#"{"name":"A","email":"a@x","name":"B"}"#, "B", "a@x"),
            (r#"{"n\u0061me":"A","email":"a@x"}"#, "A", "a@x"),
            (r#"{"id":7,"n":1e999,"x":[{"y":[null]}],"name":"A","email":"a@x"}"#, "A", "a@x"),
        ] {
            let user = NewUser::parse(body.as_bytes());
            let expected = NewUser { name: name.to_owned(), email: email.to_owned() };
            assert_eq!(user.unwrap(), expected, "{body}");
        }
    }

    #[test]
    fn refused() {
        let cases: [(&[u8], Refusal); 22] = [
            (b"", INVALID_JSON),
            (b"null", INVALID_JSON),
            (b"1", INVALID_JSON),
            (b"\"name\"", INVALID_JSON),
            (br#"["Ada","ada@x"]"#, INVALID_JSON),
            (br#"{"name":"A","email":"a@x""#, INVALID_JSON),
            (br#"{"name":"A","email":"a@x"} x"#, INVALID_JSON),
            (br#"{"name":"A","email":"a@x",}"#, INVALID_JSON),
            (b"\xef\xbb\xbf{}", INVALID_JSON),
            (b"{\"name\":\"\xff\",\"email\":\"a@x\"}", INVALID_JSON),
            (b"{\"name\":\"A\",\"email\":\"a@x\",\"z\":\"\xff\"}", INVALID_JSON),
            (b"{\"name\":\"A\nB\",\"email\":\"a@x\"}", INVALID_JSON),
            (b"{}", NAME_REQUIRED),
            (br#"{"Name":"A","email":"a@x"}"#, NAME_REQUIRED),
            (br#"{"name":"","email":"a@x"}"#, NAME_REQUIRED),
            (br#"{"name":null,"email":"a@x"}"#, NAME_REQUIRED),
            (br#"{"name":7,"email":7}"#, NAME_REQUIRED),
            (br#"{"name":["A"],"email":"a@x"}"#, NAME_REQUIRED),
            (br#"{"name":"A"}"#, INVALID_EMAIL),
            (br#"{"name":"A","EMAIL":"a@x"}"#, INVALID_EMAIL),
            (br#"{"name":"A","email":null}"#, INVALID_EMAIL),
            (br#"{"name":"A","email":"a"}"#, INVALID_EMAIL),
        ];
        for (body, refusal) in cases {
            assert_eq!(NewUser::parse(body), Err(refusal), "{}", body.escape_ascii());
        }
    }
}
