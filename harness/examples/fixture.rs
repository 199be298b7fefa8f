//! A small service for the tests of the harness: keeps the contract, and with `--break RULE`
//! breaks one rule of it, or of starting and stopping. `--list` names the rules.
//!
//! It reads HOST, PORT (0: any free one, the ready line tells which), USERS_FILE and WORKERS
//! as services do, has one thread a connection, and ends at SIGTERM at once, without waiting
//! for what is in flight. It is no example of a service to measure.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a service speaks by these")]

use std::collections::{HashMap, HashSet};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio, exit};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{env, fs, io, thread};

use serde_json::Value;
use signal_hook::consts::SIGTERM;

const RULES: [(&str, &str); 23] = [
    ("chunked", "answers come chunked, without Content-Length"),
    ("trailing-newline", "bodies end with a newline"),
    ("html-escape", "<, > and & are written as \\u003c, \\u003e and \\u0026"),
    ("key-order", "users are written as name, email, id"),
    ("created-200", "a new user is answered with 200"),
    ("case-insensitive-keys", "keys of a new user are found in any case"),
    ("keep-alive-5s", "idle connections are closed after 5 s"),
    ("body-limit-exit", "a too large body ends the process"),
    ("bare-404", "404 comes without body"),
    ("cached-404", "an id once unknown stays unknown"),
    ("ipv6-only", "listens on ::1 whatever HOST says"),
    ("other-process", "a process outside this one's tree and group listens"),
    ("spawn-child", "a child that does nothing stays in the process group"),
    ("never-ready", "listens, accepts nothing and never prints the ready line"),
    ("exit-at-once", "exits with code 7 after three lines on standard error"),
    ("flood-stderr", "writes to standard error without end while it serves"),
    ("flood-stderr-never-ready", "writes to standard error without end and nothing else"),
    ("garbage-before-ready", "prints hello before the ready line"),
    ("ready-wrong-port", "the ready line names the port after the one it listens on"),
    ("wrong-workers", "the ready line says 64 workers"),
    ("slow-stop", "SIGTERM is ignored"),
    (
        "detached-listener",
        "(what other-process starts) serves until standard input ends or 30 s are over",
    ),
    ("sleep", "(what spawn-child starts) does nothing for 1,000 s"),
];
const BODY_LIMIT: usize = 64 * 1024;

struct Broken(Option<String>);

impl Broken {
    fn is(&self, rule: &str) -> bool {
        debug_assert!(RULES.iter().any(|(name, _)| *name == rule), "no such rule: {rule}");
        self.0.as_deref() == Some(rule)
    }
}

fn main() {
    let broken = Broken(match env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => None,
        [flag] if flag == "--list" => {
            for (name, what) in RULES {
                println!("{name:26}{what}");
            }
            return;
        }
        [flag, rule] if flag == "--break" && RULES.iter().any(|(name, _)| name == rule) => {
            Some(rule.clone())
        }
        _ => {
            eprintln!("usage: fixture [--list | --break RULE]");
            exit(2);
        }
    });
    if let Err(why) = start(broken) {
        eprintln!("{why}");
        exit(1);
    }
}

fn setting(name: &str, default: &str) -> String {
    env::var(name).unwrap_or_else(|_| default.to_owned())
}

/// Everything up to serving, with the faults of starting.
fn start(broken: Broken) -> Result<(), String> {
    if broken.is("exit-at-once") {
        eprintln!("fixture: reading the settings\nfixture: no licence found\nfixture: giving up");
        exit(7);
    }
    if broken.is("sleep") {
        sleep_holding(());
    }
    if broken.is("flood-stderr") || broken.is("flood-stderr-never-ready") {
        thread::spawn(flood_stderr);
    }
    if broken.is("flood-stderr-never-ready") {
        sleep_holding(());
    }
    // At SIGTERM a flag is set, which nobody reads, or the process ends with code 0.
    let register = if broken.is("slow-stop") {
        signal_hook::flag::register(SIGTERM, Arc::default())
    } else {
        let always = Arc::new(AtomicBool::new(true));
        signal_hook::flag::register_conditional_shutdown(SIGTERM, 0, always)
    };
    register.map_err(|why| why.to_string())?;
    let host = if broken.is("ipv6-only") { "::1".to_owned() } else { setting("HOST", "127.0.0.1") };
    if broken.is("other-process") {
        return hand_over(&host);
    }
    let store = Mutex::new(load(&setting("USERS_FILE", "data/users.json"))?);
    let listener = listen(&host, &setting("PORT", "8080"))?;
    if broken.is("never-ready") {
        sleep_holding(listener);
    }
    // Held, not waited for: it must outlive this process unless its group is ended.
    let _child = broken.is("spawn-child").then(spawn_sleeper).transpose()?;
    let port = listener.local_addr().map_err(|why| why.to_string())?.port();
    if broken.is("garbage-before-ready") {
        println!("hello");
    }
    let workers = if broken.is("wrong-workers") { 64 } else { 1 };
    say_ready(&host, port + u16::from(broken.is("ready-wrong-port")), workers);
    if broken.is("detached-listener") {
        thread::spawn(end_with_standard_input);
    }
    let service = Arc::new(Service { broken, store });
    for stream in listener.incoming().flatten() {
        let service = Arc::clone(&service);
        // An error here is a client that went away.
        thread::spawn(move || _ = service.connection(stream));
    }
    Ok(())
}

