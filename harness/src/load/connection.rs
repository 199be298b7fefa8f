//! One connection: what it is doing, and the bytes that go over it.
//!
//! Knows neither time-outs nor counts; `fleet` does.

use super::response::{self, Body, Chunks, Head, MAX_HEAD, ProtocolError};
use super::tally::Failure;
use crate::scenario::Request;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Instant;

/// A request under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flight {
    /// When it was due; in a closed pace when it was sent.
    pub due: Instant,
    /// From when on it could be sent: when it was due, or, later, when a connection was free.
    pub free: Instant,
    /// Immediately before its first byte was written.
    pub sent: Instant,
    /// It counts for latency.
    pub measured: bool,
}

impl Flight {
    /// Due the moment it is sent, and measured.
    pub fn unpaced(sent: Instant) -> Self {
        Self { due: sent, free: sent, sent, measured: true }
    }
}

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Being opened since.
    Connecting(Instant),
    /// Nothing.
    Idle,
    /// Waiting for an answer.
    Busy(Flight),
    /// Nothing any more, since then: it could not be opened again.
    Dead(Instant),
}

/// See the module.
pub struct Connection {
    /// What it is doing.
    pub state: State,
    /// The request under way, or the next one: an index into the pool.
    pub request: usize,
    /// The beginning of an answer of which more is to come.
    pub partial: Vec<u8>,
    stream: TcpStream,
    token: Token,
    written: usize,
    head: Option<Head>,
    /// Bytes of the answer in which a head was last looked for.
    looked: usize,
    chunks: Chunks,
}

/// What reading yielded.
pub enum Received {
    /// So many bytes.
    Bytes(usize),
    /// Nothing at present.
    Nothing,
    /// The connection is closed or broken.
    Closed,
}

/// What became of the bytes of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// More are needed.
    Incomplete,
    /// A right answer.
    Right {
        /// The service will close the connection.
        close: bool,
    },
    /// A complete, wrong answer.
    Wrong(Failure, bool),
    /// None that can be parsed.
    Unparseable(ProtocolError),
}

impl Connection {
    /// Begins to open a connection.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn open(
        address: SocketAddr,
        index: usize,
        request: usize,
        registry: &Registry,
    ) -> io::Result<Self> {
        let now = Instant::now();
        let mut connection = Self {
            state: State::Connecting(now),
            request,
            partial: Vec::new(),
            stream: TcpStream::connect(address)?,
            token: Token(index),
            written: 0,
            head: None,
            looked: 0,
            chunks: Chunks::default(),
        };
        let both = Interest::READABLE | Interest::WRITABLE;
        registry.register(&mut connection.stream, connection.token, both)?;
        Ok(connection)
    }

    /// Replaces this connection by a new one; the old one is closed.
    ///
    /// # Errors
    /// When the system refuses; the connection is then dead.
    pub fn reopen(&mut self, address: SocketAddr, registry: &Registry) -> io::Result<()> {
        self.state = State::Dead(Instant::now());
        let request = self.request;
        *self = Self::open(address, self.token.0, request, registry)?;
        Ok(())
    }

    /// Whether it is open by now.
    ///
    /// # Errors
    /// When opening failed.
    pub fn finish_connect(&mut self, registry: &Registry) -> io::Result<bool> {
        if let Some(error) = self.stream.take_error()? {
            return Err(error);
        }
        match self.stream.peer_addr() {
            Err(e) if e.kind() == ErrorKind::NotConnected => return Ok(false),
            other => other?,
        };
        self.stream.set_nodelay(true)?;
        // From now on only answers wake the loop.
        registry.reregister(&mut self.stream, self.token, Interest::READABLE)?;
        self.state = State::Idle;
        Ok(true)
    }

    /// Begins to write the request.
    pub fn send(&mut self, flight: Flight, bytes: &[u8], registry: &Registry) {
        self.state = State::Busy(flight);
        self.written = 0;
        self.write(bytes);
        if self.written < bytes.len() {
            self.watch(Interest::READABLE | Interest::WRITABLE, registry);
        }
    }

    /// Writes what is left of the request, if anything is.
    pub fn write_rest(&mut self, bytes: &[u8], registry: &Registry) {
        if matches!(self.state, State::Busy(_)) && self.written < bytes.len() {
            self.write(bytes);
            if self.written == bytes.len() {
                self.watch(Interest::READABLE, registry);
            }
        }
    }

    /// A full socket buffer waits for the next event; an error shows when reading.
    fn write(&mut self, bytes: &[u8]) {
        while self.written < bytes.len() {
            match self.stream.write(&bytes[self.written..]) {
                Ok(n) => self.written += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    }

    /// Has the system tell again of what is there to be read: it told of it once already.
    pub fn rearm(&mut self, request: &Request, registry: &Registry) {
        let whole = self.written == request.bytes.len() || self.state == State::Idle;
        let both = Interest::READABLE | Interest::WRITABLE;
        self.watch(if whole { Interest::READABLE } else { both }, registry);
    }

    fn watch(&mut self, interest: Interest, registry: &Registry) {
        // Failing here means that the descriptor is unusable: the time-out will find it.
        let _ = registry.reregister(&mut self.stream, self.token, interest);
    }

    /// Reads once.
    pub fn read(&mut self, buffer: &mut [u8]) -> Received {
        loop {
            return match self.stream.read(buffer) {
                Ok(0) => Received::Closed,
                Ok(n) => Received::Bytes(n),
                Err(e) if e.kind() == ErrorKind::WouldBlock => Received::Nothing,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(_) => Received::Closed,
            };
        }
    }

    /// Whether the whole request has been written.
    pub fn has_written(&self, request: &Request) -> bool {
        self.written == request.bytes.len()
    }

    /// Judges all bytes of the answer that have come so far; `bytes` begins with
    /// `self.partial`, or `self.partial` is empty.
    pub fn judge(&mut self, bytes: &[u8], request: &Request) -> Verdict {
        match self.parse(bytes) {
            Err(error) => Verdict::Unparseable(error),
            Ok(None) => Verdict::Incomplete,
            Ok(Some((head, body))) => {
                let body = match body {
                    Body::InPlace(range) => &bytes[range],
                    Body::Decoded => self.chunks.decoded(),
                };
                if head.status != request.status {
                    Verdict::Wrong(Failure::WrongStatus(head.status), head.close)
                } else if !request.body.matches(body) {
                    Verdict::Wrong(Failure::WrongBody, head.close)
                } else {
                    Verdict::Right { close: head.close }
                }
            }
        }
    }

    fn parse(&mut self, bytes: &[u8]) -> Result<Option<(Head, Body)>, ProtocolError> {
        if self.head.is_none() {
            // A head ends with a line. Without a new one looking again is in vain, except to
            // tell what never was a head; a long one that comes in small pieces would cost
            // the square of its length otherwise.
            let in_vain = self.looked > 0
                && bytes.len() < (2 * self.looked).min(MAX_HEAD)
                && !bytes[self.looked..].contains(&b'\n');
            if in_vain {
                return Ok(None);
            }
            self.looked = bytes.len();
            self.head = response::head(bytes)?;
        }
        let Some(head) = self.head else { return Ok(None) };
        Ok(response::body(bytes, &head, &mut self.chunks)?.map(|body| (head, body)))
    }

    /// Goes on to the next request of a pool of `pool` requests.
    pub fn next_request(&mut self, pool: usize) {
        self.state = State::Idle;
        self.partial.clear();
        (self.head, self.looked) = (None, 0);
        self.chunks.clear();
        self.request = (self.request + 1) % pool;
    }
}
