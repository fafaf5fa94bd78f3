//! Polling for conditions.

use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// The deadline of any condition, long enough for a slow, shared machine.
const DEADLINE: Duration = Duration::from_secs(120);

const PAUSE: Duration = Duration::from_millis(20);

/// Polls until there is a value.
pub fn until<T>(what: &str, poll: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    eventually(what, DEADLINE, poll)
}

/// Polls until there is a value; fails after `deadline`.
pub fn eventually<T>(
    what: &str,
    deadline: Duration,
    mut poll: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let begin = Instant::now();
    loop {
        if let Some(found) = poll()? {
            return Ok(found);
        }
        if begin.elapsed() > deadline {
            bail!("not within {deadline:?}: {what}");
        }
        std::thread::sleep(PAUSE);
    }
}
