//! `harness load`: the engine by itself.

use super::project::Project;
use super::{Interrupted, Unsuccessful, Usage, goose, new_seed, print, print_json, say};
use crate::cli::{ArrivalsName, EngineName, Load, LoadFormat};
use crate::host::{affinity, limits};
use crate::load::measure::{self, Measurement, Options};
use crate::load::{Arrivals, Pace, Target};
use crate::process::{Interrupt, tree};
use crate::report::foreign::{hgrm, oha};
use crate::report::load::LoadReport;
use crate::scenario::{Expected, Request};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

/// Faster than any loopback can be asked: a typing error.
const GREATEST_RATE: f64 = 10_000_000.0;
/// Longer than anybody waits for a measurement: a typing error.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

pub fn run(args: &Load, project: impl FnOnce() -> anyhow::Result<Project>) -> anyhow::Result<()> {
    let goose = args.engine == EngineName::Goose;
    if goose {
        goose::check(args).map_err(Usage)?;
    }
    let url = Url::parse(&args.url).map_err(|e| Usage(format!("{}: {e}", args.url)))?;
    let request = request(args, &url).map_err(Usage)?;
    let options_of = |address, stop| options(args, address, request, stop);
    let address = url.resolve().map_err(|e| Usage(format!("{}: {e}", args.url)))?;
    if goose {
        let options = options_of(address, Arc::default()).map_err(Usage)?;
        let headers = headers(args, &url).map_err(Usage)?;
        return goose::run(args, &options, url.target, headers, project);
    }
    let interrupt = Interrupt::install()?;
    let options = options_of(address, interrupt.flag()).map_err(Usage)?;
    limits::ensure_descriptors(options.connections as u64)
        .map_err(|e| Usage(format!("--connections {}: {e}", options.connections)))?;
    let pace = match options.pace {
        Pace::Closed => "closed pace".to_owned(),
        Pace::Constant { rate, arrivals: Arrivals::Uniform } => {
            format!("constant pace of {rate} req/s")
        }
        Pace::Constant { rate, arrivals: Arrivals::Poisson { seed } } => {
            format!("constant pace of {rate} req/s, Poisson arrivals, seed {seed}")
        }
    };
    say(&format!("{} at {address}, {pace}", args.url));
    // On this machine its CPU time can be read; elsewhere it stays unknown.
    let service = tree::listening_service(address);
    let mut service_cpu_ns =
        || service.iter().map(|p| tree::cpu_ns(*p)).sum::<Option<u64>>().filter(|ns| *ns > 0);
    let measurement = measure::measure(&options, &mut service_cpu_ns).map_err(|e| {
        if e.kind() == std::io::ErrorKind::Interrupted && interrupt.is_set() {
            return anyhow::Error::from(Interrupted);
        }
        Unsuccessful(format!("{address}: {e}")).into()
    })?;
    let report = LoadReport::new(&measurement, format!("{} ({address})", args.url), pace);
    match args.format {
        LoadFormat::Text => print(&report.text())?,
        LoadFormat::Json => print_json(&report)?,
        LoadFormat::Hgrm => {
            warn(&report);
            print(&hgrm(&measurement.tally.latency, measurement.tally.max_ns))?;
        }
        LoadFormat::Oha => {
            warn(&report);
            print_json(&oha(&measurement, args.expect_status))?;
        }
    }
    if interrupt.is_set() {
        return Err(Interrupted.into());
    }
    verdict(&measurement).map_err(|e| Unsuccessful(e).into())
}

/// For formats that have no place for them.
fn warn(report: &LoadReport) {
    report.warnings().iter().for_each(|warning| say(&format!("warning: {warning}")));
}

/// Whether the figures are worth anything as they stand.
fn verdict(measurement: &Measurement) -> Result<(), String> {
    let m = measurement;
    if m.tally.counts.ok == 0 {
        return Err("no request was answered as expected".to_owned());
    }
    if m.alive < m.opened {
        return Err(format!("only {} of {} connections could be kept open", m.alive, m.opened));
    }
    if m.tally.surplus > 0 {
        // Behind good answers, so that no request failed; but who answers what was not asked
        // is no HTTP server, and its good answers are not to be trusted either.
        return Err(format!("{} times bytes came that nobody had asked for", m.tally.surplus));
    }
    Ok(())
}

