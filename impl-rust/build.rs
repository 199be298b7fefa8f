//! Hands the compiler's version to the ready line; a binary cannot ask for it at run time.

use std::process::Command;

fn main() {
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = Command::new(compiler)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        // `rustc 1.95.0 (59807616e 2026-04-14)`: the first two words are the version.
        .map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
        .unwrap_or_else(|| "rustc unknown".to_owned());
    println!("cargo::rustc-env=USERS_RUNTIME={version}");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
}
