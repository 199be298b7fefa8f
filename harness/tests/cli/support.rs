//! What the tests of the command line share: implementations made of the fixture service,
//! the harness as a user runs it, and the processes that it must not leave behind.

use assert_cmd::Command;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use tempfile::TempDir;

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

/// The harness as this test run built it.
pub fn harness() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
    command.current_dir(root()).timeout(std::time::Duration::from_secs(240));
    command
}

/// The fixture service: cargo builds examples before it runs tests.
pub fn fixture() -> PathBuf {
    let test = std::env::current_exe().expect("this test's path");
    let target = test.parent().and_then(Path::parent).expect("the target folder");
    let fixture = target.join("examples/fixture");
    assert!(fixture.is_file(), "{} is missing; run `cargo test` without --test", fixture.display());
    fixture
}

/// Folders of implementations for `--impl-dir`, gone with this value.
pub struct Implementations {
    dir: TempDir,
    args: Vec<String>,
}

impl Implementations {
    /// None yet.
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a temporary folder"), args: Vec::new() }
    }

    /// Adds one with this manifest.
    pub fn manifest(mut self, name: &str, manifest: &str) -> Self {
        let dir = self.dir.path().join(name);
        fs::create_dir_all(&dir).expect("a folder");
        fs::write(dir.join("impl.toml"), manifest).expect("a manifest");
        self.args.extend(["--impl-dir".to_owned(), dir.display().to_string()]);
        self
    }

    /// Adds one that runs the fixture; `rule` is the one that it breaks.
    pub fn fixture(self, name: &str, rule: Option<&str>) -> Self {
        // By a path of its own, so that its processes can be told from other tests'.
        let program = self.dir.path().join(format!("{name}-service"));
        std::os::unix::fs::symlink(fixture(), &program).expect("a link");
        let manifest = manifest_for(&program, name, rule);
        self.manifest(name, &manifest)
    }

    /// Arguments for the harness.
    pub fn args(&self) -> &[String] {
        &self.args
    }

    /// A path beside the implementations, for output.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

/// A manifest that runs the fixture.
pub fn fixture_manifest(name: &str, rule: Option<&str>) -> String {
    manifest_for(&fixture(), name, rule)
}

fn manifest_for(program: &Path, name: &str, rule: Option<&str>) -> String {
    // Patient, where waiting is not what is tested: other tests keep the CPUs busy.
    let patience_ms = if rule.is_some_and(|r| r.ends_with("never-ready")) { 1500 } else { 20_000 };
    let rule = rule.map(|r| format!(", \"--break\", \"{r}\"")).unwrap_or_default();
    format!(
        "name = \"{name}\"\nlanguage = \"Fixture\"\nstack = \"sockets\"\n\
         kind = \"standard-library\"\nstate = \"shared\"\n\n[run]\n\
         command = [\"{}\"{rule}]\nready-timeout-ms = {patience_ms}\n",
        program.display()
    )
}

/// Command lines with `needle` in them, other than the harness's own (whose arguments name
/// the services that it launches).
pub fn processes_with(needle: &str) -> Vec<String> {
    let numbers = fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    numbers
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(needle))
        .filter(|line| {
            let program = line.split(' ').next().unwrap_or_default();
            Path::new(program).file_name().is_none_or(|name| name != "harness")
        })
        .collect()
}

/// Standard output or error as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A comparison of `name` under way, of preset smoke and with `extra` arguments, up to the line
/// that begins with `until`.
pub fn started(
    setup: &Implementations,
    name: &str,
    run: &Path,
    extra: &[&str],
    until: &str,
) -> Child {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_harness"))
        .current_dir(root())
        .args(["compare", "--concurrency", "4", "--scenario", "get", "--preset", "smoke"])
        .args(["--only", name, "--out"])
        .arg(run)
        .args(setup.args())
        .args(extra)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let mut said = Vec::new();
    let found = lines.by_ref().map_while(Result::ok).any(|line| {
        let found = line.starts_with(until);
        said.push(line);
        found
    });
    assert!(found, "{until} never came: {said:#?}");
    // The rest must be read, or the harness would wait for somebody to read it.
    std::thread::spawn(move || lines.count());
    child
}

/// The run's `benchmark.json` has the shape that `docs/benchmark.schema.json` says.
pub fn assert_keeps_schema(run: &Path) {
    let json = |file: &Path| -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(file).expect("a file")).expect("JSON")
    };
    let schema = json(&root().join("docs/benchmark.schema.json"));
    let validator = jsonschema::draft202012::new(&schema).expect("a good schema");
    let record = json(&run.join("benchmark.json"));
    let errors: Vec<String> =
        validator.iter_errors(&record).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let mut other = record.clone();
    other["run"]["sed"] = other["run"]["seed"].take();
    assert!(!validator.is_valid(&other), "the schema takes anything");
}