fn options(
    args: &Load,
    address: SocketAddr,
    request: Request,
    stop: Arc<std::sync::atomic::AtomicBool>,
) -> Result<Options, String> {
    if args.connections == 0 {
        return Err("--connections 0: at least one is needed".to_owned());
    }
    let duration = duration("--duration", &args.duration)?;
    if duration.is_zero() {
        return Err("--duration 0: the window must have a length".to_owned());
    }
    let timeout = self::duration("--timeout", &args.timeout)?;
    if timeout.is_zero() {
        return Err("--timeout 0: no answer can come in no time".to_owned());
    }
    let pace = match args.rate {
        None => Pace::Closed,
        Some(rate) if rate.is_finite() && rate > 0.0 && rate <= GREATEST_RATE => {
            let seed = args.seed.unwrap_or_else(new_seed);
            let arrivals = match args.arrivals {
                ArrivalsName::Uniform => Arrivals::Uniform,
                ArrivalsName::Poisson => Arrivals::Poisson { seed },
            };
            Pace::Constant { rate, arrivals }
        }
        Some(rate) => {
            return Err(format!(
                "--rate {rate}: give requests a second, above 0 and up to {GREATEST_RATE}"
            ));
        }
    };
    let allowed = affinity::allowed();
    let threads = args.threads.unwrap_or((allowed.len() / 4).max(1));
    if threads == 0 || threads > 1024 {
        return Err(format!("--threads {threads}: give 1 to 1024"));
    }
    Ok(Options {
        target: Target {
            address,
            pool: Arc::from([request]),
            open_timeout: timeout,
            throttle: None,
            timeout,
            stop: Some(stop),
        },
        connections: args.connections,
        threads,
        cpus: Vec::new(),
        pace,
        warm_up: self::duration("--warm-up", &args.warm_up)?,
        duration,
    })
}

/// `10s`, `500ms`, `1m 30s`; a bare number is seconds.
fn duration(option: &str, text: &str) -> Result<Duration, String> {
    let wrong = || format!("{option} {text}: give a duration such as 10s, 500ms or 2m");
    let parsed = match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?,
        Err(_) => {
            let signed: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
            Duration::try_from(signed).map_err(|_| wrong())?
        }
    };
    if parsed > LONGEST {
        return Err(format!("{option} {text}: at most a day"));
    }
    Ok(parsed)
}

/// The parts of an http URL that a load needs.
struct Url {
    host: String,
    port: u16,
    target: String,
}

impl Url {
    fn parse(text: &str) -> Result<Self, String> {
        let rest = text.strip_prefix("http://").ok_or_else(|| {
            if text.starts_with("https://") {
                "TLS is not spoken here; load the service itself over http://".to_owned()
            } else {
                "must begin with http://, as in http://127.0.0.1:8080/users/500".to_owned()
            }
        })?;
        if let Some(odd) = rest.chars().find(|c| !c.is_ascii_graphic() || *c == '#') {
            return Err(format!("{odd:?} cannot stand in it; percent-encode it"));
        }
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(at);
        let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
        // An IPv6 address has colons of its own, in brackets.
        let port_at = authority.rfind(':').filter(|&i| !authority[i..].contains(']'));
        let (host, port) = match port_at {
            None => (authority, 80),
            Some(i) => {
                let digits = &authority[i + 1..];
                // A sign would be parsed, too.
                let all = digits.bytes().all(|b| b.is_ascii_digit());
                let port = digits.parse().ok().filter(|p| all && *p > 0);
                (&authority[..i], port.ok_or(format!("`{}` is no port", &authority[i + 1..]))?)
            }
        };
        if host.is_empty() || host.contains('@') {
            return Err(format!("`{host}` is no host"));
        }
        Ok(Self { host: host.to_owned(), port, target })
    }

