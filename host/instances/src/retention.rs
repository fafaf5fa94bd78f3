//! Retention: removes events and ledgers of purged instances that are old enough, and old records of the audit
//! log. Ledgers leave the exact costs of their months, and the audit log its last removed hash.

use super::App;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::interval;
use wharf_config::RetentionConfig;
use wharf_db::{Changes, CommitTimes, EventRow, RECORDED, Read, Rows as _, View};
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::ledger::months;
use wharf_domain::month::Month;
use wharf_domain::time::Timestamp;
use wharf_ground::apart::apart;
use wharf_ground::users::USERS;

/// A day in milliseconds.
const DAY_MS: i64 = 24 * 3_600_000;
/// Interval between two sweeps.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);
/// Instances of one write. Other writes wait for it, for milliseconds.
const BATCH: usize = 64;
/// Events that one write removes from the sequence of an owner.
const TRIM: usize = 512;

/// Runs until `stop` changes.
pub async fn run(app: Arc<App>, mut stop: watch::Receiver<bool>) {
    let mut sweeps = interval(SWEEP_EVERY);
    loop {
        tokio::select! {
            biased;
            _ = stop.changed() => return,
            _ = sweeps.tick() => {}
        }
        let swept = tokio::select! {
            biased;
            _ = stop.changed() => return,
            swept = sweep(&app) => swept,
        };
        match swept {
            Ok(0) => {}
            Ok(instances) => tracing::info!(instances, "removed old events and ledgers"),
            Err(error) => tracing::error!(error = %error.chain(), "retention failed"),
        }
        match sweep_audit(&app).await {
            Ok(0) => {}
            Ok(records) => tracing::info!(records, "removed old records of the audit log"),
            Err(error) => tracing::error!(error = %error.chain(), "retention failed"),
        }
    }
}

/// The times before which records are removed.
#[derive(Clone, Copy)]
struct Cutoffs {
    events: Timestamp,
    ledgers: Timestamp,
}

impl Cutoffs {
    fn new(retention: &RetentionConfig, times: CommitTimes) -> Self {
        let days = i64::from(retention.events_days) * DAY_MS;
        Self {
            events: Timestamp(times.earlier().0.saturating_sub(days)),
            ledgers: Month::of(times.now).before(retention.ledger_months).start(),
        }
    }
}

/// Looks at all records once. Returns the number of instances with something removed.
async fn sweep(app: &App) -> Result<usize, Error> {
    let cutoffs = Cutoffs::new(&app.config().retention, app.clock.times());
    trim(app, cutoffs.events, app.clock.now()).await?;
    let (mut after, mut removed) = (None, 0);
    loop {
        let db = app.db.clone();
        let look = move || {
            db.read(|rows| {
                let batch = rows.recorded_after(after, BATCH)?;
                let mut due = Vec::new();
                for (owner, id) in &batch {
                    match changes(rows, *owner, *id, cutoffs) {
                        Ok(changes) if changes.is_empty() => {}
                        Ok(_) => due.push((*owner, *id)),
                        Err(error) => {
                            tracing::error!(%id, error = %error.chain(), "retention failed");
                        }
                    }
                }
                Ok::<_, Error>((batch.last().copied(), due))
            })
        };
        let looked = apart(look).await;
        let (last, due) = looked.map_err(|e| Error::caused("retention was aborted", e))??;
        if last.is_none() {
            return Ok(removed);
        }
        after = last;
        if !due.is_empty() {
            removed += due.len();
            app.db
                .write_essential(move |view| {
                    let mut all = Changes::none();
                    for (owner, id) in &due {
                        all = all.with(changes(view.rows, *owner, *id, cutoffs)?);
                    }
                    Ok(((), all))
                })
                .await?;
        }
    }
}

