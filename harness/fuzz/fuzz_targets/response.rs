//! Feeds arbitrary bytes to the response parser, in two pieces and at once: both must agree,
//! with each other and with the reference parser of the tests, and nothing may panic.

#![no_main]

#[path = "../../tests/load/reference.rs"]
mod reference;

libfuzzer_sys::fuzz_target!(|input: (u16, &[u8])| {
    let (split, wire) = input;
    let split = usize::from(split) % (wire.len() + 1);
    let cuts = if split == wire.len() { vec![split] } else { vec![split, wire.len()] };
    reference::agree(wire, cuts).unwrap_or_else(|e| panic!("{e}"));
});