    /// Resolved once; of several addresses the first is used, and printed.
    fn resolve(&self) -> Result<SocketAddr, String> {
        let name = self.host.trim_start_matches('[').trim_end_matches(']');
        let mut all =
            (name, self.port).to_socket_addrs().map_err(|e| format!("cannot be resolved: {e}"))?;
        all.next().ok_or_else(|| "has no address".to_owned())
    }
}

/// Whether `text` is what HTTP calls a token.
fn token(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

fn request(args: &Load, url: &Url) -> Result<Request, String> {
    if !token(&args.method) {
        return Err(format!("--method {}: no method looks like this", args.method));
    }
    if args.method == "HEAD" {
        return Err("--method HEAD: its answers have no body to check; use GET".to_owned());
    }
    if !(100..=599).contains(&args.expect_status) {
        return Err(format!("--expect-status {}: give 100 to 599", args.expect_status));
    }
    let mut head = format!("{} {} HTTP/1.1\r\n", args.method, url.target);
    for (name, value) in headers(args, url)? {
        head += &format!("{name}: {value}\r\n");
    }
    // RFC 9110, 8.6: a method that gives its content a meaning says so when there is none.
    let meant = ["POST", "PUT", "PATCH"].contains(&args.method.as_str());
    let length = args.body.as_ref().map(String::len).or(meant.then_some(0));
    if let Some(length) = length {
        head += &format!("Content-Length: {length}\r\n");
    }
    head += "\r\n";
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(args.body.as_deref().unwrap_or_default().as_bytes());
    Ok(Request { bytes, status: args.expect_status, body: Expected::Any })
}

/// Names and values, `Host` among them, but for the body's length.
fn headers(args: &Load, url: &Url) -> Result<Vec<(String, String)>, String> {
    let mut headers: Vec<(String, String)> = Vec::new();
    for header in &args.header {
        let (name, value) = header
            .split_once(':')
            .ok_or(format!("--header {header}: write it as \"Name: value\""))?;
        if !token(name) || value.contains(['\r', '\n', '\0']) {
            return Err(format!("--header {header:?}: not a header's name and value"));
        }
        if name.eq_ignore_ascii_case("content-length")
            || name.eq_ignore_ascii_case("transfer-encoding")
        {
            return Err(format!("--header {name}: the length follows from --body"));
        }
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        headers.push(("Host".to_owned(), format!("{}:{}", url.host, url.port)));
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let good = [
            ("http://127.0.0.1:8080/users/500", "127.0.0.1", 8080, "/users/500"),
            ("http://localhost", "localhost", 80, "/"),
            ("http://[::1]:81?x=y", "[::1]", 81, "/?x=y"),
            ("http://[::1]/a", "[::1]", 80, "/a"),
        ];
        for (text, host, port, target) in good {
            let url = Url::parse(text).expect(text);
            assert_eq!((url.host.as_str(), url.port, url.target.as_str()), (host, port, target));
        }
        let bad = [
            ("https://127.0.0.1/", "TLS"),
            ("127.0.0.1:8080", "must begin with http://"),
            ("http://127.0.0.1:x/", "no port"),
            ("http://127.0.0.1:0/", "no port"),
            ("http://127.0.0.1:99999/", "no port"),
            ("http://127.0.0.1:+80/", "no port"),
            ("http://127.0.0.1:-80/", "no port"),
            ("http://127.0.0.1:/", "no port"),
            ("http:///users", "no host"),
            ("http://127.0.0.1:80/a b", "percent-encode"),
            ("http://127.0.0.1:80/é", "percent-encode"),
            ("http://127.0.0.1:80/a\r\nX: y", "percent-encode"),
        ];
        for (text, part) in bad {
            let error = Url::parse(text).err().expect(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn durations() {
        for (text, ms) in
            [("10s", 10_000), ("500ms", 500), ("2m", 120_000), ("1.5", 1_500), ("0", 0)]
        {
            assert_eq!(duration("-d", text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "ten", "-1s", "-1", "1e99", "NaN", "100h"] {
            assert!(duration("-d", text).is_err(), "{text}");
        }
    }
}
