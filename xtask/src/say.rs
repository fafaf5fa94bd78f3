//! What a person at the terminal sees. Progress goes to stderr, so that stdout is results only.

use std::time::Instant;

/// One line about what happens next.
pub fn step(text: &str) {
    eprintln!("── {text}");
}

/// A remark below a step.
pub fn note(text: &str) {
    for line in text.lines() {
        eprintln!("   {line}");
    }
}

/// Runs `work` as a named step and says how long it took.
pub fn timed<T>(name: &str, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    step(name);
    let start = Instant::now();
    let result = work();
    let outcome = if result.is_ok() { "done" } else { "failed" };
    note(&format!(
        "{outcome} after {:.1} s",
        start.elapsed().as_secs_f64()
    ));
    result
}
