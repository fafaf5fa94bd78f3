//! Running other programs.

use anyhow::{Context, Result, ensure};
use std::process::Command;
use std::time::Instant;

/// Runs a program to its end, with the terminal's output; fails unless it succeeds.
pub fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status();
    let status = status.with_context(|| format!("cannot run {name}"))?;
    ensure!(status.success(), "{name}: {status}");
    Ok(())
}

/// Runs `work` as a step with a title, and prints how long it took.
pub fn step(title: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    eprintln!("── {title}");
    let start = Instant::now();
    let result = work();
    let outcome = if result.is_ok() { "done" } else { "failed" };
    eprintln!("   {outcome} after {:.1} s", start.elapsed().as_secs_f64());
    result
}
