//! Implementations as their manifests (`impl-*/impl.toml`) describe them.
//!
//! Turns TOML into types that cannot be wrong. Runs nothing: whether a toolchain is
//! there is the question of `process::toolchain`.

use crate::toml_file::{self, FileError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file that makes a folder an implementation.
pub const FILE_NAME: &str = "impl.toml";
/// The variant that a bare implementation name stands for.
pub const DEFAULT_VARIANT: &str = "default";
/// Time to the ready line where the manifest gives none; a cold JVM needs about a second.
const DEFAULT_READY_TIMEOUT_MS: u64 = 10_000;

/// A program and its arguments. Never empty, never given to a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Argv(Vec<String>);

impl Argv {
    /// `None` without a program.
    pub fn new(words: Vec<String>) -> Option<Self> {
        words.first().is_some_and(|program| !program.is_empty()).then_some(Self(words))
    }
    /// The program: a name looked up on `PATH`, or a path relative to the manifest's folder.
    pub fn program(&self) -> &str {
        &self.0[0]
    }
    /// Everything after the program.
    pub fn args(&self) -> &[String] {
        &self.0[1..]
    }
    /// Program and arguments.
    pub fn all(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Argv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

/// What sort of code a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Only what the language ships.
    StandardLibrary,
    /// A framework that people use.
    Framework,
    /// A setting that differs from the defaults.
    Tuned,
}

/// Who sees a user that was posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Every later request.
    Shared,
    /// Requests that reach the same worker process.
    PerProcess,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::StandardLibrary => "standard library",
            Kind::Framework => "framework",
            Kind::Tuned => "tuned",
        })
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Shared => "shared",
            State::PerProcess => "per process",
        })
    }
}

/// A toolchain that must be there before building.
#[derive(Debug, Clone)]
pub struct Requirement {
    /// Command that prints the version.
    pub command: Argv,
    /// Finds the version in the output; has a group named `version`.
    pub pattern: regex::Regex,
    /// Smallest version that will do.
    pub minimum: Version,
    /// What to tell somebody who lacks it.
    pub hint: String,
}

/// A dotted version number; compared part by part, missing parts count as 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version(Vec<u64>);

impl Version {
    /// Parses `1`, `1.22` or `1.26.8`; anything else is `None`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(|p| p.parse().ok()).collect::<Option<Vec<u64>>>()?;
        while parts.last() == Some(&0) && parts.len() > 1 {
            parts.pop();
        }
        Some(Self(parts))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.0.cmp(&other.0))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(u64::to_string).collect();
        f.write_str(&parts.join("."))
    }
}

/// A named way to run an implementation.
#[derive(Debug, Clone)]
pub struct Variant {
    /// Its name; [`DEFAULT_VARIANT`] for the one shown by the bare implementation name.
    pub name: String,
    /// Library or framework that speaks HTTP.
    pub stack: String,
    /// Sort of code.
    pub kind: Kind,
    /// Who sees posted users.
    pub state: State,
    /// How to start it, in the manifest's folder.
    pub command: Argv,
    /// Environment; beside it the service sees little more than `PATH`.
    pub env: BTreeMap<String, String>,
    /// Why this row exists.
    pub note: Option<String>,
    /// How long to wait for the ready line.
    pub ready_timeout: Duration,
}

/// One service in one language.
#[derive(Debug, Clone)]
pub struct Implementation {
    /// Short name: lower-case letters, digits and dashes.
    pub name: String,
    /// Language as people write it.
    pub language: String,
    /// Folder of the manifest, absolute.
    pub dir: PathBuf,
    /// Asked before building.
    pub requires: Vec<Requirement>,
    /// Run in order before the first start.
    pub build: Vec<Argv>,
    /// The implementation's own unit tests.
    pub tests: Vec<Argv>,
    /// At least the default one, which comes first.
    pub variants: Vec<Variant>,
}

