//! Takes what services send, judges it and counts it.

use super::Fleet;
use crate::load::connection::{Flight, Received, State, Verdict};
use crate::load::slice::Window;
use crate::load::tally::{Failure, nanoseconds};
use crate::scenario::Expected;
use std::time::Instant;

/// Reads of one connection for one event; then it is the turn of the others, and of the
/// clock: an answer without end would have the loop to itself otherwise.
const READS: usize = 8;

impl Fleet {
    /// Reads what has come. `closing`: the service has sent its last byte. An answer and the
    /// end of the connection may come with one event, after which there is no other.
    pub(super) fn receive(&mut self, index: usize, closing: bool, window: &Window) {
        for _ in 0..READS {
            match self.connections[index].read(&mut self.read) {
                Received::Nothing => return,
                Received::Closed => return self.closed(index, window),
                Received::Bytes(n) => {
                    // A read that did not fill the buffer has emptied the socket (epoll(7)):
                    // what comes later raises a new event.
                    if !self.take(index, n, closing, window) || (n < self.read.len() && !closing) {
                        return;
                    }
                }
            }
        }
        let connection = &mut self.connections[index];
        connection.rearm(&self.target.pool[connection.request], self.poll.registry());
    }

    /// Takes `n` bytes that were read; false when the connection was replaced.
    fn take(&mut self, index: usize, n: usize, closing: bool, window: &Window) -> bool {
        let now = Instant::now();
        self.tally.bytes += n as u64;
        let connection = &mut self.connections[index];
        let State::Busy(flight) = connection.state else {
            // Bytes that nobody asked for. The request before was answered well; the
            // connection cannot be trusted with another.
            self.tally.surplus += 1;
            self.reopen(index);
            return false;
        };
        let request = &self.target.pool[connection.request];
        let known = &mut self.known[connection.request];
        let whole = connection.partial.is_empty();
        let mut verdict = if whole && !known.is_empty() && self.read[..n] == known[..] {
            // Byte for byte what was parsed and judged right before.
            Verdict::Right { close: false }
        } else {
            if !whole {
                connection.partial.extend_from_slice(&self.read[..n]);
            }
            let partial = std::mem::take(&mut connection.partial);
            let bytes = if whole { &self.read[..n] } else { &partial[..] };
            let verdict = connection.judge(bytes, request);
            // What was right once is right again, unless every answer has to be looked at.
            if verdict == (Verdict::Right { close: false })
                && matches!(request.body, Expected::Exact(_) | Expected::Any)
            {
                known.clear();
                known.extend_from_slice(bytes);
            }
            connection.partial = partial;
            if whole && verdict != (Verdict::Right { close: false }) {
                // More is to come, or it is kept for the record.
                connection.partial.extend_from_slice(&self.read[..n]);
            }
            verdict
        };
        match &mut verdict {
            Verdict::Incomplete => return true,
            // Nothing more may be sent where nothing more will be answered.
            Verdict::Right { close } | Verdict::Wrong(_, close) => *close |= closing,
            Verdict::Unparseable(_) => {}
        }
        let early = !connection.has_written(request);
        let close = self.count(index, verdict, early, flight, now, window);
        self.landed(flight, now, window);
        self.connections[index].next_request(self.target.pool.len());
        if close {
            self.reopen(index);
            return false;
        }
        self.free(index, window, Some(now));
        true
    }

    /// Counts a complete answer; says whether its connection has to be replaced.
    fn count(
        &mut self,
        index: usize,
        verdict: Verdict,
        early: bool,
        flight: Flight,
        now: Instant,
        window: &Window,
    ) -> bool {
        let partial = &self.connections[index].partial;
        let latency_ns = nanoseconds(now.saturating_duration_since(flight.due));
        let (failure, close) = match verdict {
            // An answer to half a request answers something else.
            _ if early => (Some(Failure::ProtocolError), true),
            Verdict::Right { close } => (None, close),
            Verdict::Wrong(failure, close) => (Some(failure), close),
            Verdict::Unparseable(_) | Verdict::Incomplete => (Some(Failure::ProtocolError), true),
        };
        match failure {
            Some(failure) => self.tally.fail(failure, latency_ns, partial),
            None => {
                self.tally.succeed(&flight, now);
                self.slice.ok += 1;
                if now >= window.from && now < window.until {
                    self.slice.in_window += 1;
                }
            }
        }
        if close && !early && !matches!(verdict, Verdict::Unparseable(_)) {
            self.tally.server_closes += 1;
        }
        close
    }

    /// The service closed the connection, or it broke.
    fn closed(&mut self, index: usize, window: &Window) {
        let connection = &self.connections[index];
        if let State::Busy(flight) = connection.state {
            let failure = if connection.partial.is_empty() {
                Failure::StaleClose
            } else {
                Failure::Truncated
            };
            self.fail(index, failure, flight, window);
        } else {
            self.tally.server_closes += 1;
        }
        self.reopen(index);
    }
}
