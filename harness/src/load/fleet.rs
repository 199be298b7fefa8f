//! The connections that one thread holds to one member, and the loop that drives them.
//!
//! One request in flight per connection; an answer sends the next request at once (closed
//! pace). In steady state the loop allocates nothing: requests are written beforehand,
//! answers are parsed where they were read.

use super::response::{self, Body, Head, ProtocolError};
use super::tally::{Failure, Tally};
use crate::scenario::Request;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Answers read per wake-up; more wait for the next.
const EVENTS: usize = 256;
/// One read takes any answer here whole.
const READ_BYTES: usize = 64 * 1024;
/// Connections opened at a time: fewer than any listen backlog.
const OPENING: usize = 64;
/// How often requests are checked against the time-out.
const TIMEOUT_LOOK: Duration = Duration::from_millis(50);

/// When a slice sends and what of it counts. All instants are on the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Requests sent from here on count for latency, answers for throughput.
    pub from: Instant,
    /// Until here.
    pub until: Instant,
    /// Stop sending after so many requests, whatever the time.
    pub requests: Option<u64>,
}

/// What a slice yielded, besides the tally.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slice {
    /// Right answers that were complete within the window.
    pub in_window: u64,
    /// Right answers, within the window or not.
    pub ok: u64,
    /// CPU time of the generator, ns, where the system tells.
    pub generator_cpu_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Connecting,
    Idle,
    /// A request is under way.
    Busy {
        sent_at: Instant,
        written: usize,
        measured: bool,
    },
    /// Could not be opened again; stays out of the game.
    Dead,
}

struct Connection {
    stream: TcpStream,
    state: State,
    /// The request under way, or the next one: an index into the pool.
    request: usize,
    /// The beginning of an answer of which more is to come.
    partial: Vec<u8>,
    head: Option<Head>,
}

/// See the module.
pub struct Fleet {
    address: SocketAddr,
    pool: Arc<[Request]>,
    timeout: Duration,
    poll: Poll,
    events: Events,
    connections: Vec<Connection>,
    in_flight: usize,
    read: Box<[u8]>,
    decoded: Vec<u8>,
    tally: Tally,
    slice: Slice,
    sent_in_slice: u64,
}

impl Fleet {
    /// Opens `connections` to `address`, a few at a time. `offset` is the number of
    /// connections on other threads before these, so that each begins elsewhere in the pool.
    ///
    /// # Errors
    /// When the system refuses, or the service takes longer than `open_timeout` to accept a
    /// few.
    pub fn open(
        address: SocketAddr,
        connections: usize,
        offset: usize,
        pool: Arc<[Request]>,
        open_timeout: Duration,
        request_timeout: Duration,
    ) -> io::Result<Self> {
        let mut fleet = Self {
            address,
            timeout: request_timeout,
            poll: Poll::new()?,
            events: Events::with_capacity(EVENTS),
            connections: Vec::with_capacity(connections),
            in_flight: 0,
            read: vec![0; READ_BYTES].into_boxed_slice(),
            decoded: Vec::new(),
            tally: Tally::default(),
            slice: Slice::default(),
            sent_in_slice: 0,
            pool,
        };
        while fleet.connections.len() < connections {
            let group = OPENING.min(connections - fleet.connections.len());
            for _ in 0..group {
                let index = fleet.connections.len();
                let stream = fleet.connect(index)?;
                // Odd, and so prime to the pool's size: connections spread over the pool.
                let request = (offset + index) * 97 % fleet.pool.len();
                fleet.connections.push(Connection {
                    stream,
                    state: State::Connecting,
                    request,
                    partial: Vec::new(),
                    head: None,
                });
            }
            fleet.await_connected(open_timeout)?;
        }
        Ok(fleet)
    }

