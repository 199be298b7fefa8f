//! Judges answers. What belongs to one request fails its case; what every answer must keep is
//! a rule of its own, so that a service with one habit fails once and by its name instead of
//! in every case.

use super::Failure;
use super::answer::{Answer, Framing};
use super::pattern::{Difference, Pattern};
use super::trace::excerpt;
use super::wire::{Connection, Fault};

/// What every answer must keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// One `Content-Type: application/json`.
    ContentType,
    /// One `Content-Length`.
    ContentLength,
    /// No `Transfer-Encoding`.
    NotChunked,
    /// Nothing after the body.
    NoSurplus,
    /// No white space after the JSON.
    NoTrailingSpace,
    /// id, name, email.
    KeyOrder,
    /// The next request is answered.
    KeepAlive,
}

impl Rule {
    /// All, in the order in which they are reported.
    pub const ALL: [Rule; 7] = [
        Rule::NotChunked,
        Rule::ContentLength,
        Rule::ContentType,
        Rule::NoSurplus,
        Rule::NoTrailingSpace,
        Rule::KeyOrder,
        Rule::KeepAlive,
    ];

    fn name(self) -> &'static str {
        match self {
            Rule::ContentType => "answers-have-one-content-type",
            Rule::ContentLength => "answers-have-one-content-length",
            Rule::NotChunked => "answers-are-not-chunked",
            Rule::NoSurplus => "answers-end-with-their-body",
            Rule::NoTrailingSpace => "bodies-end-without-newline",
            Rule::KeyOrder => "keys-come-in-order-id-name-email",
            Rule::KeepAlive => "connections-stay-usable",
        }
    }

    fn why(self) -> &'static str {
        match self {
            Rule::ContentType => "clients choose their parser by it, and each header is work",
            Rule::ContentLength => {
                "a length is the cheapest framing; members must not differ in it"
            }
            Rule::NotChunked => "chunks are more bytes and more parsing than a length",
            Rule::NoSurplus => "surplus bytes are taken for the next answer",
            Rule::NoTrailingSpace => "bodies are the same bytes in every language",
            Rule::KeyOrder => "bodies are the same bytes in every language",
            Rule::KeepAlive => {
                "a connection that ends after an answer makes a load test measure connects"
            }
        }
    }
}

/// A check that is not kept.
#[derive(Debug)]
pub struct Miss {
    /// What differed.
    pub what: String,
    /// The exchange.
    pub trace: Vec<String>,
    /// Set when there was no answer at all.
    pub fault: Option<Fault>,
}

impl Miss {
    /// A difference in what came over this connection.
    pub fn new(what: String, connection: &Connection) -> Miss {
        Miss { what, trace: connection.trace(), fault: None }
    }

    /// No answer over this connection.
    pub fn fault(fault: Fault, connection: &Connection) -> Miss {
        Miss { what: fault.to_string(), trace: connection.trace(), fault: Some(fault) }
    }

    /// Puts in front which of several requests it was.
    pub fn at(mut self, place: &str) -> Miss {
        self.what = format!("{place}: {}", self.what);
        self
    }
}

impl From<Fault> for Miss {
    /// No connection, hence no exchange.
    fn from(fault: Fault) -> Miss {
        Miss { what: fault.to_string(), trace: Vec::new(), fault: Some(fault) }
    }
}

struct Breach {
    rule: Rule,
    what: String,
    trace: Vec<String>,
    cases: Vec<String>,
}

/// The rules broken so far, each with the first offence and the cases it touched.
#[derive(Default)]
pub struct Rules {
    breaches: Vec<Breach>,
}

impl Rules {
    /// Notes an offence.
    pub fn note(&mut self, rule: Rule, case: &str, what: String, connection: &Connection) {
        match self.breaches.iter_mut().find(|breach| breach.rule == rule) {
            None => {
                let (trace, cases) = (connection.trace(), vec![case.to_owned()]);
                self.breaches.push(Breach { rule, what, trace, cases });
            }
            Some(breach) if breach.cases.iter().all(|known| known != case) => {
                breach.cases.push(case.to_owned());
            }
            Some(_) => {}
        }
    }

    /// One failure for each broken rule.
    pub fn failures(self) -> Vec<Failure> {
        let mut breaches = self.breaches;
        breaches.sort_by_key(|breach| Rule::ALL.iter().position(|rule| *rule == breach.rule));
        breaches.into_iter().map(Breach::failure).collect()
    }

    /// Judges an answer; the id where the pattern has one.
    pub fn judge(
        &mut self,
        case: &str,
        connection: &mut Connection,
        answer: &Answer,
        (status, pattern): (u16, &Pattern),
    ) -> Result<Option<u64>, Miss> {
        self.judge_framing(case, connection, answer);
        let mut wrong = Vec::new();
        if answer.status != status {
            wrong.push(format!("the status is {}, expected {status}", answer.status));
        }
        let id = match pattern.check(&answer.body) {
            Ok(id) => id,
            Err(Difference::TrailingSpace(what, id)) => {
                self.note(Rule::NoTrailingSpace, case, what, connection);
                id
            }
            Err(Difference::KeyOrder(what, id)) => {
                self.note(Rule::KeyOrder, case, what, connection);
                id
            }
            Err(Difference::Other(what)) => {
                wrong.push(what);
                None
            }
        };
        if wrong.is_empty() { Ok(id) } else { Err(Miss::new(wrong.join("; "), connection)) }
    }

    fn judge_framing(&mut self, case: &str, connection: &mut Connection, answer: &Answer) {
        if let Some(coding) = answer.header("transfer-encoding").next() {
            let what = format!("the answer has Transfer-Encoding: {coding}");
            self.note(Rule::NotChunked, case, what, connection);
        }
        let lengths = answer.header("content-length").count();
        // A chunked answer rightly has no length; that it is chunked is said already.
        if lengths != 1 && answer.framing != Framing::Chunked {
            let what = format!("the answer has {lengths} Content-Length headers, expected 1");
            self.note(Rule::ContentLength, case, what, connection);
        }
        let types: Vec<_> = answer.header("content-type").collect();
        if types != ["application/json"] {
            let what = match types.as_slice() {
                [] => "the answer has no Content-Type, expected application/json".to_owned(),
                types => format!(
                    "Content-Type is {}, expected application/json",
                    excerpt(types.join("` and `").as_bytes(), 80)
                ),
            };
            self.note(Rule::ContentType, case, what, connection);
        }
        if !connection.surplus().is_empty() {
            let surplus = excerpt(connection.surplus(), 40);
            let what = format!("after the body of the answer came `{surplus}`");
            self.note(Rule::NoSurplus, case, what, connection);
            connection.discard_surplus();
        }
    }
}

impl Breach {
    fn failure(self) -> Failure {
        let named = self.cases.iter().take(3).map(|case| format!("`{case}`"));
        let names = named.collect::<Vec<_>>().join(", ");
        let more = if self.cases.len() > 3 { ", …" } else { "" };
        let checks = if self.cases.len() == 1 { "check" } else { "checks" };
        Failure {
            case: self.rule.name().to_owned(),
            why: self.rule.why().to_owned(),
            what: format!("{} (in {} {checks}: {names}{more})", self.what, self.cases.len()),
            trace: self.trace,
        }
    }
}
