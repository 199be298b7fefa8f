//! Both apps, over a socket: what they must answer, byte for byte.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::future::Future;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use users::body::BODY_LIMIT;
use users::store::Store;
use users::{app_axum, app_hyper};

const ADA: &str = r#"{"id":"1","name":"Ada <é> & \"co\"","email":"ada@x"}"#;
const NOT_FOUND: &str = r#"{"error":"not found"}"#;
const TOO_LARGE: &str = r#"{"error":"body too large"}"#;

/// Serves one user, with the id 1, for as long as the runtime lives.
fn start<S, F>(serve: S) -> (Runtime, SocketAddr)
where
    S: FnOnce(TcpListener, Arc<Store>, oneshot::Receiver<()>) -> F,
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let runtime = Runtime::new().unwrap();
    let store = Store::new(serde_json::from_str(&format!("[{ADA}]")).unwrap()).unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let serving = serve(listener, Arc::new(store), stopped);
    runtime.spawn(async move {
        let _stop = stop;
        serving.await
    });
    (runtime, address)
}

/// Sends a request that ends the connection; returns the status and the body.
fn ask(address: SocketAddr, request: &str, body: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    write!(stream, "Content-Length: {}\r\n\r\n", body.len()).unwrap();
    stream.write_all(body).unwrap();
    answer(&mut stream)
}

fn answer(stream: &mut TcpStream) -> (u16, String) {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let head = head.to_lowercase();
    assert!(head.contains("\r\ncontent-type: application/json\r\n"), "{head}");
    assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())), "{head}");
    assert!(!head.contains("\r\nallow:"), "{head}");
    (head[9..12].parse().unwrap(), body.to_owned())
}

fn body_of(length: usize) -> Vec<u8> {
    let mut body = br#"{"name":"B","email":"b@x","z":""#.to_vec();
    body.resize(length - 2, b'z');
    body.extend(b"\"}");
    body
}

fn keeps_the_contract(address: SocketAddr) {
    for (request, body, status, expected) in [
        ("GET /users/1", "", 200, ADA),
        ("GET /users/1?x=y", "", 200, ADA),
        ("GET /users/2", "", 404, NOT_FOUND),
        ("GET /users/01", "", 404, NOT_FOUND),
        ("GET /users/%FF", "", 404, NOT_FOUND),
        ("GET /users/", "", 404, NOT_FOUND),
        ("GET /users/1/", "", 404, NOT_FOUND),
        ("GET //users/1", "", 404, NOT_FOUND),
        ("GET /users", "", 404, NOT_FOUND),
        ("GET /", "", 404, NOT_FOUND),
        ("OPTIONS *", "", 404, NOT_FOUND),
        ("DELETE /users/1", "", 404, NOT_FOUND),
        ("POST /users/1", "{}", 404, NOT_FOUND),
        ("POST /users/", "{}", 404, NOT_FOUND),
        ("PUT /users", "{}", 404, NOT_FOUND),
        ("POST /users", "", 400, r#"{"error":"invalid json"}"#),
        ("POST /users", "{}", 400, r#"{"error":"name required"}"#),
        ("POST /users", r#"{"name":"B"}"#, 400, r#"{"error":"invalid email"}"#),
        (
            "POST /users?x=y",
            r#"{"id":9,"email":"b@x","name":"\u003c\u001F\u2028\b"}"#,
            201,
            "{\"id\":\"2\",\"name\":\"<\\u001f\u{2028}\\b\",\"email\":\"b@x\"}",
        ),
        (
            "GET /users/2",
            "",
            200,
            "{\"id\":\"2\",\"name\":\"<\\u001f\u{2028}\\b\",\"email\":\"b@x\"}",
        ),
    ] {
        let answer = ask(address, request, body.as_bytes());
        assert_eq!(answer, (status, expected.to_owned()), "{request} {body}");
    }
}

fn limits_the_body(address: SocketAddr) {
    assert_eq!(ask(address, "POST /users", &body_of(BODY_LIMIT)).0, 201);
    let too_large = (413, TOO_LARGE.to_owned());
    assert_eq!(ask(address, "POST /users", &body_of(BODY_LIMIT + 1)), too_large);
    // Far more than the buffers of a socket hold.
    assert_eq!(ask(address, "POST /users", &body_of(BODY_LIMIT * 256)), too_large);

    let mut stream = TcpStream::connect(address).unwrap();
    let head = "POST /users HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
    write!(stream, "{head}Transfer-Encoding: chunked\r\n\r\n").unwrap();
    for chunk in body_of(BODY_LIMIT + 1).chunks(10_000) {
        write!(stream, "{:x}\r\n", chunk.len()).unwrap();
        stream.write_all(chunk).unwrap();
        stream.write_all(b"\r\n").unwrap();
    }
    stream.write_all(b"0\r\n\r\n").unwrap();
    assert_eq!(answer(&mut stream), too_large);
    assert_eq!(ask(address, "GET /users/1", b""), (200, ADA.to_owned()));
}

#[test]
fn axum() {
    let (_runtime, address) = start(app_axum::serve);
    keeps_the_contract(address);
    limits_the_body(address);
}

#[test]
fn hyper() {
    let (_runtime, address) = start(app_hyper::serve);
    keeps_the_contract(address);
    limits_the_body(address);
}
