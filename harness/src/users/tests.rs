use std::{collections::HashSet, path::PathBuf};

use super::*;

type Predicate = Box<dyn Fn(&str) -> bool>;

fn within(lo: char, hi: char) -> Predicate {
    Box::new(move |name| name.chars().any(|c| (lo..=hi).contains(&c)))
}

fn any_of(set: &'static str) -> Predicate {
    Box::new(move |name| name.chars().any(|c| set.contains(c)))
}

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/users.json")
}

#[test]
fn the_committed_file_is_what_the_generator_makes() {
    let file = fs::read_to_string(committed()).expect("data/users.json is committed");
    // Not assert_eq: nobody wants to read a megabyte of it.
    assert!(file == to_json(&generate()), "data/users.json is out of date; {NEXT_STEP}");
    assert_eq!(load(&committed()).expect("the committed file loads").len(), COUNT);
}

#[test]
fn shares_add_up_to_a_thousand() {
    assert_eq!(names::SCRIPTS.iter().map(|script| script.per_mille).sum::<u32>(), 1_000);
}

#[test]
fn every_class_of_names_is_there_and_most_are_latin() {
    let cases: Vec<(&str, usize, Predicate)> = vec![
        ("ASCII", 4_000, Box::new(str::is_ascii)),
        ("accents", 1_000, any_of("áéíóúñçèêëïãõøåæœþðřžő")),
        ("German", 400, any_of("äöüßÄÖÜ")),
        ("Polish", 200, any_of("łąęśżźćŁŚŻĆ")),
        ("Turkish", 200, any_of("ğışİŞ")),
        ("Vietnamese", 200, any_of("ễầạịỳươứợượĐđ")),
        ("decomposed", 100, within('\u{300}', '\u{36f}')),
        ("Greek", 100, within('\u{370}', '\u{3ff}')),
        ("Cyrillic", 200, within('\u{400}', '\u{4ff}')),
        ("Arabic", 100, within('\u{600}', '\u{6ff}')),
        ("Hebrew", 50, within('\u{590}', '\u{5ff}')),
        ("Hindi", 80, within('\u{900}', '\u{97f}')),
        ("Thai", 50, within('\u{e00}', '\u{e7f}')),
        ("Han", 150, within('\u{4e00}', '\u{9fff}')),
        ("Han beyond the basic plane", 10, within('\u{20000}', '\u{2fa1f}')),
        ("kana", 20, within('\u{3040}', '\u{30ff}')),
        ("Korean", 40, within('\u{ac00}', '\u{d7a3}')),
        ("emoji", 60, within('\u{1f000}', '\u{1faff}')),
        ("emoji sequences", 20, any_of("\u{200d}")),
        ("apostrophes", 100, any_of("'’")),
        ("double quotes", 40, any_of("\"")),
        ("backslashes", 15, any_of("\\")),
        ("markup", 15, Box::new(|name| "<&>".chars().all(|c| name.contains(c)))),
        ("one character", 10, Box::new(|name| name.chars().count() == 1)),
        ("long", 10, Box::new(|name| name.chars().count() >= LONG_NAME_CHARS)),
    ];
    let users = generate();
    for (class, least, belongs) in cases {
        let found = users.iter().filter(|user| belongs(&user.name)).count();
        assert!(found >= least, "{class}: {found} of at least {least} names");
    }
}

#[test]
fn nothing_that_encoders_write_differently() {
    for user in generate() {
        let odd = |c: char| {
            c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffd}')
        };
        assert!(!user.name.contains(odd), "user {}: {:?}", user.id, user.name);
        assert_eq!(user.name.trim(), user.name, "user {}", user.id);
    }
}

#[test]
fn emails_are_unique_and_look_valid() {
    let users = generate();
    let unique: HashSet<&str> = users.iter().map(|user| user.email.as_str()).collect();
    assert_eq!(unique.len(), COUNT);
    for User { email, .. } in &users {
        let (local, domain) = email.split_once('@').expect("an @");
        let fits = |text: &str, extra: &str| {
            text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || extra.contains(c))
                && text.starts_with(|c: char| c.is_ascii_lowercase())
                && !text.contains("..")
        };
        assert!(fits(local, "._+") && local.len() <= 64, "{email}");
        assert!(fits(domain, ".-"), "{email}");
        assert!(
            [".test", "example.com", "example.org", "example.net"]
                .iter()
                .any(|end| domain.ends_with(end)),
            "{email}"
        );
    }
    let lengths: Vec<usize> = users.iter().map(|user| user.email.len()).collect();
    assert!(lengths.iter().any(|&n| n <= 10) && lengths.iter().any(|&n| n >= 70));
}

#[test]
fn a_bad_file_is_named_with_the_place_and_the_next_step() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("users.json");
    let whole = to_json(&generate()[..3]);
    let cases = [
        (None, "cannot read"),
        (Some(String::new()), "cut short"),
        (Some(whole[..whole.len() / 2].to_owned()), "cut short"),
        (Some(whole.clone() + "x"), "line 6 column 1"),
        (Some("[]".to_owned()), "no users"),
        (Some(whole.replace("\"email\"", "\"mail\"")), "`mail`"),
        (Some(whole.replace("\"id\":\"2\"", "\"id\":2")), "line 3"),
        (Some(whole.replace("\"id\":\"2\"", "\"id\":\"02\"")), "user number 2 has the id \"02\""),
        (Some(whole.replace("\"id\":\"3\"", "\"id\":\"2\"")), "user number 3 has the id \"2\""),
        (Some(whole.replace('@', "#")), "user 1 has no @"),
    ];
    for (text, expected) in cases {
        if let Some(text) = text {
            fs::write(&path, text).expect("a file written");
        }
        let message = load(&path).expect_err(expected).to_string();
        for part in [expected, "users.json", NEXT_STEP] {
            assert!(message.contains(part), "{part:?} is not in {message:?}");
        }
        assert!(!message.contains('\n'), "{message:?}");
    }
}

#[test]
fn what_is_written_reads_back() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("users.json");
    fs::write(&path, to_json(&generate())).expect("a file written");
    assert_eq!(load(&path).expect("a good file"), generate());
}
