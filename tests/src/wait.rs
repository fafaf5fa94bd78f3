//! Polling for conditions.

use crate::api::Api;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::time::{Duration, Instant};

/// The deadline of any condition, long enough for a slow, shared machine.
const DEADLINE: Duration = Duration::from_secs(300);

/// The first pause between two looks.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest one.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// The pause after a wait of this long. It grows to a sixteenth of the wait: what takes seconds is noticed hardly
/// later, and many looks each second would take the processor from what they wait for.
fn pause(waited: Duration) -> Duration {
    (waited / 16).clamp(PAUSE, LONGEST_PAUSE)
}

/// Polls until there is a value.
pub fn until<T>(what: &str, poll: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    eventually(what, DEADLINE, poll)
}

/// Polls until there is a value; fails after `deadline`.
pub fn eventually<T>(
    what: &str,
    deadline: Duration,
    poll: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    with_pauses(pause, what, deadline, poll)
}

/// Like [`until`], for a state that may be over soon: with short pauses only.
pub fn caught<T>(what: &str, poll: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    with_pauses(|_| PAUSE, what, DEADLINE, poll)
}

/// Polls with these pauses.
fn with_pauses<T>(
    pause: impl Fn(Duration) -> Duration,
    what: &str,
    deadline: Duration,
    mut poll: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let begin = Instant::now();
    loop {
        let polled = poll().inspect_err(|_| crate::server::print_warnings());
        if let Some(found) = polled? {
            return Ok(found);
        }
        let waited = begin.elapsed();
        if waited > deadline {
            crate::server::print_warnings();
            bail!("not within {deadline:?}: {what}");
        }
        std::thread::sleep(pause(waited));
    }
}

/// Polls until a value is the same at this many further looks, or the deadline passes. Returns the last
/// value.
pub fn settled<T: PartialEq>(looks: u32, deadline: Duration, mut look: impl FnMut() -> T) -> T {
    let (mut last, mut same) = (look(), 0);
    let further = with_pauses(
        |_| PAUSE,
        "the same value",
        deadline,
        || {
            let now = look();
            same = if now == last { same + 1 } else { 0 };
            last = now;
            Ok((same == looks).then_some(()))
        },
    );
    // The value may go on to change.
    drop(further);
    last
}

/// Waits for the interval that a protocol demands of its client.
pub fn interval(time: Duration) {
    let begin = Instant::now();
    let passed = || Ok((begin.elapsed() >= time).then_some(()));
    // No pause exceeds what is left.
    let pause = |waited| pause(waited).min(time.saturating_sub(waited));
    drop(with_pauses(pause, "the interval has passed", time, passed));
}

/// The sum of the metrics whose lines begin with this text: a name, or a name with its first labels. The
/// key of the client needs the scope `metrics`.
pub fn metric(api: &Api, start: &str) -> Result<f64> {
    let answer = api.get("/metrics")?.expect(200)?;
    let Value::String(text) = answer else {
        bail!("the metrics are no text");
    };
    let lines = text.lines().filter(|line| line.starts_with(start));
    let values = lines.map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    values.sum::<Option<f64>>().context("a metric is no number")
}

/// Waits until a node was observed this many times, from begin to end.
pub fn observed(api: &Api, node: &str, times: u32) -> Result<()> {
    let metric = || {
        metric(
            api,
            &format!("wharf_node_observations_total{{node=\"{node}\"}}"),
        )
    };
    let before = metric()?;
    until(&format!("further observations of {node}"), || {
        // One may have begun before.
        Ok((metric()? > before + f64::from(times)).then_some(()))
    })
}

/// Waits until the plugins were called this often since the start of the server.
pub fn called(api: &Api, times: usize) -> Result<()> {
    until(&format!("{times} calls of plugins"), || {
        let calls = metric(api, "wharf_plugin_call_duration_seconds_count")?;
        Ok((calls >= times as f64).then_some(()))
    })
}
