//! The response parser against a slow and obvious one, on random answers: at every split
//! both must say the same, and what was said once must hold when more bytes come.

use super::reference::{self, Verdict};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};

fn any_case(name: &'static str) -> impl Strategy<Value = String> {
    prop::collection::vec(any::<bool>(), name.len()).prop_map(move |upper| {
        let flip = |(c, up): (char, bool)| if up { c.to_ascii_uppercase() } else { c };
        name.chars().zip(upper).map(flip).collect()
    })
}

fn padding() -> impl Strategy<Value = &'static str> {
    select(vec!["", " ", " ", " ", "\t", "  \t"])
}

/// A field with its line end.
fn field(name: &'static str, value: String) -> BoxedStrategy<String> {
    (any_case(name), padding(), padding(), select(vec!["\r\n", "\r\n", "\r\n", "\n"]))
        .prop_map(move |(name, before, behind, end)| format!("{name}:{before}{value}{behind}{end}"))
        .boxed()
}

fn other_field() -> BoxedStrategy<String> {
    let name = select(vec!["server", "x-1", "etag", "content-lengt", "connection", "connection"]);
    let value = select(vec!["", "a b", "\u{e9}", "close", "keep-alive", "x, Close", "closed"]);
    (name, value).prop_flat_map(|(name, value)| field(name, value.to_owned())).boxed()
}

/// How the body is framed: the fields that say so, and the body on the wire.
fn framed(body: Vec<u8>) -> BoxedStrategy<(Vec<String>, Vec<u8>)> {
    let length = body.len();
    let zero = prop_oneof![Just(String::new()), Just("0".to_owned())];
    let by_length =
        zero.prop_flat_map(move |zero| field("content-length", format!("{zero}{length}")));
    let by_length = by_length.boxed();
    let chunked = select(vec!["chunked", "Chunked", "CHUNKED"])
        .prop_flat_map(|c| field("transfer-encoding", c.to_owned()))
        .boxed();
    let odd = prop_oneof![
        select(vec!["1", "9", "+1", "-1", "1a", "1 1", "", "99999999999999999999"])
            .prop_flat_map(|v| field("content-length", v.to_owned())),
        select(vec!["gzip", "gzip, chunked", "identity", ""])
            .prop_flat_map(|v| field("transfer-encoding", v.to_owned())),
        Just(String::new()),
    ]
    .boxed();
    let plain = Just(body.clone()).boxed();
    let coded = coded(body);
    prop_oneof![
        6 => (by_length.clone().prop_map(|f| vec![f]), plain.clone()),
        6 => (chunked.clone().prop_map(|f| vec![f]), coded.clone()),
        1 => ((by_length.clone(), by_length.clone()).prop_map(|(a, b)| vec![a, b]), plain.clone()),
        1 => ((by_length, chunked.clone()).prop_map(|(a, b)| vec![a, b]), coded.clone()),
        1 => ((chunked.clone(), chunked).prop_map(|(a, b)| vec![a, b]), coded),
        2 => (odd.prop_map(|f| vec![f]), plain),
    ]
    .boxed()
}

/// The body in chunks.
fn coded(body: Vec<u8>) -> BoxedStrategy<Vec<u8>> {
    let extension = select(vec!["", "", "", ";a", " ;a=b", ";q=\"x;y\"", "\t;\u{e9}", "  "]);
    let line = (extension, 0..4usize, any::<bool>());
    let trailer = select(vec!["", "", "X: y\r\n", "X: y\r\nZ:\r\n", " odd\r\n"]);
    (prop::collection::vec((1..12usize, line.clone()), 64), line, trailer)
        .prop_map(move |(chunks, (last, zeros, _), trailer)| {
            let (mut rest, mut wire) = (&body[..], Vec::new());
            for (size, (extension, zeros, upper)) in chunks {
                let (chunk, behind) = rest.split_at(size.min(rest.len()));
                rest = behind;
                if chunk.is_empty() {
                    break;
                }
                let size = format!("{:0>zeros$}{:x}", "", chunk.len());
                let size = if upper { size.to_uppercase() } else { size };
                wire.extend(format!("{size}{extension}\r\n").bytes());
                wire.extend(chunk);
                wire.extend(b"\r\n");
            }
            wire.extend(format!("{:0>zeros$}0{last}\r\n{trailer}\r\n", "").bytes());
            wire
        })
        .boxed()
}

/// An answer, mostly a right one.
fn wire() -> impl Strategy<Value = Vec<u8>> {
    let interim = select(vec![
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
        "\r\n",
    ]);
    let status = prop_oneof![
        8 => select(vec![200u16, 201, 204, 304, 404, 500]),
        1 => select(vec![101u16, 199, 0, 999]),
    ];
    let body = prop::collection::vec(any::<u8>(), 0..40).prop_flat_map(framed);
    (
        prop::collection::vec(interim, 0..2),
        select(vec!["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0"]),
        status,
        select(vec![" OK\r\n", " \r\n", "\r\n", " Nicht gefunden\n", "\n"]),
        prop::collection::vec(other_field(), 0..4),
        body,
    )
        .prop_map(|(interim, version, status, reason, others, (framing, body))| {
            let fields = [others, framing].concat().concat();
            let head = format!("{}{version} {status:03}{reason}{fields}\r\n", interim.concat());
            [head.into_bytes(), body].concat()
        })
}

/// Bytes that are shown as text.
struct Wire(Vec<u8>);

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

/// An answer with a fault, or with none.
fn damaged() -> impl Strategy<Value = Wire> {
    let telling = select(b"\r\n\t :;,0aFG-\0\x7f\x80\xff".to_vec());
    let byte = prop_oneof![3 => telling, 1 => any::<u8>()];
    let fault = (0..8usize, any::<prop::sample::Index>(), byte);
    (wire(), fault).prop_map(|(mut wire, (kind, at, byte))| {
        let at = at.index(wire.len());
        match kind {
            0 => wire[at] = byte,
            1 => wire.insert(at, byte),
            2 => drop(wire.remove(at)),
            3 => wire.push(byte),
            4 => wire.truncate(at),
            _ => {}
        }
        Wire(wire)
    })
}

/// The same answers every time: to look for new faults is the fuzz target's business.
fn run(cases: u32, test: impl Fn(&[u8]) -> Result<(), String>) {
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&damaged(), |wire| test(&wire.0).map_err(TestCaseError::fail))
        .unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn both_parsers_agree_at_every_split() {
    run(600, |wire| reference::agree(wire, 0..=wire.len()));
}

#[test]
fn both_parsers_agree_on_many_answers() {
    run(10_000, |wire| reference::agree(wire, [wire.len()]));
}

/// The comparison is worth something only if all verdicts are frequent.
#[test]
fn random_answers_are_of_all_kinds() {
    let kinds = std::cell::RefCell::new([0; 3]);
    run(2_000, |wire| {
        kinds.borrow_mut()[match reference::fast(wire) {
            Verdict::Incomplete => 0,
            Verdict::Complete { .. } => 1,
            Verdict::Wrong => 2,
        }] += 1;
        Ok(())
    });
    let kinds = kinds.into_inner();
    assert!(kinds.iter().all(|n| *n > 100), "{kinds:?}");
}
