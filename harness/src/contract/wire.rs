//! One blocking connection that keeps every byte it sends and receives. Requests are bytes
//! made elsewhere and may be cut into segments; every wait is bounded. It judges nothing and
//! repeats nothing, except that a refused connect is tried again a moment later.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::answer::{Answer, Parsed, parse};
use super::trace::{Trace, Way, thousands};

/// The time a service has for one answer.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Connects refused in a row after which a service counts as gone.
pub const CONNECTS: usize = 3;
/// Pause between segments: on loopback long enough that most arrive as reads of their own.
const SEGMENT_PAUSE: Duration = Duration::from_micros(150);
/// No answer of the contract is longer than the largest body a service takes, by far.
const LONGEST_ANSWER: usize = 1 << 20;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Nobody listens.
    #[error("{CONNECTS} connects in a row were refused")]
    Refused,
    /// The connect failed otherwise.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The service ended the connection first.
    #[error("the service closed the connection {}", after(.0))]
    Closed(usize),
    /// Nothing more came in time.
    #[error("no answer within {within:?}: the service was silent {}", after(.bytes))]
    Silent {
        /// What had come of an answer.
        bytes: usize,
        /// The time it had.
        within: Duration,
    },
    /// The run has to end, whatever the service does.
    #[error("{0}")]
    Over(String),
    /// What came is not HTTP.
    #[error("what came is no HTTP answer: {0}")]
    Malformed(String),
}

fn after(bytes: &usize) -> String {
    match bytes {
        0 => "before the first byte of an answer".to_owned(),
        bytes => format!("after {} bytes of an unfinished answer", thousands(*bytes)),
    }
}

/// What a connection does when nothing is asked of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Quiet {
    /// The service ended it.
    Closed,
    /// Nothing came.
    Open,
    /// Bytes came that belong to no answer.
    Surplus,
}

/// A connection to the service.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    /// Received and not yet part of an answer.
    pending: Vec<u8>,
    ended: bool,
    patience: Duration,
    trace: Trace,
}

impl Connection {
    /// Connects, `CONNECTS` times at most.
    pub fn open(address: SocketAddr) -> Result<Connection, Fault> {
        for attempt in 1..=CONNECTS {
            match TcpStream::connect_timeout(&address, ANSWER_WITHIN) {
                Ok(stream) => return Connection::over(stream),
                Err(error) if error.kind() != ErrorKind::ConnectionRefused => {
                    return Err(Fault::Connect(error.to_string()));
                }
                Err(_) if attempt < CONNECTS => sleep(Duration::from_millis(50)),
                Err(_) => {}
            }
        }
        Err(Fault::Refused)
    }

    fn over(stream: TcpStream) -> Result<Connection, Fault> {
        let connect = |error: std::io::Error| Fault::Connect(error.to_string());
        stream.set_nodelay(true).map_err(connect)?;
        stream.set_write_timeout(Some(ANSWER_WITHIN)).map_err(connect)?;
        let (pending, trace) = (Vec::new(), Trace::default());
        Ok(Connection { stream, pending, ended: false, patience: ANSWER_WITHIN, trace })
    }

    /// Waits for answers this long instead of `ANSWER_WITHIN`.
    pub fn patient(self, patience: Duration) -> Connection {
        Connection { patience, ..self }
    }

    /// Sends `bytes` in pieces that end at each of `cuts` (ascending, within `bytes`).
    /// A write that fails is no fault: a service may answer and close before it has read
    /// everything, and then its answer tells more.
    pub fn send(&mut self, bytes: &[u8], cuts: &[usize]) {
        self.trace.clear();
        self.trace.add(Way::Out, bytes);
        let mut from = 0;
        for &to in cuts.iter().chain([&bytes.len()]) {
            if from > 0 {
                sleep(SEGMENT_PAUSE);
            }
            if self.stream.write_all(&bytes[from..to]).is_err() {
                return;
            }
            from = to;
        }
    }

