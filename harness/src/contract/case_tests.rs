//! Tests of reading cases, and of the case files of the repository themselves.

use super::*;

fn one(request: &str) -> Result<Case> {
    let text = format!(
        "level = \"must\"\n[[case]]\nname = \"a\"\nwhy = \"b\"\nrequest = {{ {request} }}\n\
         expect = {{ status = 200, body = \"{{user:1}}\" }}\n"
    );
    parse_file("f.toml", &text).map(|mut cases| cases.remove(0))
}

fn error(text: &str) -> String {
    format!("{:#}", parse_file("f.toml", text).unwrap_err())
}

#[test]
fn the_case_files_of_the_repository_are_sound() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/contract");
    let contract = load(&dir).unwrap();
    let (must, observed): (Vec<_>, Vec<_>) =
        contract.cases.iter().partition(|case| case.expect.is_some());
    assert!(must.len() >= 60, "{} must cases", must.len());
    assert!(observed.len() >= 12, "{} observed cases", observed.len());
    for case in &contract.cases {
        assert!(case.why.len() >= 15, "{}: `why` says too little", case.name);
        assert!(!case.why.contains('\n'), "{}: `why` is one line", case.name);
    }
    for case in must {
        let created = case.expect.as_ref().is_some_and(|expect| expect.status == 201);
        let captures = case.expect.as_ref().is_some_and(|expect| expect.body.has_new_id());
        assert_eq!(created, captures, "{}: 201 comes with a new id", case.name);
    }
}

#[test]
fn a_request_gets_the_headers_of_a_usual_client() {
    let get = one(r#"path = "/users/1""#).unwrap().request;
    assert_eq!(get.bytes, b"GET /users/1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let post = one(r#"method = "POST", path = "/users", body = "{}", headers = ["HOST: x"]"#);
    assert_eq!(
        String::from_utf8_lossy(&post.unwrap().request.bytes),
        "POST /users HTTP/1.1\r\nHOST: x\r\nContent-Type: application/json\r\n\
         Content-Length: 2\r\n\r\n{}"
    );
}

#[test]
fn bodies_are_chunked_filled_and_escaped() {
    let bytes = |request: &str| one(request).unwrap().request.bytes;
    let chunked = bytes(r#"path = "/", body = "abcdefghijkl", chunk-size = 11"#);
    assert!(chunked.ends_with(b"chunked\r\n\r\nb\r\nabcdefghijk\r\n1\r\nl\r\n0\r\n\r\n"));
    let filled = bytes(r#"path = "/", body = "[{fill}]", body-size = 5"#);
    assert!(filled.ends_with(b"Content-Length: 5\r\n\r\n[xxx]"));
    let repeated = bytes(r#"path = "/{3*ab}", body = "{\"a\":{2*[}{2*]}}""#);
    assert!(repeated.starts_with(b"GET /ababab HTTP"));
    assert!(repeated.ends_with(b"\r\n\r\n{\"a\":[[]]}"));
    let odd = bytes(r#"path = "/", body-escaped = 'a\xff\n\x00'"#);
    assert!(odd.ends_with(b"\r\n\r\na\xff\\n\0"));
    assert!(one(r#"path = "/", body-escaped = 'a\xf'"#).is_err());
}

#[test]
fn segments_are_cut_where_the_case_says() {
    let cuts = |request: &str| one(request).unwrap().request.cuts;
    assert_eq!(cuts(r#"raw = "abc", segments = "every-byte""#), [1, 2]);
    assert_eq!(cuts(r#"raw = "a\r\n\r\nbc", segments = "head-then-body""#), [5]);
    assert_eq!(cuts(r#"raw = "a\r\nb\r\n\r\nbc", segments = "every-line""#), [3, 6]);
    assert_eq!(cuts(r#"raw = "abcd", cut-at = [1, 3]"#), [1, 3]);
    for wrong in ["cut-at = [3, 1]", "cut-at = [0]", "cut-at = [4]"] {
        assert!(one(&format!(r#"raw = "abcd", {wrong}"#)).is_err(), "{wrong}");
    }
}

#[test]
fn mistakes_name_the_file_the_case_and_the_nearest_key() {
    let case = "level = \"must\"\n[[case]]\nname = \"known-user\"\nwhy = \"b\"\n";
    let wrong_key = error(&format!("{case}request = {{ pahs = \"/\" }}"));
    assert!(wrong_key.starts_with("f.toml, case `known-user`: "), "{wrong_key}");
    assert!(wrong_key.contains("`pahs`"), "{wrong_key}");
    assert!(wrong_key.contains("did you mean `path`"), "{wrong_key}");
    let wrong_word =
        error(&format!("{case}request = {{ path = \"/\", segments = \"every-lines\" }}"));
    assert!(wrong_word.contains("did you mean `every-line`"), "{wrong_word}");
    let wrong_level = error("level = \"most\"\ncase = []");
    assert!(wrong_level.contains("did you mean `must`"), "{wrong_level}");
    let no_expect = error(&format!("{case}request = {{ path = \"/\" }}"));
    assert!(no_expect.contains("has an `expect`"), "{no_expect}");
    let upper = error(
        "level = \"observed\"\n[[case]]\nname = \"A-b\"\nwhy = \"b\"\nrequest = {path=\"/\"}",
    );
    assert!(upper.contains("lower-case words"), "{upper}");
}

#[test]
fn names_are_unique_across_files() {
    let dir = tempfile::tempdir().unwrap();
    let text =
        "level = \"observed\"\n[[case]]\nname = \"a\"\nwhy = \"b\"\nrequest = {path=\"/\"}\n";
    assert!(load(dir.path()).unwrap_err().to_string().contains("no contract cases"));
    for file in ["1.toml", "2.toml"] {
        fs::write(dir.path().join(file), text).unwrap();
    }
    assert!(load(dir.path()).unwrap_err().to_string().contains("`a` is used twice"));
}
