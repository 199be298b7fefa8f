//! Truth servers: services whose behaviour is known exactly, so that what the engine counts
//! can be predicted and compared with what the service itself counted.
//!
//! A server is a function from a [`Turn`] to what it does about it, a list of [`Act`]s;
//! those for the known kinds of trouble stand below. One blocking thread a connection, on a
//! free port. Not for measuring: it is neither fast nor lean.

use harness::scenario::{Expected, Request};
use socket2::{Domain, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// The right body.
pub const BODY: &str = "{\"id\":\"1\",\"name\":\"Ada Lovelace\"}";
/// The right answer.
pub const ANSWER: &str =
    "HTTP/1.1 200 OK\r\nContent-Length: 32\r\n\r\n{\"id\":\"1\",\"name\":\"Ada Lovelace\"}";
/// The right answer in chunks of odd sizes, with extensions, upper-case and padded sizes and
/// a trailer.
pub const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
    1\r\n{\r\n03;a=b\r\n\"id\r\n7 ; q=\"x;y\"\r\n\":\"1\",\"\r\nB\r\nname\":\"Ada \r\n\
    000a\r\nLovelace\"}\r\n0;last\r\nX-Sum: 1\r\nX-More:\r\n\r\n";

/// A request for what the servers here answer.
pub fn get() -> Request {
    Request {
        bytes: b"GET /users/1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".to_vec(),
        status: 200,
        body: Expected::Exact(BODY.as_bytes().to_vec()),
    }
}

/// A request that has arrived. All numbers begin at 0.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// Of all requests.
    pub request: u64,
    /// The number of its connection.
    pub connection: u64,
    /// Of the requests on its connection.
    pub on_connection: u64,
}

/// What a server does about a request, one after the other.
#[derive(Debug, Clone)]
pub enum Act {
    /// Writes.
    Write(Vec<u8>),
    /// Writes this again and again until the client has gone.
    Flood(Vec<u8>),
    /// Does nothing for so long.
    Wait(Duration),
    /// Closes the connection.
    Close,
    /// Does nothing until the server ends; reads nothing either.
    Hang,
}

/// What a server does about each request.
pub type Answer = dyn Fn(&Turn) -> Vec<Act> + Send + Sync;

/// How a server behaves.
pub struct Manner {
    /// What it does about a request.
    pub answer: Box<Answer>,
    /// It closes these connections as soon as they are accepted.
    pub refuses: fn(u64) -> bool,
    /// It answers as soon as the head of a request is in and reads nothing behind that.
    pub impatient: bool,
    /// After so many connections nobody listens any more; those that are open stay.
    pub listens_for: u64,
}

impl<F: Fn(&Turn) -> Vec<Act> + Send + Sync + 'static> From<F> for Manner {
    fn from(answer: F) -> Self {
        Self {
            answer: Box::new(answer),
            refuses: |_| false,
            impatient: false,
            listens_for: u64::MAX,
        }
    }
}

/// What a server counts itself.
#[derive(Default)]
struct Counts {
    accepted: AtomicU64,
    refused: AtomicU64,
    used: AtomicU64,
    requests: AtomicU64,
    closed: AtomicU64,
    pipelined: AtomicU64,
}

struct Shared {
    manner: Manner,
    counts: Counts,
    ended: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
}

/// A server that runs until it is dropped.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Mutex<Option<thread::JoinHandle<()>>>,
}

