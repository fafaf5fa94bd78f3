//! Programs that read their input from this process.

use crate::process::command;
use anyhow::{Context, Result, bail};
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Runs a program with this input; fails with its stderr unless it succeeds.
pub(crate) fn run_with_input(program: &mut Command, input: &str) -> Result<()> {
    let name = program.get_program().to_string_lossy().into_owned();
    let mut child = program
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {name}"))?;
    let mut stdin = child.stdin.take().context("no input")?;
    // A program that fails may not read all of it; its status tells why.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{name}: {}: {}", output.status, stderr.trim());
    }
    Ok(())
}

/// Loads rules of nftables.
pub(super) fn nft(rules: &str) -> Result<()> {
    run_with_input(command("nft").args(["-f", "-"]), rules).context("the node's rules")
}
