//! Runs the checks in order against one address and counts. Goes on after a failure, over a
//! fresh connection; stops when nothing answers any more. Idle connections are opened at the
//! beginning and tried at the end, so that waiting for them costs no time of its own.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use super::case::{After, Case, Contract, Expect, get};
use super::judge::{Miss, Rule, Rules};
use super::observe;
use super::pattern::{Pattern, Users, json};
use super::sequences::{Check, checks};
use super::wire::{ANSWER_WITHIN, CONNECTS, Connection, Fault, Quiet};
use super::{Failure, Observation, Report, Target};

/// How long the idle connections are left alone: more than the 5 s after which some
/// runtimes close them by default.
pub const IDLE: Duration = Duration::from_millis(6_500);
/// Checks in a row without an answer after which a plain request decides.
const SILENT_CHECKS: usize = 3;
/// A run ends after this, whatever the service does.
const LONGEST_RUN: Duration = Duration::from_secs(120);

/// What a check needs.
pub struct Context<'a> {
    /// The service.
    pub target: &'a Target<'a>,
    /// The seeded users by id.
    pub users: &'a Users<'a>,
    /// Rules broken so far.
    pub rules: Rules,
    /// The check under way.
    pub name: String,
    /// When the run ends at the latest.
    pub until: Instant,
}

impl Context<'_> {
    /// A new connection.
    pub fn open(&self) -> Result<Connection, Miss> {
        self.check_over()?;
        Ok(Connection::open(self.target.address)?)
    }

    /// A slow service must not keep a run going for ever, nor a person waiting.
    fn check_over(&self) -> Result<(), Fault> {
        if self.target.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(Fault::Over("interrupted".to_owned()));
        }
        if Instant::now() > self.until {
            let seconds = LONGEST_RUN.as_secs();
            return Err(Fault::Over(format!("the run took more than {seconds} s")));
        }
        Ok(())
    }

    /// Sends a request and judges its answer.
    pub fn ask(
        &mut self,
        connection: &mut Connection,
        request: &[u8],
        status: u16,
        pattern: &Pattern,
    ) -> Result<Option<u64>, Miss> {
        self.check_over()?;
        connection.send(request, &[]);
        let answer =
            connection.receive_final(false).map_err(|fault| Miss::fault(fault, connection))?;
        self.rules.judge(&self.name, connection, &answer, (status, pattern))
    }
}

/// A GET that every service with these users must answer, and the answer.
pub fn first_user(target: &Target) -> Option<(Vec<u8>, Pattern)> {
    let user = target.users.first()?;
    Some((get(&format!("/users/{}", user.id)), Pattern::exactly(json(user))))
}

/// Runs every check against a service.
pub fn run(contract: &Contract, target: &Target) -> Report {
    let users = target.users.iter().map(|user| (user.id.as_str(), user)).collect();
    let Some(probe) = first_user(target) else {
        let stopped = Some("there are no users to compare with".to_owned());
        return Report { stopped, ..Report::default() };
    };
    let checks = checks(target);
    let must = contract.cases.iter().filter(|case| case.expect.is_some()).count();
    let total = must + checks.len() + IDLE_CHECKS.len() + Rule::ALL.len();
    let until = Instant::now() + LONGEST_RUN;
    let (rules, name) = (Rules::default(), String::new());
    let context = Context { target, users: &users, rules, name, until };
    let report = Report { total, ..Report::default() };
    let mut run = Run { context, report, probe, silent: 0, last: None };
    thread::scope(|scope| {
        // The thread waits on this channel: its end tells that the run stopped early.
        let (stay, gone) = mpsc::channel();
        let (request, pattern) = run.probe.clone();
        let idle = scope.spawn(move || idle_connections(target.address, &request, &pattern, &gone));
        run.checks(contract, &checks);
        if run.report.stopped.is_some() {
            drop(stay);
        }
        let outcomes = idle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        if let Some(outcomes) = outcomes {
            for (check, outcome) in IDLE_CHECKS.iter().zip(outcomes) {
                run.settle(check.0, check.1, outcome);
            }
        }
    });
    run.finish()
}

struct Run<'a> {
    context: Context<'a>,
    report: Report,
    probe: (Vec<u8>, Pattern),
    /// Checks in a row without a byte of answer.
    silent: usize,
    /// The last check that was made.
    last: Option<String>,
}

