//! Both binaries as processes: the ready line, the stop, and what keeps them from starting.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const BINARIES: [&str; 2] = [env!("CARGO_BIN_EXE_users-axum"), env!("CARGO_BIN_EXE_users-hyper")];

fn users_file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn command(binary: &str, users_file: PathBuf, port: u16) -> Command {
    let mut command = Command::new(binary);
    command.env("HOST", "127.0.0.1").env("PORT", port.to_string()).env("WORKERS", "2");
    command.env("USERS_FILE", users_file).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn start(binary: &str) -> (Child, u16) {
    let file = users_file("one.json", r#"[{"id":"1","name":"Ada","email":"ada@x"}]"#);
    let mut child = command(binary, file, 0).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let ready = line.strip_prefix("ready ").unwrap();
    let ready: serde_json::Value = serde_json::from_str(ready).unwrap();
    assert_eq!(ready["host"], "127.0.0.1");
    assert_eq!(ready["workers"], 2);
    assert!(ready["runtime"].as_str().unwrap().starts_with("rustc 1."), "{line}");
    let port = ready["port"].as_u64().unwrap();
    (child, port.try_into().unwrap())
}

/// Sends SIGTERM and waits; the standard library can only send SIGKILL.
fn stop(mut child: Child) {
    let asked = Instant::now();
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
}

fn get(port: u16) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /users/1 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
    stream
}

#[test]
fn stops_with_idle_connections_and_half_a_request() {
    for binary in BINARIES {
        let (child, port) = start(binary);
        let _idle: Vec<_> = (0..300).map(|_| get(port)).collect();
        let mut half = get(port);
        half.write_all(b"POST /users HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{").unwrap();
        stop(child);
    }
}

#[test]
fn finishes_what_is_in_flight() {
    for binary in BINARIES {
        let (child, port) = start(binary);
        let mut stream = get(port);
        stream
            .write_all(b"POST /users HTTP/1.1\r\nHost: x\r\nContent-Length: 26\r\n\r\n{")
            .unwrap();
        // The service must have read the head before it is told to stop.
        std::thread::sleep(Duration::from_millis(100));
        let stopping = std::thread::spawn(|| stop(child));
        std::thread::sleep(Duration::from_millis(100));
        stream.write_all(br#""name":"B","email":"b@x"}"#).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
        stopping.join().unwrap();
    }
}

#[test]
fn says_in_one_line_what_keeps_it_from_starting() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().port();
    let good = users_file("good.json", r#"[{"id":"1","name":"Ada","email":"ada@x"}]"#);
    let cut = users_file("cut.json", r#"[{"id":"1","name":"Ada","ema"#);
    for binary in BINARIES {
        for (file, port, named) in [
            (&good, taken, taken.to_string()),
            (&cut, 0, "cut.json".to_owned()),
            (&PathBuf::from("no/such.json"), 0, "no/such.json".to_owned()),
        ] {
            let Output { status, stdout, stderr } =
                command(binary, file.clone(), port).output().unwrap();
            let stderr = String::from_utf8(stderr).unwrap();
            assert_eq!(status.code(), Some(1), "{stderr}");
            assert!(stderr.starts_with("users: ") && stderr.contains(&named), "{stderr}");
            assert_eq!(stderr.lines().count(), 1, "{stderr}");
            assert!(stdout.is_empty());
        }
    }
}
