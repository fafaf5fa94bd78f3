//! The end of planned snapshots: a plan keeps a number of them, for a number of days.

use super::delete::is_in_use;
use super::rows::{SNAPSHOT_PLANS, snapshots_of};
use crate::kept::delete;
use crate::plans::surplus;
use std::cmp::Reverse;
use wharf_db::{Changes, Rows as _, View};
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, SnapshotId};
use wharf_domain::kept::{KeptEvent, KeptFailure, KeptStatus};
use wharf_domain::snapshot::{PlanRequest, Snapshot};

/// Deletes the snapshots that a plan does not keep. `ready` is complete with this write.
pub(super) fn retire(
    view: &View<'_>,
    id: InstanceId,
    plan: &PlanRequest,
    ready: Option<SnapshotId>,
) -> Result<Changes, Error> {
    let mut snapshots = snapshots_of(view.rows, id)?;
    snapshots.retain(|row| !row.deleted);
    snapshots.sort_by_key(|row| Reverse(row.seq));
    let ended = snapshots.into_iter().filter_map(|row| {
        let is_ready = row.status() == KeptStatus::Ready || ready == Some(row.id);
        let has_ended = is_ready || row.failure == Some(KeptFailure::NotMade);
        let planned = row.of.planned.filter(|_| has_ended)?;
        Some((planned, is_ready, row))
    });
    let mut changes = Changes::none();
    for row in surplus(plan, ended, view.now) {
        if !is_in_use(view.rows, &row)? {
            changes = changes.with(delete(row, view.now, KeptEvent::Retired));
        }
    }
    Ok(changes)
}

/// The changes that come with a complete snapshot: its plan keeps fewer older ones.
pub(crate) fn retire_for(view: &View<'_>, ready: &Snapshot) -> Result<Changes, Error> {
    let id = ready.of.instance;
    match view.rows.get(&SNAPSHOT_PLANS, id)? {
        Some(plan) if ready.of.planned.is_some() => retire(view, id, &plan.request, Some(ready.id)),
        _ => Ok(Changes::none()),
    }
}
