//! Starts a service, proves that it is the one that answers, and stops it.

use super::guard::Guard;
use super::interrupt::Interrupt;
use super::output::Tail;
use super::tree::{self, Listener};
use crate::manifest::Argv;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// From SIGTERM to SIGKILL. The contract gives a service 2 s; the rest is for a slow machine.
const STOP_PATIENCE: Duration = Duration::from_secs(3);
/// From the ready line to the first correct answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
/// How often a waiting loop looks.
const LOOK: Duration = Duration::from_millis(5);
/// What a service sees of the harness's environment. Settings that change how a runtime
/// behaves must come from the manifest, where a reader sees them.
const PASSED_ON: [&str; 6] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR"];

/// What to start and how.
#[derive(Debug, Clone)]
pub struct ServiceSpec {
    /// How the member is called in messages.
    pub label: String,
    /// Program and arguments.
    pub command: Argv,
    /// Where it runs.
    pub dir: PathBuf,
    /// Settings from its manifest.
    pub env: BTreeMap<String, String>,
    /// CPUs it may use; empty: all that the harness may.
    pub cpus: Vec<usize>,
    /// The seeded users.
    pub users_file: PathBuf,
    /// Time to the ready line.
    pub ready_timeout: Duration,
    /// A path and the body that it must answer with; empty: any answer with status 200.
    pub probe: (String, Vec<u8>),
}

/// What the ready line says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// Address listened on.
    pub host: String,
    /// Port listened on.
    pub port: u16,
    /// Workers or threads really in effect.
    pub workers: u32,
    /// Runtime and version.
    pub runtime: String,
}

/// Why a service could not be used. Each says which service and shows its last lines.
#[derive(Debug, thiserror::Error)]
#[error("{label} {problem}{tail}")]
pub struct StartError {
    label: String,
    problem: Problem,
    tail: String,
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("could not be started: {0}")]
    Spawn(String),
    #[error("ended before it could be used ({0}); its last lines:")]
    Exited(ExitStatus),
    #[error("printed no ready line within {} ms; its last lines:", .0.as_millis())]
    NeverReady(Duration),
    #[error(
        "printed {0:?} where its ready line was expected; the first line on standard output must be: ready {{\"host\":…,\"port\":…,\"workers\":…,\"runtime\":…}}"
    )]
    BadReadyLine(String),
    #[error(
        "says that it listens on {said}, but was told {told}; see HOST and PORT in the contract"
    )]
    WrongAddress { said: String, told: SocketAddr },
    #[error(
        "reports {reported} workers, but has {allowed} CPUs; a worker count must fit the layout"
    )]
    Workers { reported: u32, allowed: usize },
    #[error("does not listen on {0} although it says that it is ready")]
    NotListening(SocketAddr),
    #[error("listens on {} instead of {told}; it must bind the literal address in HOST", list(.found))]
    OtherAddress { found: Vec<SocketAddr>, told: SocketAddr },
    #[error(
        "is not who listens on {address}: {who}; end that process, or mend the service if it started it outside its process group"
    )]
    Foreign { address: SocketAddr, who: String },
    #[error("is ready but does not answer `GET {path}` correctly: {what}")]
    WrongAnswer { path: String, what: String },
    #[error("was not started: interrupted")]
    Interrupted,
}

fn list(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(", ")
}

/// How a service ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopReport {
    /// It had to be killed: it did not end soon after SIGTERM.
    pub killed: bool,
    /// Its exit code, where it had one.
    pub code: Option<i32>,
    /// Processes of its group that were left when its leader had ended.
    pub left_behind: usize,
}

impl StopReport {
    /// What the contract does not allow; `None` for a good end.
    pub fn complaint(&self) -> Option<String> {
        if self.killed {
            let seconds = STOP_PATIENCE.as_secs();
            return Some(format!("had to be killed: it did not end within {seconds} s of SIGTERM"));
        }
        if self.left_behind > 0 {
            return Some(format!("left {} processes behind; they were killed", self.left_behind));
        }
        match self.code {
            Some(0) => None,
            Some(code) => Some(format!("ended with exit code {code} after SIGTERM, not with 0")),
            None => Some("ended by a signal after SIGTERM, not with exit code 0".to_owned()),
        }
    }
}

/// A running service. Dropping it kills its group.
#[derive(Debug)]
pub struct Service {
    label: String,
    child: Child,
    group: Pid,
    address: SocketAddr,
    ready: Ready,
    time_to_ready: Duration,
    tail: Tail,
    guard: Guard,
    ended: bool,
}