    fn connect(&self, index: usize) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(self.address)?;
        self.poll.registry().register(
            &mut stream,
            Token(index),
            Interest::READABLE | Interest::WRITABLE,
        )?;
        Ok(stream)
    }

    fn await_connected(&mut self, limit: Duration) -> io::Result<()> {
        let until = Instant::now() + limit;
        while let Some(waiting) = self.connections.iter().position(|c| c.state == State::Connecting)
        {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::new(
                    ErrorKind::TimedOut,
                    format!("connection {} was not accepted in time", waiting + 1),
                ));
            }
            self.wait(left)?;
            let ready: Vec<usize> = self.events.iter().map(|e| e.token().0).collect();
            for index in ready {
                self.finish_connect(index)?;
            }
        }
        Ok(())
    }

    /// Whether the connection is established now; an error when it failed.
    fn finish_connect(&mut self, index: usize) -> io::Result<bool> {
        let connection = &mut self.connections[index];
        if connection.state != State::Connecting {
            return Ok(true);
        }
        if let Some(error) = connection.stream.take_error()? {
            return Err(error);
        }
        match connection.stream.peer_addr() {
            Ok(_) => {
                connection.stream.set_nodelay(true)?;
                connection.state = State::Idle;
                // Only answers wake the loop from now on.
                self.poll.registry().reregister(
                    &mut connection.stream,
                    Token(index),
                    Interest::READABLE,
                )?;
                Ok(true)
            }
            Err(e) if e.kind() == ErrorKind::NotConnected => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn wait(&mut self, limit: Duration) -> io::Result<()> {
        match self.poll.poll(&mut self.events, Some(limit)) {
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(()),
            other => other,
        }
    }

    /// Sends the requests of `pool` from now on. Only between slices.
    pub fn set_pool(&mut self, pool: Arc<[Request]>) {
        for connection in &mut self.connections {
            connection.request %= pool.len();
        }
        self.pool = pool;
    }

    /// What was counted since the last call.
    pub fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// Connections that can carry a request.
    pub fn alive(&self) -> usize {
        self.connections.iter().filter(|c| c.state != State::Dead).count()
    }

    /// Sends on every connection until the window ends, then waits for what is under way,
    /// at most the time-out.
    ///
    /// # Errors
    /// When the system refuses to wait for events; failures of requests are counted instead.
    pub fn run(&mut self, window: Window) -> io::Result<Slice> {
        let cpu = thread_cpu_ns();
        self.slice = Slice::default();
        self.sent_in_slice = 0;
        for index in 0..self.connections.len() {
            if self.connections[index].state == State::Idle {
                self.send(index, &window);
            }
        }
        self.drive(&window)?;
        self.slice.generator_cpu_ns =
            thread_cpu_ns().zip(cpu).map(|(now, then)| now.saturating_sub(then));
        Ok(self.slice)
    }

    fn drive(&mut self, window: &Window) -> io::Result<()> {
        let mut next_look = Instant::now() + TIMEOUT_LOOK;
        loop {
            let now = Instant::now();
            if now >= window.until || window.requests.is_some_and(|n| self.sent_in_slice >= n) {
                if self.in_flight == 0 {
                    return Ok(());
                }
            } else if self.alive() == 0 {
                return Ok(()); // nobody left to send on
            }
            if now >= next_look {
                self.expire(now);
                next_look = now + TIMEOUT_LOOK;
                continue;
            }
            self.wait(next_look - now)?;
            // The list is taken out so that handling an event may borrow the rest.
            let events = std::mem::replace(&mut self.events, Events::with_capacity(0));
            for event in &events {
                self.handle(event.token().0, event.is_writable(), window);
            }
            self.events = events;
        }
    }

    fn handle(&mut self, index: usize, writable: bool, window: &Window) {
        match self.connections[index].state {
            State::Dead => {}
            State::Connecting => match self.finish_connect(index) {
                Ok(true) => self.send(index, window),
                Ok(false) => {}
                Err(_) => self.connections[index].state = State::Dead,
            },
            State::Busy { .. } | State::Idle => {
                if writable {
                    self.write_rest(index);
                }
                self.read_answers(index, window);
            }
        }
    }

    fn send(&mut self, index: usize, window: &Window) {
        let now = Instant::now();
        if now >= window.until || window.requests.is_some_and(|n| self.sent_in_slice >= n) {
            return;
        }
        let connection = &mut self.connections[index];
        connection.state = State::Busy { sent_at: now, written: 0, measured: now >= window.from };
        self.in_flight += 1;
        self.sent_in_slice += 1;
        self.tally.counts.sent += 1;
        self.write_rest(index);
    }

    /// Writes what is left of the request. A full socket buffer waits for the next event;
    /// an error shows as a close when reading.
    fn write_rest(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let State::Busy { written, .. } = &mut connection.state else { return };
        let bytes = &self.pool[connection.request].bytes;
        let begun = *written;
        while *written < bytes.len() {
            match connection.stream.write(&bytes[*written..]) {
                Ok(n) => *written += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let complete = *written == bytes.len();
        if complete && begun == 0 {
            return; // nearly always
        }
        let interest =
            if complete { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE };
        // Failing here means that the descriptor is unusable: the time-out will find it.
        let _ = self.poll.registry().reregister(&mut connection.stream, Token(index), interest);
    }

    fn read_answers(&mut self, index: usize, window: &Window) {
        loop {
            let read = match self.connections[index].stream.read(&mut self.read) {
                Ok(0) => return self.closed(index),
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return self.closed(index),
            };
            let open = self.take(index, read, window);
            // A read that did not fill the buffer has emptied the socket (epoll(7)): what
            // comes later raises a new event.
            if !open || read < self.read.len() {
                return;
            }
        }
    }

    /// Takes `n` bytes that were read; false when the connection was replaced.
    fn take(&mut self, index: usize, n: usize, window: &Window) -> bool {
        let now = Instant::now();
        let connection = &mut self.connections[index];
        let State::Busy { sent_at, measured, .. } = connection.state else {
            // Bytes that nobody asked for. No request can be blamed; do not go on with it.
            self.reopen(index);
            return false;
        };
        let latency_ns = nanoseconds(now - sent_at);
        let whole = connection.partial.is_empty();
        if !whole {
            connection.partial.extend_from_slice(&self.read[..n]);
        }
        let bytes = if whole { &self.read[..n] } else { &connection.partial[..] };
        let request = &self.pool[connection.request];
        let verdict = judge(bytes, &mut connection.head, &mut self.decoded, request);
        let close = connection.head.is_some_and(|h| h.close);
        match verdict {
            Ok(None) => {
                if whole {
                    connection.partial.extend_from_slice(&self.read[..n]);
                }
                return true;
            }
            Ok(Some(None)) => {
                self.tally.succeed(latency_ns, measured);
                self.slice.ok += 1;
                if now >= window.from && now < window.until {
                    self.slice.in_window += 1;
                }
            }
            Ok(Some(Some(failure))) => self.tally.fail(failure, latency_ns, bytes),
            Err(_) => self.tally.fail(Failure::ProtocolError, latency_ns, bytes),
        }
        self.in_flight -= 1;
        let connection = &mut self.connections[index];
        connection.state = State::Idle;
        connection.partial.clear();
        connection.head = None;
        connection.request = (connection.request + 1) % self.pool.len();
        if verdict.is_err() {
            self.reopen(index);
            return false;
        }
        if close {
            self.tally.server_closes += 1;
            self.reopen(index);
            return false;
        }
        self.send(index, window);
        true
    }

    /// The service closed the connection, or it broke.
    fn closed(&mut self, index: usize) {
        let connection = &self.connections[index];
        match connection.state {
            State::Busy { sent_at, .. } => {
                let failure = if connection.partial.is_empty() {
                    Failure::StaleClose
                } else {
                    Failure::Truncated
                };
                self.tally.fail(failure, nanoseconds(sent_at.elapsed()), &connection.partial);
                self.in_flight -= 1;
            }
            _ => self.tally.server_closes += 1,
        }
        self.reopen(index);
    }

    /// Counts requests that are older than the time-out and replaces their connections.
    fn expire(&mut self, now: Instant) {
        for index in 0..self.connections.len() {
            let connection = &self.connections[index];
            let State::Busy { sent_at, .. } = connection.state else { continue };
            let age = now - sent_at;
            if age >= self.timeout {
                self.tally.fail(Failure::TimedOut, nanoseconds(age), &connection.partial);
                self.in_flight -= 1;
                self.reopen(index);
            }
        }
    }

    fn reopen(&mut self, index: usize) {
        self.tally.reconnects += 1;
        let connection = &mut self.connections[index];
        connection.partial.clear();
        connection.head = None;
        // Dropping the old stream ends its registration.
        let opened = self.connect(index);
        let connection = &mut self.connections[index];
        match opened {
            Ok(stream) => {
                connection.stream = stream;
                connection.state = State::Connecting;
            }
            Err(_) => connection.state = State::Dead,
        }
    }
}

/// `Ok(None)`: more bytes are needed. `Ok(Some(None))`: a right answer.
fn judge(
    bytes: &[u8],
    head: &mut Option<Head>,
    decoded: &mut Vec<u8>,
    request: &Request,
) -> Result<Option<Option<Failure>>, ProtocolError> {
    if head.is_none() {
        *head = response::head(bytes)?;
    }
    let Some(head) = head else { return Ok(None) };
    let Some(body) = response::body(bytes, head, decoded)? else { return Ok(None) };
    let body = match body {
        Body::InPlace(range) => &bytes[range],
        Body::Decoded => decoded,
    };
    Ok(Some(if head.status != request.status {
        Some(Failure::WrongStatus(head.status))
    } else if !request.body.matches(body) {
        Some(Failure::WrongBody)
    } else {
        None
    }))
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// CPU time of the calling thread.
fn thread_cpu_ns() -> Option<u64> {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID).ok()?;
    Some(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}
