//! The end of planned snapshots: a plan keeps a number of them, for a number of days.

use super::delete::is_in_use;
use super::rows::{PlanRow, SNAPSHOT_PLANS, snapshots_of};
use crate::kept::delete;
use std::cmp::Reverse;
use wharf_db::{Changes, Rows as _, View};
use wharf_domain::error::Error;
use wharf_domain::ids::SnapshotId;
use wharf_domain::kept::{KeptEvent, KeptFailure, KeptStatus};
use wharf_domain::snapshot::Snapshot;
use wharf_domain::time::Timestamp;

/// The milliseconds of a day.
const DAY: u64 = 86_400_000;

/// Deletes the snapshots that a plan does not keep, of all of its instance. Only complete ones count, and the newest of
/// these stays, so that a new one is complete before an older one goes. `ready` is complete with this write. Of those
/// that could not be taken, the newest stays, for its reason.
pub(crate) fn retire(
    view: &View<'_>,
    plan: &PlanRow,
    snapshots: &[Snapshot],
    ready: Option<SnapshotId>,
) -> Result<Changes, Error> {
    let mut changes = Changes::none();
    for row in surplus(plan, snapshots, ready, view.now) {
        if !is_in_use(view.rows, row)? {
            changes = changes.with(delete(row.clone(), view.now, KeptEvent::Retired));
        }
    }
    Ok(changes)
}

fn surplus<'a>(
    plan: &PlanRow,
    snapshots: &'a [Snapshot],
    ready: Option<SnapshotId>,
    now: Timestamp,
) -> Vec<&'a Snapshot> {
    let is_ready = |row: &&Snapshot| {
        row.status() == KeptStatus::Ready || (ready == Some(row.id) && !row.deleted)
    };
    let is_unmade = |row: &&Snapshot| row.failure == Some(KeptFailure::NotMade) && !row.deleted;
    let kept = newest_first(snapshots.iter().filter(is_ready));
    let unmade = newest_first(snapshots.iter().filter(is_unmade));
    let most = usize::try_from(plan.request.keep)
        .unwrap_or(usize::MAX)
        .max(1);
    let days = plan.request.keep_days.map(u64::from);
    let is_old = |at: Timestamp| days.is_some_and(|days| now.millis_since(at) >= days * DAY);
    let later = kept.into_iter().enumerate().skip(1);
    let surplus = later.filter(|(n, (at, _))| *n >= most || is_old(*at));
    let surplus = surplus.map(|(_, planned)| planned);
    let surplus = surplus.chain(unmade.into_iter().skip(1));
    surplus.map(|(_, row)| row).collect()
}

/// The planned ones, with the times of their runs.
fn newest_first<'a>(rows: impl Iterator<Item = &'a Snapshot>) -> Vec<(Timestamp, &'a Snapshot)> {
    let mut planned: Vec<_> = rows
        .filter_map(|row| Some((row.of.planned?, row)))
        .collect();
    planned.sort_by_key(|(_, row)| Reverse(row.seq));
    planned
}

/// The changes that come with a complete snapshot: its plan keeps fewer older ones.
pub(crate) fn retire_for(view: &View<'_>, ready: &Snapshot) -> Result<Changes, Error> {
    let id = ready.of.instance;
    match view.rows.get(&SNAPSHOT_PLANS, id)? {
        Some(plan) if ready.of.planned.is_some() => {
            retire(view, &plan, &snapshots_of(view.rows, id)?, Some(ready.id))
        }
        _ => Ok(Changes::none()),
    }
}
