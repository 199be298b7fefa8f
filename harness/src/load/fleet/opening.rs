//! Opens connections, the first time and anew, and knows for how long they were open.

use super::{Connection, EVENTS, Fleet, LOOK, READ_BYTES, State, TIMER};
use crate::load::slice::{Slice, Target, Window};
use crate::load::tally::{Tally, nanoseconds};
use crate::load::timer::Timer;
use mio::{Events, Poll};
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

/// Connections opened at a time, and the pause before the next ones. The kernel completes a
/// connection before its service accepts it and keeps it in the listen backlog meanwhile,
/// often of 128. What finds that full is tried again a second later, which would be the
/// generator's doing: the pause gives the service time to accept.
const GROUP: usize = 16;
const BETWEEN_GROUPS: Duration = Duration::from_millis(1);

/// Fewer connections could be opened than were asked for.
#[derive(Debug)]
pub struct OpenError {
    /// So many were.
    pub open: usize,
    /// Why not more. `Interrupted`: somebody asked to end.
    pub error: io::Error,
}

impl OpenError {
    fn nothing(error: io::Error) -> Self {
        Self { open: 0, error }
    }
}

impl Fleet {
    /// Opens `connections`, a few at a time. `offset` is the number of connections on other
    /// threads before these, so that each begins elsewhere in the pool.
    ///
    /// # Errors
    /// When fewer can be opened; says how many were.
    pub fn open(target: &Target, connections: usize, offset: usize) -> Result<Self, OpenError> {
        let mut fleet = Self::empty(target, connections).map_err(OpenError::nothing)?;
        while fleet.connections.len() < connections {
            let opened = fleet.connections.len();
            if opened > 0 {
                std::thread::sleep(BETWEEN_GROUPS);
            }
            fleet.open_group(GROUP.min(connections - opened), offset).map_err(|error| {
                let open = fleet.connections.iter().filter(|c| c.state == State::Idle).count();
                OpenError { open, error }
            })?;
        }
        Ok(fleet)
    }

    fn empty(target: &Target, connections: usize) -> io::Result<Self> {
        let poll = Poll::new()?;
        let timer = Timer::new(poll.registry(), TIMER)?;
        Ok(Self {
            poll,
            timer,
            events: Events::with_capacity(EVENTS),
            connections: Vec::with_capacity(connections),
            dead: 0,
            in_flight: 0,
            read: vec![0; READ_BYTES].into_boxed_slice(),
            known: vec![Vec::new(); target.pool.len()],
            queue: None,
            tally: Tally::default(),
            slice: Slice::default(),
            sent_in_slice: 0,
            draining: false,
            absent_ns: 0,
            stopped: false,
            target: target.clone(),
        })
    }

    fn open_group(&mut self, group: usize, offset: usize) -> io::Result<()> {
        for _ in 0..group {
            let index = self.connections.len();
            // Odd, and so prime to the pool's size: connections spread over the pool.
            let request = (offset + index) * 97 % self.target.pool.len();
            let registry = self.poll.registry();
            self.connections.push(Connection::open(self.target.address, index, request, registry)?);
        }
        let until = Instant::now() + self.target.open_timeout;
        while self.connections.iter().any(|c| matches!(c.state, State::Connecting(_))) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::new(
                    ErrorKind::TimedOut,
                    "the rest was not accepted in time",
                ));
            }
            if self.is_asked_to_end() {
                return Err(ErrorKind::Interrupted.into());
            }
            self.wait(left.min(LOOK))?;
            let events = std::mem::replace(&mut self.events, Events::with_capacity(0));
            for event in events.iter().filter(|e| e.token() != TIMER) {
                self.finish_connect(event.token().0)?;
            }
            self.events = events;
        }
        Ok(())
    }

    fn finish_connect(&mut self, index: usize) -> io::Result<bool> {
        let connection = &mut self.connections[index];
        let State::Connecting(since) = connection.state else { return Ok(false) };
        let open = connection.finish_connect(self.poll.registry())?;
        if open {
            self.tally.connected(since.elapsed());
        }
        Ok(open)
    }

    /// Replaces a connection that is of no more use.
    pub(super) fn reopen(&mut self, index: usize) {
        if self.connections[index].reopen(self.target.address, self.poll.registry()).is_err() {
            self.lose(index);
        }
    }

    pub(super) fn finish_reopening(&mut self, index: usize, window: &Window) {
        let State::Connecting(since) = self.connections[index].state else { return };
        match self.finish_connect(index) {
            Ok(true) => {
                self.tally.reconnects += 1;
                self.absent(since, Instant::now(), window);
                self.free(index, window, None);
            }
            Ok(false) => {}
            Err(_) => self.lose(index),
        }
    }

    /// Gives a connection up. It counts as missing since it was last open.
    pub(super) fn lose(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let since = match connection.state {
            State::Connecting(since) | State::Dead(since) => since,
            State::Idle | State::Busy(_) => Instant::now(),
        };
        connection.state = State::Dead(since);
        self.dead += 1;
        self.tally.lost += 1;
    }

    /// A connection was not there between these moments, as far as they lie in the window.
    fn absent(&mut self, since: Instant, until: Instant, window: &Window) {
        let missing = until.min(window.until).saturating_duration_since(since.max(window.start));
        self.absent_ns += nanoseconds(missing);
    }

    /// Sums up for how long connections were open.
    pub(super) fn account_for_connections(&mut self, window: &Window) {
        for index in 0..self.connections.len() {
            if let State::Connecting(since) | State::Dead(since) = self.connections[index].state {
                self.absent(since, window.until, window);
            }
        }
        let length_ns = nanoseconds(window.until.saturating_duration_since(window.start));
        let all_ns = length_ns.saturating_mul(self.connections.len() as u64);
        self.slice.account.connected_ns = all_ns.saturating_sub(self.absent_ns);
        self.absent_ns = 0;
    }

    /// After the last slice: waits for connections that are being opened anew, at most
    /// `patience` for all. What is not open by then is lost.
    ///
    /// # Errors
    /// When the system refuses to wait for events.
    pub fn settle(&mut self, patience: Duration) -> io::Result<()> {
        let now = Instant::now();
        let over = Window { start: now, from: now, until: now, requests: Some(0) };
        loop {
            let left = (now + patience).saturating_duration_since(Instant::now());
            let is_opening = |c: &Connection| matches!(c.state, State::Connecting(_));
            if left.is_zero() || !self.connections.iter().any(is_opening) {
                break;
            }
            self.wait(left)?;
            self.handle_events(&over);
        }
        for index in 0..self.connections.len() {
            if matches!(self.connections[index].state, State::Connecting(_)) {
                self.lose(index);
            }
        }
        Ok(())
    }
}