impl Service {
    /// Starts `spec` and waits until it answers correctly and is proved to be the listener.
    ///
    /// `harness` is the program that has the `launch` step. The calling thread must live
    /// as long as the service: see `launch`.
    ///
    /// # Errors
    /// With the service's name, what went wrong, and its last lines.
    pub fn start(
        spec: &ServiceSpec,
        harness: &Path,
        guard: &Guard,
        interrupt: &Interrupt,
    ) -> Result<Self, StartError> {
        let error = |problem, tail: String| StartError { label: spec.label.clone(), problem, tail };
        let started = Instant::now();
        let address =
            free_address().map_err(|e| error(Problem::Spawn(e.to_string()), String::new()))?;
        let (service, first_line) = Self::spawn(spec, harness, guard, address)
            .map_err(|e| error(Problem::Spawn(format!("{e:#}")), String::new()))?;
        service.make_ready(spec, &first_line, started, interrupt).map_err(|(problem, tail)| {
            // The last lines may still be on their way through the pipe.
            std::thread::sleep(Duration::from_millis(50));
            let tail = match problem {
                Problem::Interrupted => String::new(),
                Problem::Exited(_) | Problem::NeverReady(_) if tail.quote().is_empty() => {
                    " (none)".to_owned()
                }
                _ => tail.quote(),
            };
            error(problem, tail)
        })
    }

    fn spawn(
        spec: &ServiceSpec,
        harness: &Path,
        guard: &Guard,
        address: SocketAddr,
    ) -> anyhow::Result<(Self, Receiver<String>)> {
        let mut command = Command::new(harness);
        command.arg("launch").arg("--parent").arg(std::process::id().to_string());
        for cpu in &spec.cpus {
            command.arg("--cpu").arg(cpu.to_string());
        }
        command.arg("--").args(spec.command.all());
        command.current_dir(&spec.dir).process_group(0);
        command.env_clear();
        command.envs(PASSED_ON.iter().filter_map(|k| Some((k, std::env::var_os(k)?))));
        command.envs(&spec.env);
        command.env("HOST", address.ip().to_string()).env("PORT", address.port().to_string());
        command.env("USERS_FILE", &spec.users_file);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let group = Pid::from_raw(child.id() as i32);
        let tail = Tail::default();
        let (send, receive) = channel();
        if let Some(stream) = child.stdout.take() {
            tail.drain(stream, Some(send));
        }
        if let Some(stream) = child.stderr.take() {
            tail.drain(stream, None);
        }
        let service = Self {
            label: spec.label.clone(),
            child,
            group,
            address,
            ready: Ready { host: String::new(), port: 0, workers: 0, runtime: String::new() },
            time_to_ready: Duration::ZERO,
            tail,
            guard: guard.clone(),
            ended: false,
        };
        guard.add(group)?;
        Ok((service, receive))
    }

    fn make_ready(
        mut self,
        spec: &ServiceSpec,
        first_line: &Receiver<String>,
        started: Instant,
        interrupt: &Interrupt,
    ) -> Result<Self, (Problem, Tail)> {
        let tail = self.tail.clone();
        let problem = match self.await_ready(spec, first_line, started, interrupt) {
            Ok(ready) => {
                self.ready = ready;
                self.await_answer(spec, started, interrupt).err()
            }
            Err(problem) => Some(problem),
        };
        if let Some(problem) = problem {
            return Err((problem, tail));
        }
        Ok(self)
    }

    fn await_ready(
        &mut self,
        spec: &ServiceSpec,
        first_line: &Receiver<String>,
        started: Instant,
        interrupt: &Interrupt,
    ) -> Result<Ready, Problem> {
        let line = loop {
            match first_line.recv_timeout(LOOK) {
                Ok(line) => break line,
                Err(RecvTimeoutError::Timeout) => {}
                // Standard output closed: the exit status follows, or the time runs out.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK),
            }
            if let Some(status) = self.ended() {
                return Err(Problem::Exited(status));
            }
            if interrupt.is_set() {
                return Err(Problem::Interrupted);
            }
            if started.elapsed() > spec.ready_timeout {
                return Err(Problem::NeverReady(spec.ready_timeout));
            }
        };
        let ready: Ready = line
            .strip_prefix("ready ")
            .and_then(|json| serde_json::from_str(json).ok())
            .ok_or(Problem::BadReadyLine(line))?;
        if ready.host != self.address.ip().to_string() || ready.port != self.address.port() {
            let said = format!("{}:{}", ready.host, ready.port);
            return Err(Problem::WrongAddress { said, told: self.address });
        }
        let allowed = if spec.cpus.is_empty() {
            std::thread::available_parallelism().map_or(1, usize::from)
        } else {
            spec.cpus.len()
        };
        if ready.workers == 0 || ready.workers as usize > allowed {
            return Err(Problem::Workers { reported: ready.workers, allowed });
        }
        Ok(ready)
    }

