//! The comparison of a node's list with the rows.

use super::kept_differences::KeptDifferences;
use super::store::Listed;
use crate::copies::{copies, is_left};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::Weak;
use wharf_db::{Db, MOVES, Read, Rows as _};
use wharf_domain::driver::{Observed, Phase, Tag};
use wharf_domain::error::Error;
use wharf_domain::ids::{Generation, InstanceId, NodeId};
use wharf_domain::instance::{Instance, Intent, Progress};
use wharf_domain::snapshot::OfSnapshot;
use wharf_domain::volume::OfVolume;

/// The differences between the rows and the list.
#[derive(Default)]
pub struct Differences {
    /// Settled rows that the list contradicts.
    pub suspects: Vec<Instance>,
    /// An instance that has run, or is listed, should run and does not, and its worker has not settled the row.
    pub is_unsettled: bool,
    /// Objects whose row is gone.
    pub orphans: Vec<Tag>,
    /// Objects that this database never had.
    pub unknown: Vec<InstanceId>,
    pub volumes: KeptDifferences<OfVolume>,
    pub snapshots: KeptDifferences<OfSnapshot>,
    /// Number of rows, those of moves to the node, volumes and snapshots included.
    pub rows: usize,
    /// Number of rows that have run and whose object is listed, those of volumes and snapshots included. A creation may have
    /// reached another store, so an instance that has not run yet says nothing about this one.
    pub present: usize,
    /// Rows that should run and have run, and whose object is not listed.
    pub lost: BTreeMap<InstanceId, Generation>,
}

impl Differences {
    /// Whether nothing needs an action.
    pub fn is_empty(&self) -> bool {
        self.suspects.is_empty()
            && !self.is_unsettled
            && self.orphans.is_empty()
            && self.unknown.is_empty()
            && self.lost.is_empty()
            && self.volumes.is_empty()
            && self.snapshots.is_empty()
    }

    /// Number of objects that are known to be absent.
    pub fn absent(&self) -> usize {
        self.lost.len() + self.volumes.missing.len() + self.snapshots.missing.len()
    }
}

/// Compares the rows with the list. It ends early if the `observer` is gone.
pub fn differences(
    db: &Db,
    node: &NodeId,
    listed: Listed,
    observer: &Weak<()>,
) -> Result<Differences, Error> {
    let mut there: BTreeMap<InstanceId, Observed> = BTreeMap::new();
    let mut older = Vec::new();
    for observed in listed.instances {
        let incarnation = observed.tag.incarnation;
        match there.insert(observed.tag.instance, observed) {
            Some(other) if other.tag.incarnation > incarnation => {
                older.extend(there.insert(other.tag.instance, other));
            }
            other => older.extend(other),
        }
    }
    let mut found = Differences::default();
    db.read(|rows| {
        for id in rows.on_node(node)? {
            if observer.strong_count() == 0 {
                return Err(Error::internal("aborted"));
            }
            let mut observed = there.remove(&id);
            // An instance whose row is damaged is left alone, and the others are compared.
            let Some(row) = readable(rows.instance(id)).flatten() else {
                continue;
            };
            if let Some(old) = observed.take_if(|old| old.tag.incarnation < row.incarnation) {
                older.push(old);
            }
            found.rows += 1;
            if observed.is_some() {
                found.present += usize::from(row.provisioned);
            } else if row.intent == Intent::Run && row.provisioned {
                found.lost.insert(id, row.generation);
            }
            if contradicts(&row, observed.as_ref()) {
                match row.progress {
                    Progress::Settled => found.suspects.push(row),
                    Progress::Pending => {
                        let was_there = row.provisioned || observed.is_some();
                        found.is_unsettled |= was_there && row.intent == Intent::Run;
                    }
                }
            }
        }
        // An instance that moves to this node may be there already.
        for row in rows.under(&MOVES, &())? {
            let (_, moving) = row?;
            found.rows += usize::from(moving.claim.node == *node);
        }
        // The rest has no row on this node. A row may be newer than the list, and only objects that
        // this database has made may be removed.
        for (id, observed) in there {
            match readable(rows.instance(id)) {
                Some(None) => {}
                Some(Some(_)) => {
                    older.push(observed);
                    continue;
                }
                None => continue,
            }
            match readable(rows.was_made(id)) {
                Some(true) => found.orphans.push(observed.tag),
                Some(false) => found.unknown.push(id),
                None => {}
            }
        }
        // An instance that was lost with this node is created again with a later incarnation. A failed move leaves
        // one that is later than the row's.
        for observed in older {
            let Tag {
                instance,
                incarnation,
            } = observed.tag;
            let row = readable(rows.instance(instance)).flatten();
            let copies = readable(copies(rows, instance)).unwrap_or_default();
            if row.is_some_and(|row| {
                incarnation < row.incarnation
                    || row.node != *node && is_left(&copies, node, incarnation)
            }) {
                found.orphans.push(observed.tag);
            }
        }
        found.volumes = KeptDifferences::of(rows, node, listed.volumes.as_deref())?;
        found.snapshots = KeptDifferences::of(rows, node, listed.snapshots.as_deref())?;
        found.rows += found.volumes.rows + found.snapshots.rows;
        found.present += found.volumes.present + found.snapshots.present;
        Ok(())
    })?;
    Ok(found)
}

/// A row, or `None` if it is damaged, which the log has with its page.
fn readable<T>(row: Result<T, Error>) -> Option<T> {
    row.inspect_err(|error| tracing::debug!(error = %error.chain(), "an instance is left alone"))
        .ok()
}

/// A digest of a list that does not depend on its order.
pub fn digest<T: Hash>(listed: &[T]) -> u64 {
    let hash = BuildHasherDefault::<DefaultHasher>::default();
    let lines = listed.iter().map(|observed| hash.hash_one(observed));
    lines.fold(0, u64::wrapping_add)
}

/// Whether the list contradicts a settled row.
fn contradicts(row: &Instance, observed: Option<&Observed>) -> bool {
    let runs = observed.is_some_and(|o| {
        o.tag.incarnation == row.incarnation && matches!(o.phase, Phase::Booting | Phase::Ready)
    });
    match row.intent {
        Intent::Run => !runs,
        Intent::Stop | Intent::Start => runs,
        Intent::Delete => false,
    }
}