impl Run<'_> {
    /// Cases, sequences, observations; ends early when the run is stopped.
    fn checks(&mut self, contract: &Contract, checks: &[Check]) {
        for case in &contract.cases {
            if let Some(expect) = &case.expect {
                self.context.name.clone_from(&case.name);
                let outcome = self.case(case, expect);
                if self.settle(&case.name, &case.why, outcome).is_stopped() {
                    return;
                }
            }
        }
        for check in checks {
            check.name.clone_into(&mut self.context.name);
            let outcome = (check.run)(&mut self.context);
            if self.settle(check.name, check.why, outcome).is_stopped() {
                return;
            }
        }
        for case in contract.cases.iter().filter(|case| case.expect.is_none()) {
            match observe::outcome(self.context.target, &case.request) {
                Ok(outcome) => {
                    let (case, why) = (case.name.clone(), case.why.clone());
                    self.report.observed.push(Observation { case, why, outcome });
                }
                Err(fault) => return self.stop(&case.name, &fault.to_string()),
            }
        }
    }

    fn case(&mut self, case: &Case, expect: &Expect) -> Result<(), Miss> {
        let unseeded = |what| Miss { what, trace: Vec::new(), fault: None };
        let pattern = expect.body.resolve(self.context.users).map_err(unseeded)?;
        let mut connection = self.context.open()?;
        connection.send(&case.request.bytes, &case.request.cuts);
        let answer = connection
            .receive_final(case.request.head_only)
            .map_err(|fault| Miss::fault(fault, &connection))?;
        let expected = (expect.status, &pattern);
        self.context.rules.judge(&case.name, &mut connection, &answer, expected)?;
        for (name, value) in &expect.headers {
            let got: Vec<_> = answer.header(name).collect();
            if got != [value] {
                let what = format!("header {name} is {got:?}, expected {value:?} once");
                return Err(Miss::new(what, &connection));
            }
        }
        match expect.after {
            After::Open => self.keeps_alive(&case.name, &mut connection),
            After::Closed if connection.quiet(ANSWER_WITHIN) != Quiet::Closed => {
                let what = "the service did not close the connection after the answer".to_owned();
                return Err(Miss::new(what, &connection));
            }
            After::Closed | After::Either => {}
        }
        Ok(())
    }

    /// Sends one more request over the connection: bytes left over from the last answer show
    /// themselves here without a wait for what may never come.
    fn keeps_alive(&mut self, case: &str, connection: &mut Connection) {
        let (request, pattern) = self.probe.clone();
        match self.context.ask(connection, &request, 200, &pattern) {
            Ok(_) => {}
            Err(miss) => {
                let rule = match miss.fault {
                    Some(Fault::Malformed(_)) => Rule::NoSurplus,
                    _ => Rule::KeepAlive,
                };
                let what = format!("the next request over the connection: {}", miss.what);
                self.context.rules.note(rule, case, what, connection);
            }
        }
    }

    /// Counts one check.
    fn settle(&mut self, name: &str, why: &str, outcome: Result<(), Miss>) -> &mut Self {
        let Err(miss) = outcome else {
            self.report.passed += 1;
            self.silent = 0;
            self.last = Some(name.to_owned());
            return self;
        };
        match miss.fault {
            // The service was gone before this check began: it says nothing about the check.
            Some(Fault::Refused | Fault::Over(_)) => {
                self.stop(name, &miss.what);
                return self;
            }
            Some(Fault::Silent { .. } | Fault::Connect(_)) => self.silent += 1,
            // A process that dies closes its connections, perhaps before it stops listening.
            Some(Fault::Closed(_)) => self.silent = SILENT_CHECKS,
            _ => self.silent = 0,
        }
        self.report.failed += 1;
        let (case, why) = (name.to_owned(), why.to_owned());
        self.report.failures.push(Failure { case, why, what: miss.what, trace: miss.trace });
        self.last = Some(name.to_owned());
        if self.silent >= SILENT_CHECKS {
            self.silent = 0;
            if let Some(why) = self.is_gone() {
                self.stop(name, &why);
            }
        }
        self
    }

    /// Asks once more over new connections: does it fail at some requests, or is it gone?
    fn is_gone(&self) -> Option<String> {
        let ask = || {
            let mut connection = Connection::open(self.context.target.address)?;
            connection.send(&self.probe.0, &[]);
            connection.receive_final(false)
        };
        let mut fault = ask().err()?;
        for _ in 1..CONNECTS {
            if !matches!(fault, Fault::Closed(_)) {
                break;
            }
            thread::sleep(Duration::from_millis(50));
            fault = ask().err()?;
        }
        Some(format!("a plain request over a new connection gets no answer: {fault}"))
    }

    fn stop(&mut self, at: &str, why: &str) {
        let after = match &self.last {
            Some(last) if last != at => format!(", the last check made was `{last}`"),
            _ => String::new(),
        };
        self.report.stopped.get_or_insert(format!("stopped at `{at}`{after}: {why}"));
    }

    fn is_stopped(&self) -> bool {
        self.report.stopped.is_some()
    }

    /// Adds the rules: broken ones first among the failures, the others as passed.
    fn finish(self) -> Report {
        let mut report = self.report;
        let mut failures = self.context.rules.failures();
        report.failed += failures.len();
        if report.stopped.is_none() {
            report.passed += Rule::ALL.len() - failures.len();
        }
        failures.append(&mut report.failures);
        report.failures = failures;
        report
    }
}

const IDLE_CHECKS: [(&str, &str); 2] = [
    (
        "idle-connection-is-kept",
        "members wait for their turn while others are loaded; a limit of 5 s, usual in one \
         runtime, would end their connections",
    ),
    (
        "unused-connection-is-kept",
        "connections are opened before the load begins; a time limit on the first request \
         would end them",
    ),
];

/// One connection used once and one not used at all, both left alone for `IDLE`. `None` when
/// `gone` ends before that.
fn idle_connections(
    address: SocketAddr,
    request: &[u8],
    pattern: &Pattern,
    gone: &Receiver<()>,
) -> Option<[Result<(), Miss>; 2]> {
    // Habits of every answer are judged elsewhere; here they must not count a second time.
    let ask = |connection: &mut Connection| -> Result<(), Miss> {
        connection.send(request, &[]);
        let answer =
            connection.receive_final(false).map_err(|fault| Miss::fault(fault, connection))?;
        let mut habits = Rules::default();
        habits.judge("", connection, &answer, (200, pattern)).map(|_| ())
    };
    let used = Connection::open(address).map_err(Miss::from).and_then(|mut connection| {
        ask(&mut connection).map_err(|miss| miss.at("before the wait"))?;
        Ok(connection)
    });
    let unused = Connection::open(address).map_err(Miss::from);
    if gone.recv_timeout(IDLE) == Err(mpsc::RecvTimeoutError::Disconnected) {
        return None;
    }
    let after = format!("after {:.1} s without a request", IDLE.as_secs_f64());
    Some([used, unused].map(|connection| {
        connection.and_then(|mut connection| ask(&mut connection).map_err(|miss| miss.at(&after)))
    }))
}