fn listen(host: &str, port: &str) -> Result<TcpListener, String> {
    let literal = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let address: SocketAddr = format!("{literal}:{port}")
        .parse()
        .map_err(|_| format!("HOST {host} and PORT {port} are no literal address"))?;
    TcpListener::bind(address).map_err(|why| format!("cannot listen on {address}: {why}"))
}

fn say_ready(host: &str, port: u16, workers: u32) {
    println!(r#"ready {{"host":"{host}","port":{port},"workers":{workers},"runtime":"fixture"}}"#);
}

/// Keeps what it is given and does nothing.
fn sleep_holding<T>(_held: T) -> ! {
    thread::sleep(Duration::from_secs(1_000));
    exit(0)
}

fn flood_stderr() {
    let lines = "fixture: as I said before, all is well\n".repeat(1_600);
    while io::stderr().write_all(lines.as_bytes()).is_ok() {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Starts this program again in the same process group, holding the same standard error.
fn spawn_sleeper() -> Result<Child, String> {
    let program = env::current_exe().map_err(|why| why.to_string())?;
    let child = Command::new(program).args(["--break", "sleep"]).spawn();
    child.map_err(|why| format!("cannot start a child: {why}"))
}

/// Lets a process listen that is neither of this one's tree nor of its group: a shell starts
/// it and ends, which makes it an orphan. Its standard input ends when this process does.
fn hand_over(host: &str) -> Result<(), String> {
    let program = env::current_exe().map_err(|why| why.to_string())?;
    // A shell gives a background process no standard input; descriptor 3 brings it there.
    let mut shell = Command::new("/bin/sh")
        .args(["-c", r#"exec 3<&0; "$0" --break detached-listener <&3 3<&- &"#])
        .arg(program)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|why| format!("cannot start a shell: {why}"))?;
    let held_open = shell.stdin.take();
    let mut output = shell.stdout.take().ok_or("the shell has no output")?;
    shell.wait().map_err(|why| why.to_string())?;
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        let mut byte = [0];
        output.read_exact(&mut byte).map_err(|_| "the listener did not start".to_owned())?;
        line.push(byte[0]);
    }
    let ready: Value = line
        .strip_prefix(b"ready ")
        .and_then(|json| serde_json::from_slice(json).ok())
        .ok_or("the listener printed no ready line")?;
    let port = ready["port"].as_u64().and_then(|port| port.try_into().ok());
    say_ready(host, port.ok_or("the listener named no port")?, 1);
    sleep_holding(held_open)
}

fn end_with_standard_input() {
    thread::spawn(|| {
        thread::sleep(Duration::from_secs(30));
        exit(0);
    });
    _ = io::stdin().read(&mut [0]);
    exit(0);
}

struct User {
    id: String,
    name: String,
    email: String,
}

struct Store {
    users: HashMap<String, Arc<User>>,
    last_id: u64,
    not_found: HashSet<String>,
}

fn load(path: &str) -> Result<Store, String> {
    let text = fs::read_to_string(path).map_err(|why| format!("users file {path}: {why}"))?;
    let list: Vec<Value> =
        serde_json::from_str(&text).map_err(|why| format!("users file {path}: {why}"))?;
    let mut users = HashMap::with_capacity(list.len());
    for user in &list {
        let field = |key: &str| user[key].as_str().unwrap_or_default().to_owned();
        let (id, name, email) = (field("id"), field("name"), field("email"));
        users.insert(id.clone(), Arc::new(User { id, name, email }));
    }
    Ok(Store { users, last_id: 10_000, not_found: HashSet::new() })
}

struct Request {
    method: String,
    path: String,
    /// `None` for one that is too large.
    body: Option<Vec<u8>>,
    close: bool,
}

/// A connection and the bytes of it that are not yet used.
struct Input {
    stream: TcpStream,
    bytes: Vec<u8>,
}

impl Input {
    fn more(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            length => {
                self.bytes.extend_from_slice(&buffer[..length]);
                Ok(())
            }
        }
    }

    fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.bytes.len() < length {
            self.more()?;
        }
        Ok(self.bytes.drain(..length).collect())
    }

    /// Up to and without the next CRLF.
    fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.bytes.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.take(end + 2)?;
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            self.more()?;
        }
    }

    fn request(&mut self) -> io::Result<Request> {
        let invalid = || io::Error::from(ErrorKind::InvalidData);
        let first = self.line()?;
        let mut words = first.split(' ');
        let mut word = || words.next().map(str::to_owned).ok_or_else(invalid);
        let (method, path, version) = (word()?, word()?, word()?);
        let old = version == "HTTP/1.0";
        let (mut length, mut chunked, mut close, mut ask) = (0, false, old, false);
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            let value = value.trim().to_ascii_lowercase();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().map_err(|_| invalid())?,
                "transfer-encoding" => chunked = value == "chunked",
                "connection" => close = value == "close" || (old && value != "keep-alive"),
                "expect" => ask = value == "100-continue",
                _ => {}
            }
        }
        if ask {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let body = if chunked { self.chunks()? } else { self.body(length)? };
        Ok(Request { method, path, body, close })
    }

    fn body(&mut self, length: usize) -> io::Result<Option<Vec<u8>>> {
        if length <= BODY_LIMIT {
            return self.take(length).map(Some);
        }
        // Read to its end, or a close would cut off the answer for a client still sending.
        let mut left = length;
        while left > 0 {
            left -= self.take(left.min(BODY_LIMIT))?.len();
        }
        Ok(None)
    }

    fn chunks(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut body = Some(Vec::new());
        loop {
            let line = self.line()?;
            let size = usize::from_str_radix(line.split(';').next().unwrap_or("").trim(), 16)
                .map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
            if size == 0 {
                while !self.line()?.is_empty() {}
                return Ok(body);
            }
            let chunk = self.body(size)?;
            self.take(2)?;
            body = body.zip(chunk).map(|(body, chunk)| [body, chunk].concat());
            body = body.filter(|body| body.len() <= BODY_LIMIT);
        }
    }
}

