//! Retention: removes events and ledgers of purged instances that are old enough. Ledgers leave the
//! exact costs of their months.

use super::App;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::interval;
use wharf_config::Retention;
use wharf_db::{Change, Changes, Read};
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::ledger::months;
use wharf_domain::month::Month;
use wharf_domain::time::Timestamp;

/// Interval between two sweeps.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);
/// Instances of one write. Other writes wait for it, for milliseconds.
const BATCH: usize = 64;

/// Runs until `stop` changes.
pub async fn run(app: Arc<App>, mut stop: watch::Receiver<bool>) {
    let mut sweeps = interval(SWEEP_EVERY);
    loop {
        tokio::select! {
            _ = stop.changed() => return,
            _ = sweeps.tick() => {}
        }
        let swept = tokio::select! {
            _ = stop.changed() => return,
            swept = sweep(&app) => swept,
        };
        match swept {
            Ok(0) => {}
            Ok(instances) => tracing::info!(instances, "removed old events and ledgers"),
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
    fn new(retention: &Retention, now: Timestamp) -> Self {
        let days = i64::from(retention.events_days) * 24 * 3_600_000;
        Self {
            events: Timestamp(now.0.saturating_sub(days)),
            ledgers: Month::of(now).before(retention.ledger_months).start(),
        }
    }
}

/// Looks at all records once. Returns the number of instances with something removed.
async fn sweep(app: &App) -> Result<usize, Error> {
    let cutoffs = Cutoffs::new(&app.config().retention, app.clock.now());
    let (mut after, mut removed) = (None, 0);
    loop {
        let db = app.db.clone();
        let look = move || {
            db.read(|rows| {
                let batch = rows.recorded_after(after, BATCH)?;
                let mut due = Vec::new();
                for (owner, id) in &batch {
                    if !changes(rows, *owner, *id, cutoffs)?.is_empty() {
                        due.push((*owner, *id));
                    }
                }
                Ok::<_, Error>((batch.last().copied(), due))
            })
        };
        let looked = tokio::task::spawn_blocking(look).await;
        let (last, due) = looked.map_err(|e| Error::caused("retention was aborted", e))??;
        if last.is_none() {
            return Ok(removed);
        }
        after = last;
        if !due.is_empty() {
            removed += due.len();
            app.db
                .write(move |view| {
                    let mut all = Changes::none();
                    for (owner, id) in &due {
                        for change in changes(view.rows, *owner, *id, cutoffs)? {
                            all = all.with(change);
                        }
                    }
                    Ok(((), all))
                })
                .await?;
        }
    }
}

/// The changes that retention makes to the records of an instance. It keeps all of an instance that is
/// not purged.
fn changes(
    rows: &impl Read,
    owner: UserId,
    id: InstanceId,
    cutoffs: Cutoffs,
) -> Result<Vec<Change>, Error> {
    let mut changes = Vec::new();
    if rows.instance(id)?.is_some() {
        return Ok(changes);
    }
    let (entries, corrections) = (rows.ledger(id)?, rows.corrections(id)?);
    let last = entries.last().map(|entry| entry.at);
    let last = last.max(corrections.last().map(|correction| correction.at));
    let closes = last.is_some_and(|at| at < cutoffs.ledgers);
    if closes {
        let months = months(&entries, &corrections);
        changes.push(Change::CloseLedger(owner, id, months));
    }
    let last = rows.events(id)?.last().map(|event| event.at);
    let drops = last.is_some_and(|at| at < cutoffs.events);
    if drops {
        changes.push(Change::DropEvents(id));
    }
    if (entries.is_empty() || closes) && (last.is_none() || drops) {
        changes.push(Change::Forget(owner, id));
    }
    Ok(changes)
}
