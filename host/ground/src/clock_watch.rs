//! Tells the operator of a system clock that Wharf does not follow, and notes the time in the
//! database.

use super::clock::Clock;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::interval;
use wharf_db::Db;

/// Interval between two comparisons with the system's clock.
const COMPARE_EVERY: Duration = Duration::from_secs(5);
/// Interval between two warnings.
const WARN_EVERY: Duration = Duration::from_secs(600);
/// Interval between two notes in the database. After a power cut, the next start knows the time up to
/// it.
const NOTE_EVERY: Duration = Duration::from_secs(600);

/// Runs until `stop` changes.
pub async fn run(db: Db, clock: Clock, mut stop: watch::Receiver<bool>) {
    let mut compare = interval(COMPARE_EVERY);
    let (mut warned, mut noted) = (None::<Instant>, None::<Instant>);
    let passed = |since: Option<Instant>, pause| since.is_none_or(|at| at.elapsed() >= pause);
    loop {
        tokio::select! {
            biased;
            _ = stop.changed() => return,
            _ = compare.tick() => {}
        }
        let state = clock.state();
        if !state.refused {
            if warned.take().is_some() {
                tracing::info!("the system's clock agrees with Wharf's time again");
            }
        } else if passed(warned, WARN_EVERY) {
            warned = Some(Instant::now());
            tracing::warn!(
                system = state.system.to_rfc3339(),
                wharf = state.now.to_rfc3339(),
                "the system's clock was set, and Wharf does not follow it: set it right, or run \
                 `wharf clock adopt` if it is right"
            );
        }
        if passed(noted, NOTE_EVERY) {
            noted = Some(Instant::now());
            if let Err(error) = clock.note(&db).await {
                tracing::error!(error = %error.chain(), "cannot note the time");
            }
        }
    }
}