// The wire: what may stand in the file, key by key.

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WireManifest {
    name: String,
    language: String,
    stack: String,
    kind: Kind,
    state: State,
    #[serde(default)]
    requires: Vec<WireRequirement>,
    #[serde(default)]
    build: Vec<WireCommand>,
    #[serde(default)]
    test: Vec<WireCommand>,
    run: WireRun,
    #[serde(default)]
    variant: Vec<WireVariant>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireRequirement {
    command: Vec<String>,
    pattern: String,
    minimum: String,
    hint: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireCommand {
    command: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WireRun {
    command: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    ready_timeout_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireVariant {
    name: String,
    stack: Option<String>,
    command: Option<Vec<String>>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    kind: Option<Kind>,
    state: Option<State>,
    note: Option<String>,
}

/// Reads the manifest in `dir`.
///
/// # Errors
/// Names the file, the line and the key, and says what would be right.
pub fn load(dir: &Path) -> Result<Implementation, FileError> {
    let file = dir.join(FILE_NAME);
    let (wire, text) = toml_file::read::<WireManifest>(&file)?;
    let dir = dir
        .canonicalize()
        .map_err(|e| FileError::whole(&file, format!("its folder cannot be resolved: {e}")))?;
    Checker { file: &file, text: &text }.implementation(wire, dir)
}

/// Reads every `impl-*/impl.toml` below `root`, and the folders in `extra`, in order of name.
///
/// # Errors
/// The first manifest that cannot be used, or two implementations of one name.
pub fn load_all(root: &Path, extra: &[PathBuf]) -> Result<Vec<Implementation>, FileError> {
    let entries = std::fs::read_dir(root)
        .map_err(|e| FileError::whole(root, format!("cannot be listed: {e}")))?;
    let mut dirs: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|e| e.file_name().to_string_lossy().starts_with("impl-"))
        .map(|e| e.path())
        .filter(|p| p.join(FILE_NAME).is_file())
        .collect();
    dirs.extend(extra.iter().cloned());
    let mut all: Vec<Implementation> = Vec::new();
    for dir in dirs {
        let implementation = load(&dir)?;
        if let Some(twin) = all.iter().find(|i| i.name == implementation.name) {
            return Err(FileError::whole(
                &dir.join(FILE_NAME),
                format!("name `{}` is taken by {}; choose another", twin.name, twin.dir.display()),
            ));
        }
        all.push(implementation);
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

/// Turns the wire into the domain; knows the file so that every complaint can name its line.
struct Checker<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Checker<'_> {
    fn error(&self, needle: &str, message: impl Into<String>) -> FileError {
        FileError::at(self.file, self.text, needle, message)
    }

    fn implementation(
        &self,
        wire: WireManifest,
        dir: PathBuf,
    ) -> Result<Implementation, FileError> {
        self.name("name", &wire.name)?;
        for (key, value) in [("language", &wire.language), ("stack", &wire.stack)] {
            if value.trim().is_empty() {
                return Err(self.error(key, format!("`{key}` is empty")));
            }
        }
        let requires =
            wire.requires.into_iter().map(|r| self.requirement(r)).collect::<Result<_, _>>()?;
        let build = self.commands("[[build]]", wire.build)?;
        let tests = self.commands("[[test]]", wire.test)?;
        let base = Variant {
            name: DEFAULT_VARIANT.to_owned(),
            stack: wire.stack,
            kind: wire.kind,
            state: wire.state,
            command: self.argv("[run]", wire.run.command)?,
            env: wire.run.env,
            note: None,
            ready_timeout: Duration::from_millis(
                wire.run.ready_timeout_ms.unwrap_or(DEFAULT_READY_TIMEOUT_MS),
            ),
        };
        let variants = self.variants(base, wire.variant)?;
        Ok(Implementation {
            name: wire.name,
            language: wire.language,
            dir,
            requires,
            build,
            tests,
            variants,
        })
    }

    fn variants(&self, base: Variant, wires: Vec<WireVariant>) -> Result<Vec<Variant>, FileError> {
        let mut variants = vec![base.clone()];
        let mut named: Vec<String> = Vec::new();
        for wire in wires {
            self.name("variant", &wire.name)?;
            if named.contains(&wire.name) {
                return Err(self.error(
                    &format!("name = \"{}\"", wire.name),
                    format!("two variants are named `{}`; rename one", wire.name),
                ));
            }
            named.push(wire.name.clone());
            let mut variant = base.clone();
            variant.name = wire.name;
            if let Some(command) = wire.command {
                variant.command = self.argv("[[variant]]", command)?;
            }
            variant.env.extend(wire.env);
            variant.stack = wire.stack.unwrap_or(variant.stack);
            variant.kind = wire.kind.unwrap_or(variant.kind);
            variant.state = wire.state.unwrap_or(variant.state);
            variant.note = wire.note;
            if variant.name == DEFAULT_VARIANT {
                variants[0] = variant;
            } else {
                variants.push(variant);
            }
        }
        Ok(variants)
    }

    fn requirement(&self, wire: WireRequirement) -> Result<Requirement, FileError> {
        let pattern = regex::Regex::new(&wire.pattern).map_err(|e| {
            let reason = e.to_string();
            let reason = reason.lines().last().unwrap_or_default().trim().to_owned();
            self.error("pattern", format!("`pattern` does not compile: {reason}"))
        })?;
        if !pattern.capture_names().flatten().any(|n| n == "version") {
            return Err(self.error(
                "pattern",
                "`pattern` has no group named `version`; write (?<version>\\d+\\.\\d+)",
            ));
        }
        let minimum = Version::parse(&wire.minimum).ok_or_else(|| {
            let message = format!("`minimum` is `{}`, not a version like 1.22", wire.minimum);
            self.error("minimum", message)
        })?;
        let command = self.argv("[[requires]]", wire.command)?;
        Ok(Requirement { command, pattern, minimum, hint: wire.hint })
    }

    fn commands(&self, table: &str, wires: Vec<WireCommand>) -> Result<Vec<Argv>, FileError> {
        wires.into_iter().map(|w| self.argv(table, w.command)).collect()
    }

    fn argv(&self, table: &str, command: Vec<String>) -> Result<Argv, FileError> {
        Argv::new(command).ok_or_else(|| {
            let message =
                format!("`command` in {table} is empty; give program and arguments, one each");
            self.error(table, message)
        })
    }

    /// Names end up in labels, file names and tables: keep them plain.
    fn name(&self, key: &str, name: &str) -> Result<(), FileError> {
        if is_name(name) {
            return Ok(());
        }
        let message = format!(
            "{key} `{name}` will not do; use 1 to 32 lower-case letters, digits and dashes, \
             a letter first"
        );
        Err(self.error(&format!("\"{name}\""), message))
    }
}

/// Whether `name` can name an implementation or a variant.
pub fn is_name(name: &str) -> bool {
    name.len() <= 32
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
name = "demo"
language = "Demo"
stack = "sockets"
kind = "standard-library"
state = "shared"

[[requires]]
command = ["demo", "--version"]
pattern = 'demo (?<version>\d+\.\d+)'
minimum = "1.22"
hint = "install it"

[run]
command = ["./demo"]

[[variant]]
name = "fast"
kind = "tuned"
env = { FAST = "1" }
note = "a row"
"#;

    fn read(text: &str) -> Result<Implementation, FileError> {
        let dir = tempfile::tempdir().expect("temporary folder");
        std::fs::write(dir.path().join(FILE_NAME), text).expect("write manifest");
        load(dir.path())
    }

    #[test]
    fn a_variant_inherits_what_it_does_not_override() {
        let demo = read(GOOD).expect("good manifest");
        assert_eq!(demo.variants.len(), 2);
        assert_eq!(demo.variants[1].command.all(), ["./demo"]);
        assert_eq!(demo.variants[1].kind, Kind::Tuned);
        assert_eq!(demo.variants[0].kind, Kind::StandardLibrary);
        assert!(demo.variants[0].env.is_empty());
    }

    #[test]
    fn every_mistake_names_file_line_and_remedy() {
        // (what is replaced, by what, the line, a part of the message)
        let table = [
            ("kind = \"standard-library\"", "kind = \"quick\"", Some(5), "standard-library"),
            ("stack =", "stakc =", Some(4), "did you mean `stack`"),
            ("[\"./demo\"]", "[]", Some(14), "is empty"),
            ("[\"./demo\"]", "\"./demo\"", Some(15), "expected a sequence"),
            ("(?<version>", "(?<v>", Some(10), "group named `version`"),
            ("(?<version>", "(?<version", Some(10), "does not compile"),
            ("\"1.22\"", "\"new\"", Some(11), "not a version"),
            ("\"fast\"", "\"Fast!\"", Some(18), "lower-case"),
            ("\"demo\"\nlang", "\"../demo\"\nlang", Some(2), "lower-case"),
            ("[run]\ncommand = [\"./demo\"]", "", None, "missing field `run`"),
        ];
        for (from, to, line, part) in table {
            assert!(GOOD.contains(from), "{from}");
            let error = read(&GOOD.replacen(from, to, 1)).expect_err(to);
            assert!(error.message.contains(part), "{to}: {error}");
            assert!(error.file.ends_with(FILE_NAME));
            if line.is_some() {
                assert_eq!(error.line, line, "{to}: {error}");
            }
        }
    }

    #[test]
    fn two_variants_of_one_name_are_refused() {
        let twice = format!("{GOOD}\n[[variant]]\nname = \"fast\"\n");
        assert!(read(&twice).unwrap_err().message.contains("two variants are named `fast`"));
    }

    #[test]
    fn versions_compare_by_number() {
        let v = |t: &str| Version::parse(t).expect("version");
        assert!(v("1.9") < v("1.22"));
        assert!(v("20.0.0") == v("20"));
        assert!(v("1.22.1") > v("1.22"));
        assert!(Version::parse("1.x").is_none());
    }
}