impl Server {
    /// Starts one.
    pub fn start(manner: impl Into<Manner>) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let manner = manner.into();
        if manner.impatient {
            // What it does not read must not fit into the buffers of the system.
            socket.set_recv_buffer_size(16 * 1024).expect("a small buffer");
        }
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a free port");
        socket.listen(1024).expect("listens");
        let listener = TcpListener::from(socket);
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            manner,
            counts: Counts::default(),
            ended: AtomicBool::new(false),
            streams: Mutex::default(),
        });
        let accepting = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                accept(&listener, &shared);
                drop(listener);
            })
        };
        Self { address, shared, accepting: Mutex::new(Some(accepting)) }
    }

    /// Connections accepted, also those that were then refused.
    pub fn accepted(&self) -> u64 {
        read(&self.shared.counts.accepted)
    }

    /// Connections closed before anything was read.
    pub fn refused(&self) -> u64 {
        read(&self.shared.counts.refused)
    }

    /// Connections that carried a request.
    pub fn used(&self) -> u64 {
        read(&self.shared.counts.used)
    }

    /// Requests that came whole (with an impatient server: whose head did).
    pub fn requests(&self) -> u64 {
        read(&self.shared.counts.requests)
    }

    /// Connections closed by [`Act::Close`].
    pub fn closed(&self) -> u64 {
        read(&self.shared.counts.closed)
    }

    /// Requests that came before the one before was answered.
    pub fn pipelined(&self) -> u64 {
        read(&self.shared.counts.pipelined)
    }

    /// Waits until `accepted` connections were accepted: a client learns that it is connected
    /// before the server does.
    pub fn await_accepted(&self, accepted: u64) {
        let until = Instant::now() + Duration::from_secs(5);
        while self.accepted() < accepted && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(self.accepted(), accepted, "connections accepted");
    }

    /// Ends the server: nobody listens any more, and all connections are closed.
    pub fn end(&self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        if let Some(accepting) = self.accepting.lock().expect("no panic").take() {
            // Wakes the thread that accepts.
            let _ = TcpStream::connect(self.address);
            accepting.join().expect("accepts without panic");
        }
        for stream in self.shared.streams.lock().expect("no panic").drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// A port at which exactly `accepted` connections can be opened: the queue of those that
/// nobody accepts is then full, and Linux ignores further ones.
#[cfg(target_os = "linux")]
pub fn full_queue(accepted: i32) -> (Socket, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a free port");
    // The queue is full when it holds more than its length.
    socket.listen(accepted - 1).expect("listens");
    let address = socket.local_addr().expect("an address").as_socket().expect("of IP");
    (socket, address)
}

fn read(count: &AtomicU64) -> u64 {
    count.load(Ordering::SeqCst)
}

fn add(count: &AtomicU64) -> u64 {
    count.fetch_add(1, Ordering::SeqCst)
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while read(&shared.counts.accepted) < shared.manner.listens_for
        && let Ok((stream, _)) = listener.accept()
    {
        if shared.ended.load(Ordering::SeqCst) {
            return;
        }
        let connection = add(&shared.counts.accepted);
        if (shared.manner.refuses)(connection) {
            add(&shared.counts.refused);
            continue;
        }
        stream.set_nodelay(true).expect("a TCP connection");
        let clone = stream.try_clone().expect("a descriptor");
        shared.streams.lock().expect("no panic").push(clone);
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            let mut stream = stream;
            // An error is a client that has gone.
            let _ = serve(&mut stream, connection, &shared);
            // The list of streams holds the socket open otherwise.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        });
    }
}

fn serve(stream: &mut TcpStream, connection: u64, shared: &Shared) -> io::Result<()> {
    let counts = &shared.counts;
    let mut bytes = Vec::new();
    for on_connection in 0.. {
        if !take_request(stream, &mut bytes, shared.manner.impatient)? {
            return Ok(());
        }
        if on_connection == 0 {
            add(&counts.used);
        }
        if !bytes.is_empty() && !shared.manner.impatient {
            add(&counts.pipelined);
        }
        let turn = Turn { request: add(&counts.requests), connection, on_connection };
        for act in (shared.manner.answer)(&turn) {
            match act {
                Act::Write(bytes) => stream.write_all(&bytes)?,
                Act::Flood(bytes) => {
                    while !shared.ended.load(Ordering::SeqCst) {
                        stream.write_all(&bytes)?;
                    }
                }
                Act::Wait(duration) => thread::sleep(duration),
                Act::Close => {
                    add(&counts.closed);
                    return Ok(());
                }
                Act::Hang => {
                    while !shared.ended.load(Ordering::SeqCst) {
                        thread::sleep(Duration::from_millis(5));
                    }
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// Takes a request out of what has come and comes; false when the client has closed.
fn take_request(stream: &mut TcpStream, bytes: &mut Vec<u8>, head_only: bool) -> io::Result<bool> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        if let Some(head) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            let end = head + 4 + if head_only { 0 } else { length(&bytes[..head]) };
            if bytes.len() >= end {
                bytes.drain(..end);
                return Ok(true);
            }
        }
        match stream.read(&mut buffer)? {
            0 => return Ok(false),
            n => bytes.extend_from_slice(&buffer[..n]),
        }
    }
}

fn length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let value = head.lines().find_map(|l| l.strip_prefix("content-length:"));
    value.map_or(0, |v| v.trim().parse().expect("a length"))
}

// What servers do. `every` is the number of requests of which the last is treated ill.

/// The right answer at once.
pub fn right(_: &Turn) -> Vec<Act> {
    vec![write(ANSWER)]
}

/// Writes `text`.
pub fn write(text: impl Into<String>) -> Act {
    Act::Write(text.into().into_bytes())
}

/// The right answer after `delay`.
pub fn delayed(delay: Duration) -> impl Fn(&Turn) -> Vec<Act> {
    move |_| vec![Act::Wait(delay), write(ANSWER)]
}

/// The right answer after 1 ms; but from `after` on, counted from the first request, nothing
/// for `length`.
pub fn stall(after: Duration, length: Duration) -> impl Fn(&Turn) -> Vec<Act> {
    let began = OnceLock::new();
    move |_| {
        let since = began.get_or_init(Instant::now).elapsed();
        let wait =
            if since < after { Duration::ZERO } else { (after + length).saturating_sub(since) };
        vec![Act::Wait(wait.max(Duration::from_millis(1))), write(ANSWER)]
    }
}

/// `n` right answers, then none.
pub fn hang_from(n: u64) -> impl Fn(&Turn) -> Vec<Act> {
    move |turn| if turn.request < n { right(turn) } else { vec![Act::Hang] }
}

/// The first answer on the first connection takes `delay`.
pub fn slow_first(delay: Duration) -> impl Fn(&Turn) -> Vec<Act> {
    move |turn| match (turn.connection, turn.on_connection) {
        (0, 0) => vec![Act::Wait(delay), write(ANSWER)],
        _ => right(turn),
    }
}

/// Other than right with every `every`th request.
pub fn instead(
    every: u64,
    wrong: impl Fn(u64) -> Vec<Act> + Send + Sync,
) -> impl Fn(&Turn) -> Vec<Act> {
    move |turn| match (turn.request + 1) % every {
        0 => wrong(turn.request / every),
        _ => right(turn),
    }
}

/// Closes each connection behind every `every`th answer on it; `announced` says so in the
/// answer.
pub fn close_every(every: u64, announced: bool) -> impl Fn(&Turn) -> Vec<Act> {
    move |turn| match (turn.on_connection + 1) % every {
        0 if announced => vec![write(with_header("Connection: close")), Act::Close],
        0 => vec![write(ANSWER), Act::Close],
        _ => right(turn),
    }
}

/// The answer with a header more.
pub fn with_header(header: &str) -> String {
    ANSWER.replacen("\r\n", &format!("\r\n{header}\r\n"), 1)
}

/// Writes `wire` in two parts, so far apart that they are read apart; the first request is
/// answered with 1 byte and the rest, the next one with 2 bytes and the rest, and so on.
pub fn split(wire: &'static str) -> impl Fn(&Turn) -> Vec<Act> {
    move |turn| {
        let at = 1 + turn.request as usize % (wire.len() - 1);
        vec![write(&wire[..at]), Act::Wait(Duration::from_millis(2)), write(&wire[at..])]
    }
}

/// Writes `wire` byte by byte.
pub fn trickle(wire: &'static str) -> impl Fn(&Turn) -> Vec<Act> {
    move |_| wire.bytes().map(|b| Act::Write(vec![b])).collect()
}
