//! The connections that one thread holds to one member, and the loop that drives them.
//!
//! One request in flight per connection. In steady state the loop allocates nothing:
//! requests are written beforehand, answers are judged where they were read.

use super::account;
use super::connection::{Connection, Flight, Received, State, Verdict};
use super::pace::{Due, Pace, Queue, Schedule};
use super::slice::{Slice, Target, Window};
use super::tally::{Failure, Tally, nanoseconds};
use super::timer::Timer;
use crate::scenario::{Expected, Request};
use mio::event::Event;
use mio::{Events, Poll, Token};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Answers taken per wake-up; more wait for the next.
const EVENTS: usize = 256;
/// One read takes any answer here whole.
const READ_BYTES: usize = 64 * 1024;
/// Connections opened at a time: fewer than any listen backlog.
const OPENING: usize = 64;
/// How often requests are checked against the time-out.
const LOOK: Duration = Duration::from_millis(50);
/// The timer's place among the connections' numbers.
const TIMER: Token = Token(usize::MAX);

/// See the module.
pub struct Fleet {
    target: Target,
    poll: Poll,
    events: Events,
    timer: Timer,
    connections: Vec<Connection>,
    dead: usize,
    in_flight: usize,
    read: Box<[u8]>,
    decoded: Vec<u8>,
    /// For each request of the pool the last answer that was parsed and judged right.
    known: Vec<Vec<u8>>,
    /// In a constant pace, what is due.
    queue: Option<Queue>,
    tally: Tally,
    slice: Slice,
    sent_in_slice: u64,
    draining: bool,
}

impl Fleet {
    /// Opens `connections`, a few at a time. `offset` is the number of connections on other
    /// threads before these, so that each begins elsewhere in the pool.
    ///
    /// # Errors
    /// When fewer can be opened; says how many were.
    pub fn open(target: &Target, connections: usize, offset: usize) -> io::Result<Self> {
        let poll = Poll::new()?;
        let timer = Timer::new(poll.registry(), TIMER)?;
        let mut fleet = Self {
            poll,
            timer,
            events: Events::with_capacity(EVENTS),
            connections: Vec::with_capacity(connections),
            dead: 0,
            in_flight: 0,
            read: vec![0; READ_BYTES].into_boxed_slice(),
            decoded: Vec::new(),
            known: vec![Vec::new(); target.pool.len()],
            queue: None,
            tally: Tally::default(),
            slice: Slice::default(),
            sent_in_slice: 0,
            draining: false,
            target: target.clone(),
        };
        while fleet.connections.len() < connections {
            let opened = fleet.connections.len();
            fleet.open_group(OPENING.min(connections - opened), offset).map_err(|e| {
                let open = fleet.connections.iter().filter(|c| c.state == State::Idle).count();
                io::Error::new(e.kind(), format!("{open} of {connections} could be opened: {e}"))
            })?;
        }
        Ok(fleet)
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
            self.wait(left)?;
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

    fn wait(&mut self, limit: Duration) -> io::Result<()> {
        match self.poll.poll(&mut self.events, Some(limit)) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {
                self.events.clear();
                Ok(())
            }
            other => other,
        }
    }

    /// Sends the requests of `pool` from now on. Only between slices.
    pub fn set_pool(&mut self, pool: Arc<[Request]>) {
        for connection in &mut self.connections {
            connection.request %= pool.len();
        }
        self.known = vec![Vec::new(); pool.len()];
        self.target.pool = pool;
    }

    /// What was counted since the last call.
    pub fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// Connections that can carry a request.
    pub fn alive(&self) -> usize {
        self.connections.len() - self.dead
    }

