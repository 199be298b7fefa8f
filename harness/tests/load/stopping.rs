//! What happens when somebody asked to end, and what the end costs.

use super::truth::{self, Act, Server, Turn, write};
use super::{assert_all_well, assert_books_balance, constant, measured, ms, options};
use harness::load::Pace;
use harness::load::measure::{self, Measurement, Options};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Asks to end after `after`; gives what was measured and how long that took.
fn stopped(options: &Options, after: Duration) -> (io::Result<Measurement>, Duration) {
    let stop = Arc::new(AtomicBool::new(false));
    let mut options = options.clone();
    options.target.stop = Some(Arc::clone(&stop));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(after);
            stop.store(true, Ordering::SeqCst);
        });
        let began = Instant::now();
        (measure::measure(&options, &mut || None), began.elapsed())
    })
}

#[test]
fn in_the_window_what_is_under_way_is_awaited() {
    for threads in [1, 2] {
        let server = Server::start(truth::delayed(ms(5)));
        let long = Options { threads, ..options(&server, 4, ms(10_000)) };
        let (m, took) = stopped(&long, ms(200));
        let m = m.expect("measures");
        assert_books_balance(&m);
        assert_all_well(&server, &m);
        assert!(took < ms(1_000), "{took:?}");
        assert!((150_000_000..400_000_000).contains(&m.slice.window_ns), "{}", m.slice.window_ns);
        assert_eq!((m.asked, m.alive), (ms(10_000), 4));
    }
}

/// The service is hopelessly behind: its backlog would be sent for ten seconds.
#[test]
fn a_constant_pace_sends_nothing_more() {
    let server = Server::start(truth::delayed(ms(50)));
    let paced = Options { pace: constant(1_000.0), ..options(&server, 2, ms(5_000)) };
    let (m, took) = stopped(&paced, ms(400));
    let m = m.expect("measures");
    assert_books_balance(&m);
    assert_all_well(&server, &m);
    assert!(took < ms(1_000), "{took:?}");
    let (sent, never) = (m.tally.counts.sent, m.slice.account.never_sent);
    assert!(sent <= 24, "{sent}");
    // What was due by then; not what would have been due later.
    assert!((350..=600).contains(&(sent + never)), "{sent} + {never}");
}

#[test]
fn in_the_warm_up_nothing_is_measured() {
    for pace in [Pace::Closed, constant(100.0)] {
        let server = Server::start(truth::delayed(ms(1)));
        let warm = Options { pace, warm_up: ms(5_000), ..options(&server, 2, ms(5_000)) };
        let (m, took) = stopped(&warm, ms(200));
        let m = m.expect("measures");
        assert!(took < ms(1_000), "{took:?}");
        assert_books_balance(&m);
        assert!(m.warm_up.ok > 0);
        assert_eq!((m.slice.window_ns, m.tally.counts.sent, m.throughput()), (0, 0, 0.0));
        assert_eq!(m.limits, []);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn while_connecting_there_is_no_waiting() {
    let (_socket, address) = truth::full_queue(1);
    let any = Server::start(truth::right);
    let mut options = options(&any, 10, ms(100));
    options.target.address = address;
    for threads in [1, 2] {
        let threads = Options { threads, ..options.clone() };
        let (m, took) = stopped(&threads, ms(100));
        assert_eq!(m.expect_err("too few").kind(), io::ErrorKind::Interrupted);
        assert!(took < ms(1_000), "{took:?}");
    }
}

/// Waiting for answers is no work, at a constant pace either.
#[test]
fn a_drain_sleeps() {
    for pace in [Pace::Closed, constant(20.0)] {
        let server = Server::start(truth::hang_from(2));
        let mut options = Options { pace, ..options(&server, 4, ms(200)) };
        options.target.timeout = ms(600);
        let m = measured(&server, &options);
        assert!(m.tally.counts.unfinished > 0);
        // A look every 50 ms, and some hundred turns before each due time.
        let wakeups = m.slice.account.wakeups;
        assert!(wakeups < 5_000, "{wakeups}");
    }
}

/// CPU times are those of the window: the wait for one late answer is no idleness.
#[test]
fn the_service_is_read_when_the_window_ends() {
    let late = |turn: &Turn| match turn.request {
        20 => vec![Act::Wait(ms(700)), write(truth::ANSWER)],
        _ => vec![Act::Wait(ms(1)), write(truth::ANSWER)],
    };
    for threads in [1, 2] {
        let server = Server::start(late);
        let options = Options { threads, ..options(&server, 2, ms(300)) };
        let began = Instant::now();
        let mut read = Vec::new();
        let mut edge = || {
            read.push(began.elapsed());
            Some(read.len() as u64 * 1_000)
        };
        let m = measure::measure(&options, &mut edge).expect("measures");
        assert_books_balance(&m);
        assert_eq!((read.len(), m.service_cpu_ns), (2, Some(1_000)));
        let apart = read[1] - read[0];
        assert!(apart >= ms(295) && apart < ms(550), "{apart:?}");
        assert!(began.elapsed() > ms(650), "the last answer was awaited");
    }
}

/// `harness load`, to which Ctrl-C comes after `after` and again so often; its output and how
/// long it took.
fn interrupted(
    address: std::net::SocketAddr,
    args: &[&str],
    after: Duration,
    times: u32,
) -> (std::process::Output, Duration) {
    use nix::sys::signal::{Signal, kill};
    let began = Instant::now();
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_harness"))
        .args(["load", &format!("http://{address}/users/1")])
        .args(args)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("starts");
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    for _ in 0..times {
        std::thread::sleep(after);
        kill(pid, Signal::SIGINT).expect("runs");
    }
    (child.wait_with_output().expect("ends"), began.elapsed())
}

#[test]
fn the_first_ctrl_c_reports_what_there_is() {
    let server = Server::start(truth::delayed(ms(1)));
    let args = ["-c", "2", "-d", "30s", "--warm-up", "0"];
    let (output, took) = interrupted(server.address, &args, ms(700), 1);
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(took < ms(5_000), "{took:?}");
    assert!(shown.contains("req/s over 0.") && shown.contains("of 30.00 s"), "{shown}");
    assert!(!shown.contains("lost count") && shown.contains(" 0 lost"), "{shown}");
}

#[test]
fn ctrl_c_in_the_warm_up_says_that_nothing_was_measured() {
    let server = Server::start(truth::delayed(ms(1)));
    let args = ["-c", "2", "-d", "30s", "--warm-up", "30s"];
    let (output, _) = interrupted(server.address, &args, ms(700), 1);
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("nothing was measured") && !shown.contains("req/s"), "{shown}");
}

#[test]
fn the_second_ctrl_c_quits() {
    let server = Server::start(truth::hang_from(0));
    let args = ["-c", "2", "-d", "30s", "--warm-up", "0", "--timeout", "60s"];
    let (output, took) = interrupted(server.address, &args, ms(700), 2);
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(output.stdout.is_empty(), "the first one waits for the answers");
    assert!(took < ms(5_000), "{took:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_while_connecting_quits() {
    let (_socket, address) = truth::full_queue(1);
    let (output, took) = interrupted(address, &["-c", "10"], ms(700), 1);
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(took < ms(5_000), "{took:?}");
    assert!(output.stdout.is_empty() && !output.stderr.is_empty());
}
