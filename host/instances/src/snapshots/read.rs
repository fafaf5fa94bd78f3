//! `GET` of one snapshot and of the list.

use super::rows::snapshots_of;
use crate::find::{Selector, find};
use crate::{App, KeptCondition};
use wharf_db::{INSTANCES, Read, Rows, SNAPSHOTS, SNAPSHOTS_OWNED};
use wharf_domain::error::Error;
use wharf_domain::ids::{SnapshotId, UserId};
use wharf_domain::kept::KeptStatus;
use wharf_domain::snapshot::Snapshot;
use wharf_ground::caller::Caller;

/// The answer where the caller has no such snapshot.
pub(super) const MISSING: Error = Error::Missing("Snapshot");

/// A snapshot as its owner sees it.
#[derive(Debug, Clone)]
pub struct SnapshotView {
    pub snapshot: Snapshot,
    pub instance_name: String,
    /// Words about the progress while it is being taken.
    pub progress: Option<String>,
}

/// The condition of a request on a snapshot.
pub type SnapshotCondition = KeptCondition<SnapshotView>;

/// A snapshot of the user's own, by its UUID.
pub(super) fn own(rows: &impl Rows, user: UserId, named: &str) -> Result<Snapshot, Error> {
    let snapshot = match SnapshotId::parse(named) {
        Some(id) => rows.get(&SNAPSHOTS, id)?,
        None => None,
    };
    let snapshot = snapshot.filter(|snapshot| snapshot.owner == user && !snapshot.deleted);
    snapshot.ok_or(MISSING)
}

pub(super) fn view(
    rows: &impl Rows,
    snapshot: Snapshot,
    progress: Option<String>,
) -> Result<SnapshotView, Error> {
    let instance = rows.get(&INSTANCES, snapshot.of.instance)?;
    Ok(SnapshotView {
        instance_name: instance.map_or_else(String::new, |row| row.name.to_string()),
        progress: progress.filter(|_| snapshot.status() == KeptStatus::Creating),
        snapshot,
    })
}

impl App {
    pub(super) fn snapshot_view(&self, snapshot: Snapshot) -> Result<SnapshotView, Error> {
        let progress = self.snapshot_progress.lock().get(&snapshot.id).cloned();
        self.db.read(|rows| view(rows, snapshot, progress))
    }

    /// Returns one of the caller's snapshots.
    pub fn snapshot(&self, caller: &Caller, named: &str) -> Result<SnapshotView, Error> {
        self.snapshot_view(self.db.read(|rows| own(rows, caller.user, named))?)
    }

    /// At most `limit` of the caller's snapshots, or of those of one instance, oldest first, from the one that
    /// follows `after` on.
    pub fn snapshots(
        &self,
        caller: &Caller,
        of: Option<&Selector>,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<SnapshotView>, Error> {
        let progress = self.snapshot_progress.lock().clone();
        let first = after.map_or(0, |after| after.saturating_add(1));
        self.db.read(|rows| {
            let found = match of {
                Some(selector) => of_instance(rows, caller.user, selector, first, limit)?,
                None => {
                    let mut found = Vec::new();
                    let rows_from = rows.under_from(&SNAPSHOTS_OWNED, &caller.user, first)?;
                    for row in rows_from.take(limit) {
                        found.extend(rows.get(&SNAPSHOTS, row?.1)?);
                    }
                    found
                }
            };
            let views = found.into_iter().map(|snapshot| {
                let progress = progress.get(&snapshot.id).cloned();
                view(rows, snapshot, progress)
            });
            views.collect()
        })
    }
}

fn of_instance(
    rows: &impl Read,
    user: UserId,
    selector: &Selector,
    first: u64,
    limit: usize,
) -> Result<Vec<Snapshot>, Error> {
    let mut found = snapshots_of(rows, find(rows, user, selector)?.id)?;
    found.retain(|snapshot| !snapshot.deleted && snapshot.seq >= first);
    found.sort_by_key(|snapshot| snapshot.seq);
    found.truncate(limit);
    Ok(found)
}
