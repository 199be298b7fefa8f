//! The floor: an epoll loop that sends, receives and looks at nothing. What it spends on a
//! request is system calls and the kernel; no epoll loop with one request under way per
//! connection that we know of spends less. The yardstick of `harness calibrate`.
#![cfg(target_os = "linux")]

use super::account::{Account, Clock};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Connections without a parser, a clock for each request, or a count of failures.
pub struct Floor {
    epoll: Epoll,
    streams: Vec<TcpStream>,
    request: Vec<u8>,
}

impl Floor {
    /// Opens `connections`.
    ///
    /// # Errors
    /// When one cannot be opened.
    pub fn open(address: SocketAddr, connections: usize, request: &[u8]) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let mut streams = Vec::with_capacity(connections);
        for index in 0..connections {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
            epoll.add(&stream, EpollEvent::new(flags, index as u64))?;
            streams.push(stream);
        }
        Ok(Self { epoll, streams, request: request.to_vec() })
    }

    /// Keeps every connection busy for `window`, then awaits what is under way. Gives the
    /// number of answers (reads that yielded something) and what it spent.
    ///
    /// # Errors
    /// When a connection breaks or a service stops answering.
    pub fn slice(&mut self, window: Duration) -> io::Result<(u64, Account)> {
        let clock = Clock::of_this_thread();
        let before = clock.now();
        let until = Instant::now() + window;
        let mut events = vec![EpollEvent::empty(); 256];
        let mut buffer = vec![0; 64 * 1024];
        let mut answers = 0;
        for stream in &mut self.streams {
            stream.write_all(&self.request)?;
        }
        let mut in_flight = self.streams.len();
        while in_flight > 0 {
            let n = self.epoll.wait(
                &mut events,
                EpollTimeout::try_from(Duration::from_secs(5)).unwrap_or(EpollTimeout::NONE),
            )?;
            if n == 0 {
                return Err(io::Error::new(ErrorKind::TimedOut, "no answer for 5 s"));
            }
            let over = Instant::now() >= until;
            for event in &events[..n] {
                let stream = &mut self.streams[event.data() as usize];
                if stream.read(&mut buffer)? == 0 {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                answers += 1;
                if over {
                    in_flight -= 1;
                } else {
                    stream.write_all(&self.request)?;
                }
            }
        }
        let mut account = Account::default();
        let after = clock.now();
        account.add_thread(&before, &after, &after);
        Ok((answers, account))
    }
}
