//! The connections that one thread holds to one member, and the loop that drives them.
//!
//! One request in flight per connection. In steady state the loop allocates nothing:
//! requests are written beforehand, answers are judged where they were read.

mod answers;
mod opening;

pub use opening::OpenError;

use super::account;
use super::connection::{Connection, Flight, State};
use super::pace::{Due, Pace, Queue, Schedule};
use super::slice::{Slice, Target, Window};
use super::tally::{Failure, Tally, nanoseconds};
use super::timer::Timer;
use crate::scenario::Request;
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
    /// For each request of the pool the last answer that was parsed and judged right.
    known: Vec<Vec<u8>>,
    /// In a constant pace, what is due.
    queue: Option<Queue>,
    tally: Tally,
    slice: Slice,
    sent_in_slice: u64,
    draining: bool,
    /// Time in this window for which connections were not open, of those that are again, ns.
    absent_ns: u64,
    /// Somebody asked to end.
    stopped: bool,
}

impl Fleet {
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

    fn is_asked_to_end(&self) -> bool {
        self.target.stop.as_ref().is_some_and(|s| s.load(Ordering::Relaxed))
    }

    /// Connections that can carry a request.
    pub fn alive(&self) -> usize {
        self.connections.len() - self.dead
    }

    /// Sends until the window ends, then waits for what is under way, at most the time-out.
    /// `part` is this thread's number and the number of threads. `window_over` is called
    /// once, when nothing more falls due; it must be quick.
    ///
    /// # Errors
    /// When the system refuses to wait for events; failures of requests are counted instead.
    pub fn run(
        &mut self,
        mut window: Window,
        pace: Pace,
        part: (usize, usize),
        window_over: &mut dyn FnMut(),
    ) -> io::Result<Slice> {
        let clock = account::Clock::of_this_thread();
        let began = clock.now();
        let asked = window.until;
        self.slice = Slice::default();
        self.sent_in_slice = 0;
        (self.draining, self.stopped) = (false, false);
        self.start(pace, part, &window);
        let mut at_end = None;
        let mut over = || {
            at_end.get_or_insert_with(|| {
                window_over();
                clock.now()
            });
        };
        self.drive(&mut window, &mut over)?;
        over();
        if self.draining || self.stopped || self.alive() == 0 {
            self.abandon(&window, if self.stopped { window.until } else { asked });
        }
        self.queue = None;
        self.slice.window_ns = nanoseconds(window.until.saturating_duration_since(window.from));
        self.account_for_connections(&window);
        let ended = clock.now();
        self.slice.account.add_thread(&began, &at_end.unwrap_or(ended), &ended);
        Ok(self.slice)
    }

    /// Sends the first requests of a closed pace, or makes the schedule of a constant one.
    fn start(&mut self, pace: Pace, part: (usize, usize), window: &Window) {
        let idle: Vec<usize> = (0..self.connections.len())
            .filter(|&i| self.connections[i].state == State::Idle)
            .collect();
        match pace {
            Pace::Closed => {
                for index in idle {
                    self.send(index, None, window);
                }
            }
            Pace::Constant { rate, arrivals } => {
                self.tally.pace();
                let schedule = Schedule::new(rate, arrivals, part.0, part.1);
                let idle = idle.into_iter().map(|i| (i, Duration::ZERO)).collect();
                self.queue = Some(Queue::new(schedule, idle));
            }
        }
    }

    fn drive(&mut self, window: &mut Window, over: &mut dyn FnMut()) -> io::Result<()> {
        // At once: somebody may have asked to end before.
        let mut next_look = Instant::now();
        let mut give_up = None;
        loop {
            let now = Instant::now();
            if now >= next_look {
                self.look(now, window, give_up.is_some());
                next_look = now + LOOK;
            }
            if now >= window.until || window.requests.is_some_and(|n| self.sent_in_slice >= n) {
                let give_up = *give_up.get_or_insert_with(|| {
                    over();
                    now + self.target.timeout
                });
                if self.in_flight == 0 && (self.stopped || self.waiting(now, window) == 0) {
                    return Ok(());
                }
                if now >= give_up {
                    self.draining = true;
                    return Ok(());
                }
            }
            if self.dead == self.connections.len() {
                // Nobody is left to send on: there the window ends.
                window.until = window.until.min(now);
                return Ok(());
            }
            self.send_due(now, window);
            let limit = self.next_due(now, window).unwrap_or(LOOK);
            self.wait(limit.min(next_look.saturating_duration_since(now)))?;
            self.target.throttle.into_iter().for_each(std::thread::sleep);
            self.slice.account.wakeups += 1;
            self.handle_events(window);
        }
    }

    fn handle_events(&mut self, window: &Window) {
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

    /// Requests of a constant pace that are due and not sent.
    fn waiting(&mut self, now: Instant, window: &Window) -> u64 {
        let until = window.until.min(now).saturating_duration_since(window.start);
        self.queue.as_mut().map_or(0, |queue| queue.fall_due(until))
    }

    /// Sends what is due, as far as connections are idle.
    fn send_due(&mut self, now: Instant, window: &Window) {
        self.waiting(now, window);
        if self.stopped {
            return;
        }
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

    /// How long to sleep until the next request is due; sets the timer. `None` when an answer
    /// or the next look comes first: nothing falls due any more, or no connection is free.
    fn next_due(&mut self, now: Instant, window: &Window) -> Option<Duration> {
        if now >= window.until {
            return None;
        }
        let due = window.start + self.queue.as_ref()?.next_due()?;
        if due < window.until {
            return self.timer.sleep(due.saturating_duration_since(now));
        }
        Some(window.until - now)
    }

    fn handle(&mut self, event: &Event, window: &Window) {
        let index = event.token().0;
        match self.connections[index].state {
            State::Dead(_) => {}
            State::Connecting(_) => self.finish_reopening(index, window),
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

    /// Looks after what no event tells: requests beyond the time-out, connections that do
    /// not open, somebody's wish to end.
    fn look(&mut self, now: Instant, window: &mut Window, draining: bool) {
        if self.is_asked_to_end() {
            window.until = window.until.min(now);
            self.stopped = true;
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
    /// was to be sent until `asked` never will be.
    fn abandon(&mut self, window: &Window, asked: Instant) {
        for index in 0..self.connections.len() {
            if let State::Busy(flight) = self.connections[index].state {
                self.hang(index, Failure::Unfinished, flight, window);
                self.reopen(index);
            }
        }
        let whole = Window { until: asked, ..*window };
        self.slice.account.never_sent += self.waiting(asked, &whole);
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
}