    /// Sends until the window ends, then waits for what is under way, at most the time-out.
    /// `part` is this thread's number and the number of threads.
    ///
    /// # Errors
    /// When the system refuses to wait for events; failures of requests are counted instead.
    pub fn run(&mut self, window: Window, pace: Pace, part: (usize, usize)) -> io::Result<Slice> {
        let before = account::Thread::now();
        self.slice = Slice::default();
        self.sent_in_slice = 0;
        self.draining = false;
        let mut window = window;
        match pace {
            Pace::Closed => {
                for index in 0..self.connections.len() {
                    if self.connections[index].state == State::Idle {
                        self.send(index, None, &window);
                    }
                }
            }
            Pace::Constant { rate, arrivals } => {
                self.tally.pace();
                let schedule = Schedule::new(rate, arrivals, part.0, part.1);
                let idle = (0..self.connections.len())
                    .filter(|&i| self.connections[i].state == State::Idle)
                    .map(|i| (i, Duration::ZERO));
                self.queue = Some(Queue::new(schedule, idle.collect()));
            }
        }
        self.drive(&mut window)?;
        if self.draining || self.alive() == 0 {
            self.abandon(&window);
        }
        self.queue = None;
        self.slice.window_ns = nanoseconds(window.until.saturating_duration_since(window.from));
        self.slice.account.add_thread(&before, &account::Thread::now());
        Ok(self.slice)
    }

    fn drive(&mut self, window: &mut Window) -> io::Result<()> {
        let mut next_look = Instant::now() + LOOK;
        let mut give_up = None;
        loop {
            let now = Instant::now();
            if now >= window.until || window.requests.is_some_and(|n| self.sent_in_slice >= n) {
                if self.in_flight == 0 && self.waiting(now, window) == 0 {
                    return Ok(());
                }
                let give_up = *give_up.get_or_insert(now + self.target.timeout);
                if now >= give_up {
                    self.draining = true;
                    return Ok(());
                }
            }
            if self.dead == self.connections.len() {
                return Ok(()); // nobody left to send on
            }
            if now >= next_look {
                self.look(now, window, give_up.is_some());
                next_look = now + LOOK;
            }
            self.send_due(now, window);
            let limit = self.next_due(now, window).unwrap_or(LOOK);
            self.wait(limit.min(next_look.saturating_duration_since(now)))?;
            self.target.throttle.into_iter().for_each(std::thread::sleep);
            self.slice.account.wakeups += 1;
            // The list is taken out so that handling an event may borrow the rest.
            let events = std::mem::replace(&mut self.events, Events::with_capacity(0));
            for event in &events {
                self.slice.account.events += 1;
                // The timer is edge-triggered and needs no answer: setting it again re-arms it.
                if event.token() != TIMER {
                    self.handle(event, window);
                }
            }
            self.events = events;
        }
    }

    /// Requests of a constant pace that are due and not sent.
    fn waiting(&mut self, now: Instant, window: &Window) -> u64 {
        let until = window.until.min(now).saturating_duration_since(window.start);
        self.queue.as_mut().map_or(0, |queue| queue.fall_due(until))
    }

    /// Sends what is due, as far as connections are idle.
    fn send_due(&mut self, now: Instant, window: &Window) {
        self.waiting(now, window);
        while let Some(queue) = &mut self.queue {
            self.slice.account.backlog = self.slice.account.backlog.max(queue.backlog());
            let Some((index, idle_since)) = queue.pair() else { return };
            // It may have been closed since it fell idle.
            if self.connections[index].state == State::Idle {
                let due = queue.take(idle_since);
                self.send(index, Some(due), window);
            }
        }
    }

    /// How long to sleep until the next request is due; sets the timer.
    fn next_due(&mut self, now: Instant, window: &Window) -> Option<Duration> {
        let due = window.start + self.queue.as_ref()?.next_due()?;
        if due < window.until {
            return self.timer.sleep(due.saturating_duration_since(now));
        }
        Some(window.until.saturating_duration_since(now))
    }

    fn handle(&mut self, event: &Event, window: &Window) {
        let index = event.token().0;
        match self.connections[index].state {
            State::Dead => {}
            State::Connecting(_) => match self.finish_connect(index) {
                Ok(true) => self.free(index, window, None),
                Ok(false) => {}
                Err(_) => self.lose(index),
            },
            State::Busy(_) | State::Idle => {
                if event.is_writable() {
                    let connection = &mut self.connections[index];
                    let bytes = &self.target.pool[connection.request].bytes;
                    connection.write_rest(bytes, self.poll.registry());
                }
                self.receive(index, event.is_read_closed(), window);
            }
        }
    }

