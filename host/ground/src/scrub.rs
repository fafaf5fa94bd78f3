//! The scrub of the database: at the start and each day, every page is read from the disk.

use super::clock::Clock;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::interval;
use wharf_db::Db;
use wharf_domain::error::Error;

/// Interval between the starts of two scrubs.
const EVERY: Duration = Duration::from_secs(24 * 3600);
/// Pause after each mebibyte. A scrub reads 16 MiB in a second at most, a small part of what any disk can.
const PAUSE: Duration = Duration::from_micros(62_500);

/// Runs until `stop` changes.
pub async fn run(db: Db, clock: Clock, mut stop: watch::Receiver<bool>) {
    let mut scrubs = interval(EVERY);
    loop {
        tokio::select! {
            biased;
            _ = stop.changed() => return,
            _ = scrubs.tick() => {}
        }
        let (db, clock, ended) = (db.clone(), clock.clone(), stop.clone());
        let done = tokio::task::spawn_blocking(move || scrub(&db, &clock, &ended)).await;
        let done = done.map_err(|error| Error::caused("the scrub was aborted", error));
        if let Err(error) = done.and_then(|done| done) {
            tracing::error!(error = %error.chain(), "the scrub of the database failed");
        }
    }
}

fn scrub(db: &Db, clock: &Clock, ended: &watch::Receiver<bool>) -> Result<(), Error> {
    let scrubbed = db.scrub(clock.now(), || {
        std::thread::sleep(PAUSE);
        !ended.has_changed().unwrap_or(true)
    })?;
    let Some(found) = scrubbed else {
        return Ok(());
    };
    let (pages, remains, damaged) = (found.pages, found.remains, found.damaged);
    match damaged {
        0 => tracing::info!(pages, remains, "the scrub found no damage in the database"),
        damaged => tracing::error!(
            pages,
            damaged,
            "the scrub found damaged pages in the database: rows in them are not served; check the disk, \
             see what `wharf fsck` finds, and restore a backup with `wharf restore`"
        ),
    }
    Ok(())
}
