//! Writes into the harness what it was built from: the working tree may have moved on by the
//! time it measures.

use std::process::Command;

fn main() {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    // Only what goes into the program: goose is another one.
    let status = ["status", "--porcelain", "--", ".", ":!goose", "../Cargo.toml", "../Cargo.lock"];
    let dirty = git(&status);
    let dirty = dirty.map_or("unknown".to_owned(), |files| (!files.is_empty()).to_string());
    println!("cargo:rustc-env=HARNESS_COMMIT={commit}");
    println!("cargo:rustc-env=HARNESS_DIRTY={dirty}");
    // A commit changes the log of HEAD; an edit changes a file below.
    for path in ["../.git/logs/HEAD", "src", "Cargo.toml", "../Cargo.toml", "../Cargo.lock"] {
        if std::path::Path::new(path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
}
