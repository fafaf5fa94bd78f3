//! `cargo xtask build`: the server in release, with its plugins embedded.

use crate::process::{output, run};
use crate::{say, workspace};
use anyhow::{Context, Result};
use std::process::Command;

const WASM_TARGET: &str = "wasm32-wasip2";
/// With the whole workspace selected, so that libraries have the same features as in the tests and
/// are not compiled twice.
const BUILD: [&str; 6] = [
    "build",
    "--release",
    "--locked",
    "--workspace",
    "--bin",
    "wharf",
];

/// Builds the `wharf` binary ([`workspace::wharf_binary`]).
pub fn wharf() -> Result<()> {
    ensure_wasm_target()?;
    say::timed("Building wharf (release)", || run(cargo().args(BUILD)))
}

/// The target the plugins are compiled for. The pinned toolchain names it, but a machine may have
/// automatic installation switched off.
pub fn ensure_wasm_target() -> Result<()> {
    let print = ["--print", "target-libdir", "--target", WASM_TARGET];
    let directory = output(
        Command::new("rustc")
            .current_dir(workspace::root())
            .args(print),
    )
    .context("rustc is needed; install Rust by rustup")?;
    if std::path::Path::new(directory.trim()).is_dir() {
        return Ok(());
    }
    say::step(&format!(
        "Installing the Rust target {WASM_TARGET} (the plugins are WebAssembly)"
    ));
    run(Command::new("rustup")
        .current_dir(workspace::root())
        .args(["target", "add", WASM_TARGET]))
    .with_context(|| format!("the Rust target {WASM_TARGET} is needed"))
}

/// Cargo, in this workspace. Not with what cargo says of the package of a test that calls this: build
/// scripts that look at it would run again, and all that depends on them be compiled again.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace::root());
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.filter(|name| PACKAGE.iter().any(|prefix| name.starts_with(prefix))) {
        cargo.env_remove(name);
    }
    cargo
}

/// How the names of these variables begin.
const PACKAGE: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];
