//! Drains a child's output so that a full pipe never blocks it, and keeps the last lines.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Lines kept for an error message.
const KEPT_LINES: usize = 12;
/// Bytes kept of one line.
const KEPT_LINE_BYTES: usize = 400;

/// The last lines of one or more streams, and how much there was.
#[derive(Debug, Clone, Default)]
pub struct Tail(Arc<Mutex<Lines>>);

#[derive(Debug)]
struct Lines {
    kept: VecDeque<String>,
    bytes: u64,
    most_lines: usize,
    most_line_bytes: usize,
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            kept: VecDeque::new(),
            bytes: 0,
            most_lines: KEPT_LINES,
            most_line_bytes: KEPT_LINE_BYTES,
        }
    }
}

impl Tail {
    /// One that keeps more than a message needs.
    pub fn keeping(lines: usize, line_bytes: usize) -> Self {
        Self(Arc::new(Mutex::new(Lines {
            most_lines: lines,
            most_line_bytes: line_bytes,
            ..Lines::default()
        })))
    }

    /// The kept lines, indented for an error message; empty when there were none.
    pub fn quote(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.kept.iter().map(|line| format!("\n    | {line}")).collect()
    }

    /// The kept lines as they are.
    pub fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.kept.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Bytes read so far, without the first line where that was handed over.
    pub fn bytes(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }

    /// Reads `stream` to its end on a thread of its own. `first_line`, where given, is
    /// sent the first line, which is then not kept.
    pub fn drain(
        &self,
        mut stream: impl Read + Send + 'static,
        first_line: Option<Sender<String>>,
    ) -> JoinHandle<()> {
        let tail = self.clone();
        let most = self.0.lock().unwrap_or_else(PoisonError::into_inner).most_line_bytes;
        std::thread::spawn(move || {
            let mut first_line = first_line;
            let mut line = Vec::new();
            let mut chunk = vec![0; 16 * 1024];
            // An error on a pipe means that the other side is gone, as its end does.
            while let Ok(n @ 1..) = stream.read(&mut chunk) {
                for part in chunk[..n].split_inclusive(|&b| b == b'\n') {
                    if first_line.is_none() {
                        tail.count(part.len());
                    }
                    let room = most.saturating_sub(line.len());
                    line.extend_from_slice(&part[..part.len().min(room)]);
                    if !part.ends_with(b"\n") {
                        continue;
                    }
                    let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                    line.clear();
                    match first_line.take() {
                        // Nobody waits any more when the start has failed already.
                        Some(waiting) => drop(waiting.send(text)),
                        None => tail.keep(text),
                    }
                }
            }
            if !line.is_empty() {
                tail.keep(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
        })
    }

    fn count(&self, bytes: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).bytes += bytes as u64;
    }

    fn keep(&self, line: String) {
        if line.is_empty() {
            return;
        }
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.kept.len() >= lines.most_lines {
            lines.kept.pop_front();
        }
        lines.kept.push_back(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn keeps_the_last_lines_cut_and_hands_over_the_first() {
        let tail = Tail::default();
        let (send, receive) = std::sync::mpsc::channel();
        let text: String = (0..100).map(|i| format!("line {i}\n")).collect();
        let long = "x".repeat(10_000);
        tail.drain(std::io::Cursor::new(format!("ready\n{text}{long}")), Some(send));
        assert_eq!(receive.recv_timeout(Duration::from_secs(5)).expect("first line"), "ready");
        let until = Instant::now() + Duration::from_secs(5);
        while !tail.quote().contains("xxx") && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let quote = tail.quote();
        assert_eq!(quote.matches('\n').count(), KEPT_LINES);
        assert!(quote.contains("| line 99\n") && !quote.contains("line 80"));
        assert!(quote.len() < 2 * KEPT_LINE_BYTES);
    }
}
