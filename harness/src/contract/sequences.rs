//! The checks that take more than one request, or values chosen when the run begins so that
//! no service can know them beforehand. All of level `must`.

use std::collections::HashSet;
use std::thread;

use rand::{RngExt, SeedableRng, seq};
use rand_chacha::ChaCha8Rng;

use super::Target;
use super::case::{get, post};
use super::judge::{Miss, Rules};
use super::pattern::{Pattern, json};
use super::runner::{Context, first_user};
use super::trace::thousands;
use super::wire::Connection;
use crate::users::User;

const SAMPLE: usize = 200;
const REQUESTS: usize = 1_000;
const RANDOM_USERS: usize = 20;
const POSTS_IN_A_ROW: usize = 10;
const WRITERS: usize = 8;
const POSTS_PER_WRITER: usize = 25;
/// One byte more than a service takes.
const TOO_LARGE: usize = 64 * 1024 + 1;
const NOT_FOUND: &str = r#"{"error":"not found"}"#;

type Steps = dyn Fn(&mut Context) -> Result<(), Miss>;

/// A check of several requests.
pub struct Check {
    /// Unique among cases and checks.
    pub name: &'static str,
    /// Why it matters.
    pub why: &'static str,
    /// Makes it.
    pub run: Box<Steps>,
}

/// Names that are written and read back: check, why, name.
const NAMES: [(&str, &str, &str); 6] = [
    ("emoji-are-read-back", "four-byte characters get lost in 16-bit stores", "😀 👩\u{200d}👧 🇩🇪"),
    (
        "cjk-is-read-back",
        "three-byte characters are the daily case for many users",
        "李小龍 ひらがな 한국어",
    ),
    (
        "combining-marks-are-read-back",
        "a store that normalises text gives back another name than it took",
        "e\u{301}\u{323} Z\u{351}a\u{30a}",
    ),
    (
        "quotes-and-backslashes-are-read-back",
        "stored escaped or unescaped once too often, a name changes on its way",
        r#"\"Ada\" 'x' C:\new\u0041 \\"#,
    ),
    (
        "angle-brackets-and-ampersand-are-read-back",
        "reading may use another writer than creating does",
        "<script>&amp;</script> <&>",
    ),
    (
        "control-characters-are-read-back",
        "reading may use another writer than creating does",
        "a\nb\tc\u{1}d",
    ),
];

/// The checks that apply to this service.
pub fn checks(target: &Target) -> Vec<Check> {
    let mut checks = vec![
        check(
            "seeded-users-are-byte-exact",
            "a store seeded wrongly answers fast and wrongly",
            seeded_users,
        ),
        check(
            "thousand-requests-over-one-connection",
            "a limit on requests per connection turns a load test into a test of connects",
            thousand_requests,
        ),
        check(
            "post-then-get-over-the-same-connection",
            "a user that is answered must be stored",
            |context| post_then_get(context, true),
        ),
        check(
            "not-found-is-not-remembered",
            "a cached 404 hides a user who was created since",
            not_found_then_created,
        ),
        check(
            "seeded-users-cannot-be-overwritten",
            "an id from the request that reaches the store replaces a user",
            overwrite,
        ),
        check(
            "random-names-are-read-back",
            "values chosen by this run cannot be prepared in advance",
            random_users,
        ),
    ];
    for (name, why, text) in NAMES {
        checks.push(check(name, why, move |context| read_back(context, text)));
    }
    if target.shared_state {
        checks.extend([
            check(
                "post-then-get-over-another-connection",
                "the manifest says that state is shared: clients use pools of connections",
                |context| post_then_get(context, false),
            ),
            check(
                "ids-count-up-by-one",
                "ids that skip or repeat show a store that differs from its peers",
                ids_count_up,
            ),
            check(
                "ids-are-unique-across-connections",
                "two writers at once must not get one id: a race that no single client sees",
                ids_are_unique,
            ),
        ]);
    }
    checks.push(check(
        "serving-goes-on-after-413",
        "one large upload must not end the service for all",
        |context| goes_on_after(context, None),
    ));
    checks.push(check(
        "serving-goes-on-after-chunked-413",
        "one large upload must not end the service for all",
        |context| goes_on_after(context, Some(8_192)),
    ));
    checks
}