struct Service {
    broken: Broken,
    store: Mutex<Store>,
}

impl Service {
    fn connection(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        if self.broken.is("keep-alive-5s") {
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        }
        let mut input = Input { stream, bytes: Vec::new() };
        loop {
            let request = input.request()?;
            let (status, body) = self.answer(&request);
            input.stream.write_all(&self.encode(&request, status, body))?;
            if request.close {
                return Ok(());
            }
        }
    }

    fn answer(&self, request: &Request) -> (u16, String) {
        let path = request.path.split('?').next().unwrap_or_default();
        match (request.method.as_str(), path) {
            ("POST", "/users") => self.post(request.body.as_deref()),
            ("GET", path) => match path.strip_prefix("/users/").and_then(|id| self.get(id)) {
                Some(user) => (200, self.json(&user)),
                None => self.not_found(),
            },
            _ => self.not_found(),
        }
    }

    fn not_found(&self) -> (u16, String) {
        let body = if self.broken.is("bare-404") { "" } else { r#"{"error":"not found"}"# };
        (404, body.to_owned())
    }

    fn get(&self, id: &str) -> Option<Arc<User>> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        if self.broken.is("cached-404") && store.not_found.contains(id) {
            return None;
        }
        let user = store.users.get(id).cloned();
        if user.is_none() {
            store.not_found.insert(id.to_owned());
        }
        user
    }

    fn post(&self, body: Option<&[u8]>) -> (u16, String) {
        let error = |status, what: &str| (status, format!(r#"{{"error":"{what}"}}"#));
        let Some(body) = body else {
            if self.broken.is("body-limit-exit") {
                exit(1);
            }
            return error(413, "body too large");
        };
        let Ok(Value::Object(fields)) = serde_json::from_slice(body) else {
            return error(400, "invalid json");
        };
        let any_case = self.broken.is("case-insensitive-keys");
        let field = |key: &str| {
            let same = |name: &str| name == key || any_case && name.eq_ignore_ascii_case(key);
            fields.iter().find(|(name, _)| same(name)).and_then(|(_, value)| value.as_str())
        };
        let Some(name) = field("name").filter(|name| !name.is_empty()) else {
            return error(400, "name required");
        };
        let Some(email) = field("email").filter(|email| email.contains('@')) else {
            return error(400, "invalid email");
        };
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        store.last_id += 1;
        let id = store.last_id.to_string();
        let user = Arc::new(User { id, name: name.to_owned(), email: email.to_owned() });
        store.users.insert(user.id.clone(), Arc::clone(&user));
        (if self.broken.is("created-200") { 200 } else { 201 }, self.json(&user))
    }

    fn json(&self, user: &User) -> String {
        let text = |text: &str| Value::from(text).to_string();
        let (id, name, email) = (text(&user.id), text(&user.name), text(&user.email));
        if self.broken.is("key-order") {
            return format!(r#"{{"name":{name},"email":{email},"id":{id}}}"#);
        }
        let json = format!(r#"{{"id":{id},"name":{name},"email":{email}}}"#);
        if self.broken.is("html-escape") {
            return json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
        }
        json
    }

    fn encode(&self, request: &Request, status: u16, mut body: String) -> Vec<u8> {
        if self.broken.is("trailing-newline") {
            body.push('\n');
        }
        let reason = match status {
            200 | 201 => "OK",
            404 => "Not Found",
            _ => "Bad Request",
        };
        let mut framing = format!("Content-Length: {}", body.len());
        if self.broken.is("chunked") {
            framing = "Transfer-Encoding: chunked".to_owned();
            body = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        }
        let connection = if request.close { "close" } else { "keep-alive" };
        let body = if request.method == "HEAD" { "" } else { &body };
        format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\n{framing}\r\n\
             Connection: {connection}\r\n\r\n{body}"
        )
        .into_bytes()
    }
}
