//! What went over the wire, as lines a person can read in a terminal or a report: `> ` for
//! the request, `< ` for the answer, odd bytes escaped, long parts cut at a stated length.

use std::fmt::Write as _;

/// Bytes of one request or answer that a trace shows.
pub const SHOWN_BYTES: usize = 1_200;

/// Which way bytes went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To the service.
    Out,
    /// From the service.
    In,
}

#[derive(Debug)]
struct Part {
    way: Way,
    shown: Vec<u8>,
    total: usize,
}

/// The bytes of an exchange in the order in which they went, long parts kept in part.
#[derive(Debug, Default)]
pub struct Trace {
    parts: Vec<Part>,
}

impl Trace {
    /// Appends bytes; a run of bytes in one direction is one part.
    pub fn add(&mut self, way: Way, bytes: &[u8]) {
        if self.parts.last().is_none_or(|part| part.way != way) {
            self.parts.push(Part { way, shown: Vec::new(), total: 0 });
        }
        if let Some(part) = self.parts.last_mut() {
            let room = SHOWN_BYTES - part.shown.len();
            part.shown.extend_from_slice(&bytes[..room.min(bytes.len())]);
            part.total += bytes.len();
        }
    }

    /// Forgets what went before: a trace is about one exchange.
    pub fn clear(&mut self) {
        self.parts.clear();
    }

    /// The lines to print.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for part in &self.parts {
            let mark = if part.way == Way::Out { "> " } else { "< " };
            for line in part.shown.split_inclusive(|byte| *byte == b'\n') {
                // CRLF is the rule and is not shown; a bare LF shows as an escape.
                lines.push(format!("{mark}{}", escape(line.strip_suffix(b"\r\n").unwrap_or(line))));
            }
            if part.total > part.shown.len() {
                let total = thousands(part.total);
                match lines.last_mut() {
                    Some(line) => _ = write!(line, "… (cut, {total} bytes in all)"),
                    None => lines.push(format!("{mark}(cut, {total} bytes in all)")),
                }
            }
        }
        lines
    }
}

/// Printable text as it stands; control characters, line separators, invisible characters
/// and bytes that are no UTF-8 as escapes. Quotes and backslashes stay, or JSON were unreadable.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\'' | '\\' => text.push(c),
                // A combining mark alone would be escaped by `escape_debug`; within a name
                // it belongs to the letter before it.
                '\u{300}'..='\u{36f}' => text.push(c),
                c => text.extend(c.escape_debug()),
            }
        }
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// `escape` of at most `limit` bytes, with the whole length where something is left out.
pub fn excerpt(bytes: &[u8], limit: usize) -> String {
    if bytes.len() <= limit {
        return escape(bytes);
    }
    // Cut between characters, so that a cut is not taken for a broken one.
    let mut end = limit;
    while end > limit.saturating_sub(3) && bytes[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    format!("{}… (cut, {} bytes in all)", escape(&bytes[..end]), thousands(bytes.len()))
}

/// 65537 as `65,537`.
pub fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_readable_and_odd_bytes_are_escaped() {
        assert_eq!(
            escape("{\"n\":\"Zoë 😀 e\u{301} \\n\"}".as_bytes()),
            "{\"n\":\"Zoë 😀 e\u{301} \\n\"}"
        );
        assert_eq!(escape(b"a\r\n\t\0\x1b[31m"), "a\\r\\n\\t\\0\\u{1b}[31m");
        assert_eq!(escape("\u{2028}\u{202e}".as_bytes()), "\\u{2028}\\u{202e}");
        assert_eq!(escape(b"ab\xff\xc3"), "ab\\xff\\xc3");
    }

    #[test]
    fn a_trace_splits_lines_and_shows_a_bare_line_feed() {
        let mut trace = Trace::default();
        trace.add(Way::Out, b"GET / HTT");
        trace.add(Way::Out, b"P/1.1\r\nHost: a\n\r\n");
        trace.add(Way::In, b"HTTP/1.1 200 OK\r\n\r\n{}\n");
        assert_eq!(
            trace.lines(),
            ["> GET / HTTP/1.1", "> Host: a\\n", "> ", "< HTTP/1.1 200 OK", "< ", "< {}\\n"]
        );
    }

    #[test]
    fn long_parts_are_cut_at_a_stated_length() {
        let mut trace = Trace::default();
        for _ in 0..100 {
            trace.add(Way::Out, &[b'x'; 1_000]);
        }
        trace.add(Way::In, b"ok");
        let lines = trace.lines();
        assert_eq!(lines[0], format!("> {}… (cut, 100,000 bytes in all)", "x".repeat(SHOWN_BYTES)));
        assert_eq!(lines[1], "< ok");
        assert_eq!(excerpt("ääää".as_bytes(), 3), "ä… (cut, 8 bytes in all)");
        assert_eq!(excerpt(b"abc", 3), "abc");
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_048_577].map(thousands), ["0", "999", "1,000", "1,048,577"]);
    }
}
