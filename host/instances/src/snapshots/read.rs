//! `GET` of one snapshot and of the list.

use super::delete::is_in_use;
use super::rows::snapshots_of;
use crate::find::{Selector, find};
use crate::{App, KeptUse, Nodes};
use std::collections::BTreeMap;
use wharf_db::{INSTANCES, Read, Rows, SNAPSHOTS, SNAPSHOTS_OWNED};
use wharf_domain::error::Error;
use wharf_domain::ids::{NodeId, SnapshotId, UserId};
use wharf_domain::kept::KeptStatus;
use wharf_domain::snapshot::{OfSnapshot, Snapshot};
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

/// A snapshot of the user's own, by its UUID.
pub(super) fn own(rows: &impl Rows, user: UserId, named: &str) -> Result<Snapshot, Error> {
    let snapshot = match SnapshotId::parse(named) {
        Some(id) => rows.get(&SNAPSHOTS, id)?,
        None => None,
    };
    let snapshot = snapshot.filter(|snapshot| snapshot.owner == user && !snapshot.deleted);
    snapshot.ok_or(MISSING)
}

impl KeptUse for OfSnapshot {
    type View = SnapshotView;
    /// The words about the progress of those under way.
    type Context = BTreeMap<SnapshotId, String>;

    fn context(app: &App, _: &Caller) -> Self::Context {
        app.snapshot_progress.lock().clone()
    }

    fn view(
        rows: &impl Rows,
        progress: &Self::Context,
        snapshot: Snapshot,
    ) -> Result<SnapshotView, Error> {
        let instance = rows.get(&INSTANCES, snapshot.of.instance)?;
        let progress = progress.get(&snapshot.id).cloned();
        Ok(SnapshotView {
            instance_name: instance.map_or_else(String::new, |row| row.name.to_string()),
            progress: progress.filter(|_| snapshot.status() == KeptStatus::Creating),
            snapshot,
        })
    }

    fn own(rows: &impl Rows, user: UserId, named: &str) -> Result<Snapshot, Error> {
        own(rows, user, named)
    }

    fn readable(rows: &impl Rows, caller: &Caller, named: &str) -> Result<Snapshot, Error> {
        own(rows, caller.user, named)
    }

    /// Refuses while its instance is restored from it.
    fn refuse_in_use(rows: &impl Rows, snapshot: &Snapshot) -> Result<(), Error> {
        if is_in_use(rows, snapshot)? {
            return Err(Error::Refused(format!(
                "the disk of the instance is being restored from snapshot {}; try again later",
                snapshot.name
            )));
        }
        Ok(())
    }

    fn work_on(nodes: &Nodes, node: &NodeId) {
        nodes.work_on_snapshots(node);
    }
}

impl App {
    /// At most `limit` of the caller's snapshots, or of those of one instance, oldest first, from the one that
    /// follows `after` on.
    pub fn snapshots(
        &self,
        caller: &Caller,
        of: Option<&Selector>,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<SnapshotView>, Error> {
        let progress = OfSnapshot::context(self, caller);
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
            let found = found.into_iter();
            found
                .map(|snapshot| OfSnapshot::view(rows, &progress, snapshot))
                .collect()
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