    /// A connect is not enough, and an answer is not enough while somebody else could
    /// have given it.
    fn await_answer(
        &mut self,
        spec: &ServiceSpec,
        started: Instant,
        interrupt: &Interrupt,
    ) -> Result<(), Problem> {
        let until = Instant::now() + ANSWER_PATIENCE;
        let (path, body) = &spec.probe;
        loop {
            let answer = probe(self.address, path, body);
            // The clock stops here: looking for the listener takes longer than some services
            // take to start.
            self.time_to_ready = started.elapsed();
            let (problem, is_final) = match (tree::listener(self.group, self.address), answer) {
                (Listener::Ours | Listener::Unknown, Ok(())) => return Ok(()),
                (Listener::Ours | Listener::Unknown, Err(what)) => {
                    (Problem::WrongAnswer { path: path.clone(), what }, false)
                }
                (Listener::Nobody, _) => (Problem::NotListening(self.address), false),
                (Listener::OtherAddress(found), _) => {
                    (Problem::OtherAddress { found, told: self.address }, true)
                }
                (Listener::Foreign(owner), _) => {
                    let who = owner.map_or_else(
                        || "another process".to_owned(),
                        |(pid, name)| format!("process {pid} ({name})"),
                    );
                    (Problem::Foreign { address: self.address, who }, true)
                }
            };
            if let Some(status) = self.ended() {
                return Err(Problem::Exited(status));
            }
            if interrupt.is_set() {
                return Err(Problem::Interrupted);
            }
            if is_final || Instant::now() > until {
                return Err(problem);
            }
            std::thread::sleep(LOOK);
        }
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        // An error here means that there is no such child: it has ended.
        self.child.try_wait().ok().flatten()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process group.
    pub fn group(&self) -> Pid {
        self.group
    }

    /// What its ready line said.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// From its start to its first correct answer.
    pub fn time_to_ready(&self) -> Duration {
        self.time_to_ready
    }

    /// Bytes that it printed besides the ready line.
    pub fn output_bytes(&self) -> u64 {
        self.tail.bytes()
    }

    /// Why it is no longer there, with its last lines; `None` while it runs.
    pub fn death(&mut self) -> Option<String> {
        let status = self.ended()?;
        std::thread::sleep(Duration::from_millis(50)); // for its last lines
        Some(format!("{} ended ({status}); its last lines:{}", self.label, self.tail.quote()))
    }

    /// SIGTERM to the group, then SIGKILL to what is left.
    pub fn stop(mut self) -> StopReport {
        self.end(STOP_PATIENCE)
    }

    fn end(&mut self, patience: Duration) -> StopReport {
        self.ended = true;
        // A group that has gone already is fine.
        let _ = killpg(self.group, Signal::SIGTERM);
        let until = Instant::now() + patience;
        let mut status = self.ended();
        while status.is_none() && Instant::now() < until {
            std::thread::sleep(LOOK);
            status = self.ended();
        }
        let killed = status.is_none();
        let left_behind =
            tree::processes(self.group).into_iter().filter(|&p| p != self.group).count();
        if killed || left_behind > 0 {
            let _ = killpg(self.group, Signal::SIGKILL);
        }
        if killed {
            status = self.child.wait().ok();
        }
        self.guard.remove(self.group);
        StopReport { killed, code: status.and_then(|s| s.code()), left_behind }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if !self.ended {
            self.end(Duration::ZERO);
        }
    }
}

/// A loopback port that nobody listens on at this moment. Should somebody take it before
/// the service does, the service fails to start and says so.
fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0))?.local_addr()
}

/// One request over a connection of its own; `Ok` when the answer is a 200 with `body`.
fn probe(address: SocketAddr, path: &str, body: &[u8]) -> Result<(), String> {
    let exchange = || -> std::io::Result<Vec<u8>> {
        let limit = Duration::from_secs(1);
        let mut stream = TcpStream::connect_timeout(&address, limit)?;
        stream.set_read_timeout(Some(limit))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", address.ip())?;
        let mut answer = Vec::new();
        let mut chunk = [0; 4096];
        while answer.is_empty() || !answer.ends_with(body) {
            match stream.read(&mut chunk) {
                Ok(0) => break,
                Ok(n) => answer.extend_from_slice(&chunk[..n]),
                // Too short or wrong: what came so far is the finding.
                Err(_) if !answer.is_empty() => break,
                Err(e) => return Err(e),
            }
        }
        Ok(answer)
    };
    let answer = exchange().map_err(|e| e.to_string())?;
    if answer.starts_with(b"HTTP/1.1 200 ") && answer.ends_with(body) {
        return Ok(());
    }
    let shown =
        String::from_utf8_lossy(&answer[..answer.len().min(300)]).escape_debug().to_string();
    Err(format!("it answered \"{shown}\""))
}