fn check(
    name: &'static str,
    why: &'static str,
    run: impl Fn(&mut Context) -> Result<(), Miss> + 'static,
) -> Check {
    Check { name, why, run: Box::new(run) }
}

/// Each check draws from a sequence of its own, so that one more check changes no other.
fn random(context: &Context, stream: u64) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(context.target.seed);
    random.set_stream(stream);
    random
}

fn seeded_users(context: &mut Context) -> Result<(), Miss> {
    let users = context.target.users;
    let sample = seq::index::sample(&mut random(context, 0), users.len(), SAMPLE.min(users.len()));
    let mut connection = context.open()?;
    for user in sample.iter().filter_map(|index| users.get(index)) {
        get_user(context, &mut connection, user)?;
    }
    Ok(())
}

fn thousand_requests(context: &mut Context) -> Result<(), Miss> {
    let users = context.target.users;
    let mut random = random(context, 1);
    let mut connection = context.open()?;
    for number in 1..=REQUESTS {
        let user = &users[random.random_range(..users.len())];
        get_user(context, &mut connection, user).map_err(|miss| {
            miss.at(&format!("request {} of {}", thousands(number), thousands(REQUESTS)))
        })?;
    }
    Ok(())
}

fn post_then_get(context: &mut Context, same: bool) -> Result<(), Miss> {
    let mut writer = context.open()?;
    let user = create(context, &mut writer, "Grace Hopper", "grace@example.org")?;
    if same {
        return get_user(context, &mut writer, &user);
    }
    // Several connections, since one of them may meet the writer's process by chance.
    for number in 1..=8 {
        let mut reader = context.open()?;
        get_user(context, &mut reader, &user)
            .map_err(|miss| miss.at(&format!("reading over connection {number} of 8")))?;
    }
    Ok(())
}

/// Asks for the id that comes next, before and after it is given.
fn not_found_then_created(context: &mut Context) -> Result<(), Miss> {
    let mut connection = context.open()?;
    let (name, email) = ("Ada", "ada@example.org");
    let first = create(context, &mut connection, name, email)?;
    let next = first.id.parse::<u64>().map_or(0, |id| id + 1);
    let request = get(&format!("/users/{next}"));
    let absent = Pattern::exactly(NOT_FOUND.to_owned());
    context
        .ask(&mut connection, &request, 404, &absent)
        .map_err(|miss| miss.at(&format!("user {next}, not yet created")))?;
    let second = create(context, &mut connection, name, email)?;
    get_user(context, &mut connection, &second)
        .map_err(|miss| miss.at(&format!("user {}, asked for before it was created", second.id)))
}