    /// The next answer, 1xx included. `head_only` when it answers a HEAD.
    pub fn receive(&mut self, head_only: bool) -> Result<Answer, Fault> {
        let deadline = Instant::now() + self.patience;
        loop {
            match parse(&self.pending, head_only, self.ended) {
                Parsed::Whole { answer, length } => {
                    self.pending.drain(..length);
                    return Ok(answer);
                }
                Parsed::Broken(why) => return Err(Fault::Malformed(why)),
                Parsed::Partial if self.ended => return Err(Fault::Closed(self.pending.len())),
                Parsed::Partial if self.pending.len() > LONGEST_ANSWER => {
                    return Err(Fault::Malformed("it does not end".to_owned()));
                }
                Parsed::Partial if !self.read_until(deadline) => {
                    let (bytes, within) = (self.pending.len(), self.patience);
                    return Err(Fault::Silent { bytes, within });
                }
                Parsed::Partial => {}
            }
        }
    }

    /// The next answer that is not a 1xx.
    pub fn receive_final(&mut self, head_only: bool) -> Result<Answer, Fault> {
        loop {
            let answer = self.receive(head_only)?;
            if !answer.is_interim() {
                return Ok(answer);
            }
        }
    }

    /// Bytes that have come and belong to no answer.
    pub fn surplus(&self) -> &[u8] {
        &self.pending
    }

    /// Forgets them, so that the next answer can be read.
    pub fn discard_surplus(&mut self) {
        self.pending.clear();
    }

    /// Waits whether the service closes the connection or says more.
    pub fn quiet(&mut self, within: Duration) -> Quiet {
        let deadline = Instant::now() + within;
        while self.pending.is_empty() && !self.ended && self.read_until(deadline) {}
        match (self.pending.is_empty(), self.ended) {
            (false, _) => Quiet::Surplus,
            (true, true) => Quiet::Closed,
            (true, false) => Quiet::Open,
        }
    }

    /// The exchange since the last `send`, as lines.
    pub fn trace(&self) -> Vec<String> {
        self.trace.lines()
    }

    /// Reads once; `false` when the deadline is over. A reset ends the connection like a close.
    fn read_until(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || self.stream.set_read_timeout(Some(left)).is_err() {
            return false;
        }
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.ended = true,
            Ok(length) => {
                self.pending.extend_from_slice(&buffer[..length]);
                self.trace.add(Way::In, &buffer[..length]);
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => return false,
                ErrorKind::Interrupted => {}
                _ => self.ended = true,
            },
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn serving(reply: &'static [u8], hold: bool) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // To the end of the request: a close with bytes unread would be a reset.
            let (mut request, mut byte) = (Vec::new(), [0]);
            while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
                request.push(byte[0]);
            }
            for byte in reply {
                stream.write_all(&[*byte]).unwrap();
            }
            if hold {
                sleep(Duration::from_secs(3));
            }
        });
        address
    }

    #[test]
    fn answers_come_one_by_one_and_surplus_is_seen() {
        let address = serving(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}\n",
            false,
        );
        let mut connection = Connection::open(address).unwrap();
        connection.send(b"GET / HTTP/1.1\r\n\r\n", &[1, 2, 9]);
        let answer = connection.receive_final(false).unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, b"{}".as_slice()));
        assert_eq!(connection.quiet(ANSWER_WITHIN), Quiet::Surplus);
        assert_eq!(connection.surplus(), b"\n");
        assert!(connection.trace().contains(&"> GET / HTTP/1.1".to_owned()));
        assert!(connection.trace().contains(&"< {}\\n".to_owned()));
    }

    #[test]
    fn faults_are_told_apart() {
        let fault = |reply, hold| {
            let mut connection = Connection::open(serving(reply, hold)).unwrap();
            connection.send(b"GET / HTTP/1.1\r\n\r\n", &[]);
            connection.receive(false).unwrap_err()
        };
        assert_eq!(fault(b"", false), Fault::Closed(0));
        assert_eq!(fault(b"HTTP/1.1", false), Fault::Closed(8));
        assert_eq!(fault(b"HTTP/1.1", true), Fault::Silent { bytes: 8, within: ANSWER_WITHIN });
        assert!(matches!(fault(b"hello, world", false), Fault::Malformed(_)));
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert_eq!(Connection::open(gone).unwrap_err(), Fault::Refused);
    }
}