/// Removes old events from the front of the sequence of each owner. The instances keep them.
async fn trim(app: &App, before: Timestamp, now: Timestamp) -> Result<(), Error> {
    let owners = app.db.read(|rows| {
        let users = rows.all(&USERS)?;
        users.map(|row| row.map(|(user, ..)| user)).collect()
    });
    let owners: Vec<UserId> = owners?;
    for owner in owners {
        loop {
            let through = app.db.read(|rows| {
                let first = rows.owner_events(owner, rows.trimmed_events(owner)?, TRIM)?;
                let times = first.iter().map(|row| (row.seq, row.event.at));
                Ok(last_old(times, before, now))
            });
            // Damaged rows of one owner do not keep those of others.
            let through = through.inspect_err(
                |error| tracing::error!(owner = owner.0, error = %error.chain(), "retention failed"),
            );
            let Ok(Some(through)) = through else { break };
            let change = move |_: &View<'_>| Ok(((), Changes::none().trim_events(owner, through)));
            app.db.write_essential(change).await?;
        }
    }
    Ok(())
}

/// Returns the last of the first records that are old. Records have the system's time, which was in the
/// future while that clock was wrong; such records go with an old one that follows them.
fn last_old(
    records: impl Iterator<Item = (u64, Timestamp)>,
    before: Timestamp,
    now: Timestamp,
) -> Option<u64> {
    let is_wrong = |at: Timestamp| at.0 > now.0.saturating_add(DAY_MS);
    let first = records.take_while(|(_, at)| *at < before || is_wrong(*at));
    let old = first.filter(|(_, at)| *at < before);
    old.last().map(|(number, _)| number)
}

/// Records of the audit log that one write removes.
const AUDIT_BATCH: usize = 1000;

/// Removes the records of the audit log that are older than the setting. Returns their number.
async fn sweep_audit(app: &App) -> Result<u64, Error> {
    let days = i64::from(app.config().retention.audit_days);
    let mut removed = 0;
    if days == 0 {
        return Ok(removed);
    }
    loop {
        let cutoff = Timestamp(app.clock.times().earlier().0.saturating_sub(days * DAY_MS));
        let decided = app.db.write_essential(move |view| {
            let before = view.rows.audit_anchor()?.number;
            let records = view.rows.audit(before, AUDIT_BATCH)?;
            // The last record of all stays.
            let rest = records.split_last().map_or(&[][..], |(_, rest)| rest);
            let times = rest.iter().map(|(number, record)| (*number, record.at));
            Ok(match last_old(times, cutoff, view.now) {
                Some(to) => (to - before, Changes::none().drop_audit(to)),
                None => (0, Changes::none()),
            })
        });
        match decided.await? {
            0 => return Ok(removed),
            records => removed += records,
        }
    }
}

/// The changes that retention makes to the records of an instance. The records of an instance that is
/// not purged stay.
fn changes(
    rows: &impl Read,
    owner: UserId,
    id: InstanceId,
    cutoffs: Cutoffs,
) -> Result<Changes, Error> {
    let mut changes = Changes::none();
    if rows.has_row(id)? {
        return Ok(changes);
    }
    let (entries, corrections) = (rows.ledger(id)?, rows.corrections(id)?);
    let last = entries.last().map(|entry| entry.at);
    let last = last.max(corrections.last().map(|correction| correction.at));
    let closes = last.is_some_and(|at| at < cutoffs.ledgers);
    if closes {
        let months = months(&entries, &corrections);
        changes = changes.close_ledger(owner, id, months);
    }
    let last = rows.event_rows(id)?.pop();
    let trimmed = rows.trimmed_events(owner)?;
    let old = |row: &EventRow| row.event.at < cutoffs.events && row.seq <= trimmed;
    let drops = last.as_ref().is_some_and(old);
    if drops {
        changes = changes.drop_events(id);
    }
    if (entries.is_empty() || closes) && (last.is_none() || drops) {
        changes = changes.remove(&RECORDED, (owner, id));
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::{DAY_MS, last_old};
    use wharf_domain::time::Timestamp;

    #[test]
    fn records_of_a_wrong_clock_go_with_their_neighbours() {
        let (before, now) = (Timestamp(100), Timestamp(200));
        let (old, new, wrong) = (50, 150, 201 + DAY_MS);
        for (times, last) in [
            (&[][..], None),
            (&[old, old, new, old], Some(1)),
            (&[old, wrong, old, new], Some(2)),
            (&[old, wrong, new], Some(0)),
            (&[wrong, wrong], None),
            (&[new, old], None),
        ] {
            let times = (0..).zip(times.iter().map(|at| Timestamp(*at)));
            assert_eq!(last_old(times, before, now), last);
        }
    }
}
