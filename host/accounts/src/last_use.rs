//! The last use of each key and session. It is written in the background, so that requests do not wait for it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use wharf_db::{Changes, Db, KeyPart, Rows as _, Table, TableRow};
use wharf_domain::error::Error;
use wharf_domain::time::Timestamp;

/// The resolution in milliseconds, and the interval of the writes.
const RESOLUTION_MS: i64 = 60_000;
pub(super) const INTERVAL: Duration = Duration::from_mins(1);

/// The most rows of one write.
const BATCH: usize = 1024;

/// The last use of one key or session; 0 if it was never used.
pub(super) struct LastUse {
    seen: AtomicI64,
    written: AtomicI64,
}

impl LastUse {
    pub(super) fn new(written: Option<Timestamp>) -> Self {
        let written = written.map_or(0, |at| at.0);
        Self {
            seen: AtomicI64::new(written),
            written: AtomicI64::new(written),
        }
    }

    /// Notes a use. Most calls only read, so that requests do not share a written cache line.
    pub(super) fn set(&self, now: Timestamp) {
        let seen = self.seen.load(Ordering::Relaxed);
        if now.0.abs_diff(seen) >= RESOLUTION_MS.unsigned_abs() {
            self.seen.store(now.0, Ordering::Relaxed);
        }
    }

    pub(super) fn get(&self) -> Option<Timestamp> {
        let seen = self.seen.load(Ordering::Relaxed);
        (seen != 0).then_some(Timestamp(seen))
    }

    /// Returns the last use if it is not written yet.
    fn unwritten(&self) -> Option<Timestamp> {
        let seen = self.get()?;
        (seen.0 != self.written.load(Ordering::Relaxed)).then_some(seen)
    }
}

/// Writes the last uses that are not written yet, in batches, of the keys or sessions that exist.
pub(super) async fn write<'a, F: KeyPart, R: KeyPart, V: TableRow>(
    db: &Db,
    of: &'static Table<F, R, V>,
    table: &'static Table<F, R, Timestamp>,
    uses: impl Iterator<Item = ((F, R), &'a LastUse)>,
) -> Result<(), Error> {
    let unwritten: Vec<_> = uses
        .filter_map(|(id, last_use)| Some((id, last_use, last_use.unwritten()?)))
        .collect();
    for batch in unwritten.chunks(BATCH) {
        let rows: Vec<_> = batch.iter().map(|(id, _, at)| (id.clone(), *at)).collect();
        db.write(move |view| {
            let mut changes = Changes::none();
            for (id, at) in &rows {
                if view.rows.get(of, id.clone())?.is_some() {
                    changes = changes.put(table, id.clone(), *at);
                }
            }
            Ok(((), changes))
        })
        .await?;
        for (_, last_use, at) in batch {
            last_use.written.store(at.0, Ordering::Relaxed);
        }
    }
    Ok(())
}