fn overwrite(context: &mut Context) -> Result<(), Miss> {
    let Some(user) = context.target.users.last() else { return Ok(()) };
    let mut connection = context.open()?;
    let body = format!(r#"{{"id":"{}","name":"Eve","email":"eve@b"}}"#, user.id);
    let created = Pattern::created("Eve", "eve@b");
    context.ask(&mut connection, &post(body.into_bytes(), None), 201, &created)?;
    get_user(context, &mut connection, user)
}

fn random_users(context: &mut Context) -> Result<(), Miss> {
    let mut random = random(context, 2);
    let mut connection = context.open()?;
    for _ in 0..RANDOM_USERS {
        let (name, email) = (random_text(&mut random), random_text(&mut random));
        let email = format!("{email}@{}", random.random_range(0..u32::MAX));
        let user = create(context, &mut connection, &name, &email)?;
        get_user(context, &mut connection, &user)?;
    }
    Ok(())
}

/// 1 to 40 characters of every length in UTF-8, none that JSON escapes.
fn random_text(random: &mut ChaCha8Rng) -> String {
    const LETTERS: [char; 16] =
        ['a', 'b', 'K', 'Z', '0', '9', ' ', '-', 'é', 'Ł', 'ß', 'я', '李', 'す', '한', '😀'];
    let length = random.random_range(1..=40);
    (0..length).map(|_| LETTERS[random.random_range(..LETTERS.len())]).collect()
}

fn read_back(context: &mut Context, name: &str) -> Result<(), Miss> {
    let mut connection = context.open()?;
    let user = create(context, &mut connection, name, &format!("{name}@b"))?;
    get_user(context, &mut connection, &user).map_err(|miss| miss.at("reading it back"))
}

fn ids_count_up(context: &mut Context) -> Result<(), Miss> {
    let mut connection = context.open()?;
    let mut before: Option<u64> = None;
    for _ in 0..POSTS_IN_A_ROW {
        let user = create(context, &mut connection, "Ada", "a@b")?;
        let id = user.id.parse().unwrap_or(0);
        if let Some(before) = before.filter(|before| before + 1 != id) {
            let what = format!("the id after {before} is {id}, expected {}", before + 1);
            return Err(Miss::new(what, &connection));
        }
        before = Some(id);
    }
    Ok(())
}

fn ids_are_unique(context: &mut Context) -> Result<(), Miss> {
    let mut connection = context.open()?;
    let (target, users, name) = (context.target, context.users, &context.name);
    let until = context.until;
    let write = || -> Result<Vec<String>, Miss> {
        let (rules, name) = (Rules::default(), name.clone());
        let mut context = Context { target, users, rules, name, until };
        let mut connection = context.open()?;
        (0..POSTS_PER_WRITER)
            .map(|_| create(&mut context, &mut connection, "Ada", "a@b").map(|user| user.id))
            .collect()
    };
    let outcomes: Vec<_> = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS).map(|_| scope.spawn(write)).collect();
        writers
            .into_iter()
            .map(|writer| writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut seen = HashSet::new();
    for outcome in outcomes {
        for id in outcome? {
            if !seen.insert(id.clone()) {
                let what = format!("two of {WRITERS} concurrent writers got the id {id}");
                // The exchange that gave it is gone; what the user is now still tells.
                connection.send(&get(&format!("/users/{id}")), &[]);
                _ = connection.receive_final(false);
                return Err(Miss::new(what, &connection));
            }
        }
    }
    Ok(())
}

/// Whether the large body is answered rightly is the matter of a case.
fn goes_on_after(context: &mut Context, chunk_size: Option<usize>) -> Result<(), Miss> {
    let mut connection = context.open()?;
    connection.send(&post(vec![b' '; TOO_LARGE], chunk_size), &[]);
    _ = connection.receive_final(false);
    let mut next = match Connection::open(context.target.address) {
        Ok(next) => next,
        Err(fault) => {
            // Refused now, it is this check that the service failed.
            let what = format!("a new connection afterwards: {fault}");
            return Err(Miss::new(what, &connection));
        }
    };
    if let Some((request, pattern)) = first_user(context.target) {
        context
            .ask(&mut next, &request, 200, &pattern)
            .map_err(|miss| miss.at("a GET over a new connection afterwards"))?;
    }
    create(context, &mut next, "Ada", "a@b")
        .map(|_| ())
        .map_err(|miss| miss.at("a POST over a new connection afterwards"))
}

fn create(
    context: &mut Context,
    connection: &mut Connection,
    name: &str,
    email: &str,
) -> Result<User, Miss> {
    let body = serde_json::json!({ "name": name, "email": email }).to_string();
    let pattern = Pattern::created(name, email);
    let id = context.ask(connection, &post(body.into_bytes(), None), 201, &pattern)?;
    let id = id.ok_or_else(|| Miss::new("the new id cannot be told".to_owned(), connection))?;
    Ok(User { id: id.to_string(), name: name.to_owned(), email: email.to_owned() })
}

fn get_user(context: &mut Context, connection: &mut Connection, user: &User) -> Result<(), Miss> {
    let request = get(&format!("/users/{}", user.id));
    let pattern = Pattern::exactly(json(user));
    context.ask(connection, &request, 200, &pattern).map(|_| ())
}
