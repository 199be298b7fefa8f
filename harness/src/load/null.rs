//! The null server: canned answers, as cheap as can be. What a generator reaches against it
//! is the generator's ceiling, which no service can show to be higher.
//!
//! One thread, one event loop. It looks at a request only to find its end and whether it is
//! a POST; it is no HTTP server.

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const LISTENER: Token = Token(usize::MAX);
/// How often it looks whether somebody wants it to end.
const LOOK: Duration = Duration::from_millis(200);
const GET_ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
    Content-Length: 58\r\n\r\n{\"id\":\"1\",\"name\":\"Ada Lovelace\",\"email\":\"ada@example.org\"}";
const POST_ANSWER: &[u8] = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n\
    Content-Length: 58\r\n\r\n{\"id\":\"10001\",\"name\":\"Ada King\",\"email\":\"ada@example.org\"}";

/// See the module.
pub struct Server {
    poll: Poll,
    listener: TcpListener,
    connections: HashMap<usize, Connection>,
    next: usize,
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
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let poll = Poll::new()?;
        let mut listener = TcpListener::bind(address)?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok(Self { poll, listener, connections: HashMap::new(), next: 0 })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until `stop` is set.
    ///
    /// # Errors
    /// When the system refuses to wait for events.
    pub fn run(mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut events = Events::with_capacity(512);
        let mut buffer = vec![0; 64 * 1024];
        while !stop.load(Ordering::Relaxed) {
            match self.poll.poll(&mut events, Some(LOOK)) {
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            for event in &events {
                if event.token() == LISTENER {
                    self.accept();
                } else if let Some(connection) = self.connections.get_mut(&event.token().0)
                    && connection.serve(&mut buffer).is_err()
                {
                    self.connections.remove(&event.token().0);
                }
            }
        }
        Ok(())
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

impl Connection {
    /// Answers what has come; an error when the connection is over.
    fn serve(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        loop {
            let n = match self.stream.read(buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            };
            if self.partial.is_empty() && end(&buffer[..n]) == Some(n) {
                self.answer(buffer[0])?;
            } else {
                self.partial.extend_from_slice(&buffer[..n]);
                while let Some(end) = end(&self.partial) {
                    let first = self.partial[0];
                    self.partial.drain(..end);
                    self.answer(first)?;
                }
            }
            if n < buffer.len() {
                return Ok(());
            }
        }
    }

    /// Some hundred bytes into an empty socket buffer: they fit, or the client reads nothing.
    fn answer(&mut self, first: u8) -> io::Result<()> {
        self.stream.write_all(if first == b'P' { POST_ANSWER } else { GET_ANSWER })
    }
}

/// Where the request at the beginning of `bytes` ends, if all of it has come.
fn end(bytes: &[u8]) -> Option<usize> {
    if bytes.first() != Some(&b'P') && bytes.ends_with(b"\r\n\r\n") {
        // Nearly always; two pipelined requests would look the same, and nobody here sends them.
        return Some(bytes.len());
    }
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut request = httparse::Request::new(&mut headers);
    let Ok(httparse::Status::Complete(head)) = request.parse(bytes) else { return None };
    let length = request
        .headers
        .iter()
        .find(|h| h.name.eq_ignore_ascii_case("content-length"))
        .and_then(|h| std::str::from_utf8(h.value).ok()?.trim().parse::<usize>().ok())
        .unwrap_or(0);
    Some(head + length).filter(|&end| end <= bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canned_answers_are_what_their_length_says() {
        for answer in [GET_ANSWER, POST_ANSWER] {
            let head = crate::load::response::head(answer).expect("parses").expect("complete");
            let body = crate::load::response::body(answer, &head, &mut Vec::new());
            assert!(body.expect("framed").is_some());
        }
    }

    #[test]
    fn the_end_of_a_request() {
        assert_eq!(end(b"GET / HTTP/1.1\r\n\r\n"), Some(18));
        assert_eq!(end(b"GET / HTTP/1.1\r\n"), None);
        assert_eq!(end(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{"), None);
        assert_eq!(end(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"), Some(40));
    }
}
