//! The null server: canned answers, as cheap as can be. What a generator reaches against it
//! is the generator's ceiling, which no service can show to be higher.
//!
//! One thread, one event loop. It looks at a request only to find its end and whether it is
//! a POST; it is no HTTP server. Told to, it delays each answer, or stalls once: a server of
//! known behaviour, to show what a generator makes of it.

use super::timer::Timer;
use crate::scenario::{Expected, Request};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use socket2::{Domain, Socket, Type};
use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Body of its answer to a GET.
pub const GET_BODY: &[u8] = br#"{"id":"1","name":"Ada Lovelace","email":"ada@example.org"}"#;
const LISTENER: Token = Token(usize::MAX);
const TIMER: Token = Token(usize::MAX - 1);
/// Connections that may wait to be accepted; the kernel takes less if its own limit is lower.
const BACKLOG: i32 = 4096;
/// How often it looks whether somebody wants it to end.
const LOOK: Duration = Duration::from_millis(200);
const GET_ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
    Content-Length: 58\r\n\r\n{\"id\":\"1\",\"name\":\"Ada Lovelace\",\"email\":\"ada@example.org\"}";
const POST_ANSWER: &[u8] = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n\
    Content-Length: 58\r\n\r\n{\"id\":\"10001\",\"name\":\"Ada King\",\"email\":\"ada@example.org\"}";

/// Headers of nearly every request, and of any: room for the latter takes time to prepare.
const FEW_HEADERS: usize = 32;
const MANY_HEADERS: usize = 1024;

/// `request`, with what this server answers to it.
pub fn expecting(request: &Request) -> Request {
    let status = if request.bytes.first() == Some(&b'P') { 201 } else { 200 };
    Request { status, body: Expected::Any, bytes: request.bytes.clone() }
}

/// What a server does besides answering.
#[derive(Debug, Clone, Copy, Default)]
pub struct Behaviour {
    /// From the end of a request to its answer.
    pub delay: Duration,
    /// So long after the first request, for so long, it does nothing at all.
    pub stall: Option<(Duration, Duration)>,
}

/// What a server knows of itself; shared with who started it.
#[derive(Debug, Default)]
pub struct Account {
    /// Answers that were delayed.
    pub delayed: AtomicU64,
    /// Sum of their true delays, ns.
    pub delay_ns: AtomicU64,
}

/// See the module.
pub struct Server {
    poll: Poll,
    listener: TcpListener,
    connections: HashMap<usize, Connection>,
    next: usize,
    behaviour: Behaviour,
    timer: Timer,
    /// Answers that wait: since when, on which connection, the request's first byte.
    waiting: VecDeque<(Instant, usize, u8)>,
    first: Option<Instant>,
    account: Arc<Account>,
}

struct Connection {
    stream: TcpStream,
    /// What came of a request that is not complete.
    partial: Vec<u8>,
}

impl Server {
    /// Listens.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub fn bind(address: SocketAddr, behaviour: Behaviour) -> io::Result<Self> {
        let poll = Poll::new()?;
        let timer = Timer::new(poll.registry(), TIMER)?;
        let mut listener = listen(address)?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok(Self {
            poll,
            listener,
            connections: HashMap::new(),
            next: 0,
            behaviour,
            timer,
            waiting: VecDeque::new(),
            first: None,
            account: Arc::default(),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What it will know of itself.
    pub fn account(&self) -> Arc<Account> {
        Arc::clone(&self.account)
    }

    /// Answers until `stop` is set.
    ///
    /// # Errors
    /// When the system refuses to wait for events.
    pub fn run(mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut events = Events::with_capacity(512);
        let mut buffer = vec![0; 64 * 1024];
        while !stop.load(Ordering::Relaxed) {
            let limit = self.answer_due().unwrap_or(LOOK);
            match self.poll.poll(&mut events, Some(limit.min(LOOK))) {
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept(),
                    TIMER => {}
                    Token(index) => self.serve(index, &mut buffer),
                }
            }
            self.stall();
        }
        Ok(())
    }

    fn serve(&mut self, index: usize, buffer: &mut [u8]) {
        let Some(connection) = self.connections.get_mut(&index) else { return };
        let (behaviour, waiting) = (self.behaviour, &mut self.waiting);
        let served = connection.serve(buffer, |stream, first| {
            if behaviour.delay.is_zero() {
                return answer(stream, first);
            }
            waiting.push_back((Instant::now(), index, first));
            Ok(())
        });
        if served.is_err() {
            self.connections.remove(&index);
        }
    }

    /// Sends the delayed answers that are due; gives how long it may sleep.
    fn answer_due(&mut self) -> Option<Duration> {
        while let Some(&(since, index, first)) = self.waiting.front() {
            let waited = since.elapsed();
            if waited < self.behaviour.delay {
                return self.timer.sleep(self.behaviour.delay - waited);
            }
            self.waiting.pop_front();
            if let Some(connection) = self.connections.get_mut(&index)
                && answer(&mut connection.stream, first).is_err()
            {
                self.connections.remove(&index);
            }
            self.account.delayed.fetch_add(1, Ordering::Relaxed);
            let delay_ns = since.elapsed().as_nanos() as u64;
            self.account.delay_ns.fetch_add(delay_ns, Ordering::Relaxed);
        }
        None
    }

    fn stall(&mut self) {
        let Some((after, length)) = self.behaviour.stall else { return };
        if self.connections.is_empty() {
            return;
        }
        if self.first.get_or_insert_with(Instant::now).elapsed() >= after {
            std::thread::sleep(length);
            self.behaviour.stall = None;
        }
    }

    fn accept(&mut self) {
        // An error other than "none left" is a client that has gone, or no descriptors: the
        // client then waits, and says so.
        while let Ok((mut stream, _)) = self.listener.accept() {
            let _ = stream.set_nodelay(true);
            let token = self.next;
            self.next += 1;
            if self.poll.registry().register(&mut stream, Token(token), Interest::READABLE).is_ok()
            {
                self.connections.insert(token, Connection { stream, partial: Vec::new() });
            }
        }
    }
}

/// With a queue that takes as many connections as anybody opens at a time.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    // As usual for servers: a port on which connections were closed can be had again.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(TcpListener::from_std(socket.into()))
}

impl Connection {
    /// Reads what has come and calls `answer` with the first byte of each request; an error
    /// when the connection is over.
    fn serve(
        &mut self,
        buffer: &mut [u8],
        mut answer: impl FnMut(&mut TcpStream, u8) -> io::Result<()>,
    ) -> io::Result<()> {
        loop {
            let n = match self.stream.read(buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            };
            if self.partial.is_empty() && end(&buffer[..n])? == Some(n) {
                answer(&mut self.stream, buffer[0])?;
            } else {
                self.partial.extend_from_slice(&buffer[..n]);
                while let Some(end) = end(&self.partial)? {
                    let first = self.partial[0];
                    self.partial.drain(..end);
                    answer(&mut self.stream, first)?;
                }
            }
            if n < buffer.len() {
                return Ok(());
            }
        }
    }
}

/// Some hundred bytes into an empty socket buffer: they fit, or the client reads nothing.
fn answer(stream: &mut TcpStream, first: u8) -> io::Result<()> {
    stream.write_all(if first == b'P' { POST_ANSWER } else { GET_ANSWER })
}

/// Where the request at the beginning of `bytes` ends, if all of it has come.
///
/// # Errors
/// When it is none: its sender would wait for ever.
fn end(bytes: &[u8]) -> io::Result<Option<usize>> {
    if bytes.first() != Some(&b'P') && bytes.ends_with(b"\r\n\r\n") {
        // Nearly always; two pipelined requests would look the same, and nobody here sends them.
        return Ok(Some(bytes.len()));
    }
    match end_among::<FEW_HEADERS>(bytes) {
        Err(httparse::Error::TooManyHeaders) => end_among::<MANY_HEADERS>(bytes),
        end => end,
    }
    .map_err(|e| io::Error::new(ErrorKind::InvalidData, e))
}

/// The same for a request with at most `N` headers.
fn end_among<const N: usize>(bytes: &[u8]) -> Result<Option<usize>, httparse::Error> {
    let mut headers = [httparse::EMPTY_HEADER; N];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(head) = request.parse(bytes)? else { return Ok(None) };
    let length = request
        .headers
        .iter()
        .find(|h| h.name.eq_ignore_ascii_case("content-length"))
        .and_then(|h| std::str::from_utf8(h.value).ok()?.trim().parse::<usize>().ok())
        .unwrap_or(0);
    Ok(Some(head.saturating_add(length)).filter(|&end| end <= bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::response::Chunks;

    #[test]
    fn canned_answers_are_what_their_length_says() {
        for answer in [GET_ANSWER, POST_ANSWER] {
            let head = crate::load::response::head(answer).expect("parses").expect("complete");
            let body = crate::load::response::body(answer, &head, &mut Chunks::default());
            assert!(body.expect("framed").is_some());
        }
    }

    #[test]
    fn the_end_of_a_request() {
        let end = |bytes: &[u8]| end(bytes).expect("a request");
        assert_eq!(end(b"GET / HTTP/1.1\r\n\r\n"), Some(18));
        assert_eq!(end(b"GET / HTTP/1.1\r\n"), None);
        assert_eq!(end(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{"), None);
        assert_eq!(end(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"), Some(40));
        let many = format!("POST / HTTP/1.1\r\n{}", "A: b\r\n".repeat(100));
        let wire = format!("{many}Content-Length: 2\r\n\r\n{{}}");
        assert_eq!(end(wire.as_bytes()), Some(wire.len()));
        assert_eq!(end(&wire.as_bytes()[..wire.len() - 1]), None);
        assert!(super::end(b"P\0\r\n\r\n").is_err());
    }
}
