//! Output for the person at the terminal. Progress goes to stderr, so that stdout has results only.

use std::io::Write;
use std::time::Instant;

/// Prints the title of a step.
pub fn step(title: &str) {
    eprintln!("── {title}");
}

/// Prints a remark below a step.
pub fn note(text: &str) {
    for line in text.lines() {
        eprintln!("   {line}");
    }
}

/// Runs `work` as a step, and prints how long it took.
pub fn timed<T>(title: &str, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    step(title);
    let start = Instant::now();
    let result = work();
    let outcome = if result.is_ok() { "done" } else { "failed" };
    note(&format!(
        "{outcome} after {:.1} s",
        start.elapsed().as_secs_f64()
    ));
    result
}

/// Reports that tests did not run. `cargo xtask test` repeats it at its end. Rust's test harness would
/// hide output of `println!` and `eprintln!` in a test that passes.
pub fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}