    /// The connection can carry the next request. `answered`: when its last answer was
    /// complete.
    fn free(&mut self, index: usize, window: &Window, answered: Option<Instant>) {
        if let Some(queue) = &mut self.queue {
            let now = Instant::now();
            queue.free(index, now.saturating_duration_since(window.start));
            self.send_due(now, window);
        } else if let Some(sent) = self.send(index, None, window)
            && let Some(answered) = answered
        {
            self.slice.account.gap(sent - answered);
        }
    }

    /// Sends unless the time for that is over; gives the moment.
    fn send(&mut self, index: usize, due: Option<Due>, window: &Window) -> Option<Instant> {
        let now = Instant::now();
        let over = window.requests.is_some_and(|n| self.sent_in_slice >= n);
        // What was due in time is sent even if it is late: nothing is dropped.
        if over || (due.is_none() && now >= window.until) {
            return None;
        }
        let mut flight = Flight::unpaced(now);
        if let Some(due) = due {
            (flight.due, flight.free) = (window.start + due.at, window.start + due.free);
        }
        flight.measured = flight.due >= window.from;
        let connection = &mut self.connections[index];
        let bytes = &self.target.pool[connection.request].bytes;
        self.in_flight += 1;
        self.sent_in_slice += 1;
        self.tally.counts.sent += 1;
        connection.send(flight, bytes, self.poll.registry());
        Some(now)
    }

    /// Reads what has come. `closing`: the service has sent its last byte. An answer and the
    /// end of the connection may come with one event, after which there is no other.
    fn receive(&mut self, index: usize, closing: bool, window: &Window) {
        loop {
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
            let verdict = connection.judge(bytes, request, &mut self.decoded);
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

    /// Looks after what no event tells: requests beyond the time-out, connections that do
    /// not open, somebody's wish to end.
    fn look(&mut self, now: Instant, window: &mut Window, draining: bool) {
        if self.target.stop.as_ref().is_some_and(|s| s.load(Ordering::Relaxed)) {
            window.until = window.until.min(now);
        }
        for index in 0..self.connections.len() {
            match self.connections[index].state {
                State::Busy(flight) if !draining && now - flight.sent >= self.target.timeout => {
                    self.hang(index, Failure::TimedOut, flight, window);
                    self.reopen(index);
                }
                State::Connecting(since) if now - since >= self.target.timeout => self.lose(index),
                _ => {}
            }
        }
    }

    /// The drain is over or nobody is left: what has no answer by now never got one, and what
    /// was to be sent never will be.
    fn abandon(&mut self, window: &Window) {
        for index in 0..self.connections.len() {
            if let State::Busy(flight) = self.connections[index].state {
                self.hang(index, Failure::Unfinished, flight, window);
                self.reopen(index);
            }
        }
        self.slice.account.never_sent += self.waiting(window.until, window);
    }

    fn hang(&mut self, index: usize, failure: Failure, flight: Flight, window: &Window) {
        self.fail(index, failure, flight, window);
        self.slice.hung += 1;
    }

    fn fail(&mut self, index: usize, failure: Failure, flight: Flight, window: &Window) {
        let (connection, now) = (&mut self.connections[index], Instant::now());
        self.tally.fail(failure, nanoseconds(now - flight.due), &connection.partial);
        connection.next_request(self.target.pool.len());
        self.landed(flight, now, window);
    }

    /// A request is under way no longer.
    fn landed(&mut self, flight: Flight, now: Instant, window: &Window) {
        self.in_flight -= 1;
        let under_way = now.min(window.until).saturating_duration_since(flight.sent);
        self.slice.account.in_flight_ns += nanoseconds(under_way);
    }

    fn reopen(&mut self, index: usize) {
        self.tally.reconnects += 1;
        if self.connections[index].reopen(self.target.address, self.poll.registry()).is_err() {
            self.dead += 1;
        }
    }

    fn lose(&mut self, index: usize) {
        self.connections[index].state = State::Dead;
        self.dead += 1;
    }
}
