//! Waiting for what comes by itself.

use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// Time that anything may take on a slow, shared machine before a test gives up on it.
pub const PATIENCE: Duration = Duration::from_secs(120);

const PAUSE: Duration = Duration::from_millis(20);

/// Asks until there is something.
pub fn until<T>(what: &str, ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    eventually(what, PATIENCE, ask)
}

/// Asks until there is something, at most so long.
pub fn eventually<T>(
    what: &str,
    patience: Duration,
    mut ask: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let begin = Instant::now();
    loop {
        if let Some(found) = ask()? {
            return Ok(found);
        }
        if begin.elapsed() > patience {
            bail!("not within {patience:?}: {what}");
        }
        std::thread::sleep(PAUSE);
    }
}
