//! Rules of volumes and snapshots alike: the allowed changes of a row, and the agreement of the world with each row.

use super::{Ask, Model, Wrong, check};
use crate::world::{Moment, Truth};
use std::collections::BTreeMap;
use wharf_db::KeptTable;
use wharf_domain::ids::{InstanceId, NodeId};
use wharf_domain::kept::{Kept, KeptFailure, KeptStatus};

/// A volume or a snapshot as the last look found it.
#[derive(Debug, Clone)]
pub struct Known<K: KeptTable> {
    pub row: Kept<K>,
    /// The moment of its creation in the world, once it was ready.
    pub made_at: Option<Moment>,
}

/// All of a kind, by id.
pub type All<K> = BTreeMap<<K as wharf_domain::kept::KeptKind>::Id, Known<K>>;

/// A volume or a snapshot in a store.
#[derive(Debug, Clone, Copy)]
pub struct Stored {
    pub size_gib: u32,
    pub made_at: Moment,
    pub is_complete: bool,
}

/// A kind of kept data that the model looks at.
pub trait Watched: KeptTable {
    /// Whether it is a copy: it claims less once it is complete, and nothing if it could not be made.
    const IS_COPY: bool;

    /// In the store that its node shows, and in the other one.
    fn stored(truth: &Truth<'_>, row: &Kept<Self>) -> [Option<Stored>; 2];
    /// Whether a request explains a new one.
    fn is_asked_for(model: &Model, row: &Kept<Self>) -> bool;
    /// Whether a request, or a plan, explains its end. `found` are the rows of its kind now.
    fn may_end(model: &Model, row: &Kept<Self>, found: &BTreeMap<Self::Id, Kept<Self>>) -> bool;
    /// Whether a request explains its name.
    fn is_renamed(model: &Model, row: &Kept<Self>) -> bool;
    /// Whether something needs it, although it is deleted.
    fn is_needed(model: &Model, row: &Kept<Self>) -> bool;
}

impl<K: Watched> Known<K> {
    /// Whether its node has it, with its content.
    pub fn is_there(&self, truth: &Truth<'_>) -> bool {
        let stored = K::stored(truth, &self.row).into_iter().flatten();
        let mut stored = stored.map(|stored| stored.made_at);
        stored.any(|made_at| self.made_at.is_none_or(|at| at == made_at))
    }

    /// Whether it claims room on a node.
    fn claims(&self, node: &NodeId) -> bool {
        self.row.node == *node && !self.row.is_lost()
    }
}

/// The disk that all of a kind claim on a node, in GiB.
pub fn claimed_on<K: Watched>(all: &All<K>, node: &NodeId) -> u32 {
    let here = all.values().filter(|known| known.claims(node));
    here.map(|known| known.row.size_gib).sum()
}

impl Model {
    /// Explains all differences of a kind since the last look. Returns what there is now.
    pub(super) fn explain_all<K: Watched>(
        &self,
        before: &All<K>,
        found: &BTreeMap<K::Id, Kept<K>>,
        truth: &Truth<'_>,
    ) -> Result<All<K>, Wrong> {
        let wrong = |id: &K::Id, why| format!("{} {id}: {why}", K::WORD);
        for (id, known) in before.iter().filter(|(id, _)| !found.contains_key(id)) {
            self.explain_purge(known, found, truth)
                .map_err(|why| wrong(id, why))?;
        }
        let mut next = BTreeMap::new();
        for (id, row) in found {
            let known = self.explain_one(before.get(id), row, found, truth);
            next.insert(*id, known.map_err(|why| wrong(id, why))?);
        }
        Ok(next)
    }

    /// Checks that the difference since the last look has a reason, and that the world has what the row promises.
    fn explain_one<K: Watched>(
        &self,
        before: Option<&Known<K>>,
        row: &Kept<K>,
        found: &BTreeMap<K::Id, Kept<K>>,
        truth: &Truth<'_>,
    ) -> Result<Known<K>, Wrong> {
        match before {
            None => check(K::is_asked_for(self, row), || {
                "it is new, and nobody asked for it".to_owned()
            })?,
            Some(before) => self.explain_kept_row(&before.row, row, found)?,
        }
        let mut known = Known {
            row: row.clone(),
            made_at: before.and_then(|before| before.made_at),
        };
        let id: InstanceId = row.id.into();
        let is_gone = truth.is_gone(&row.node, id) || self.aged_kept.contains(&id);
        let is_needed = known.made_at.is_some() && K::is_needed(self, row);
        if (row.status() == KeptStatus::Ready || is_needed) && !is_gone {
            let is_it = |stored: &Stored| known.made_at.is_none_or(|at| at == stored.made_at);
            let stored = K::stored(truth, row).into_iter().flatten().find(is_it);
            let Some(stored) = stored else {
                return Err(format!(
                    "it is {}, and its node does not have it with its content",
                    row.status().as_str()
                ));
            };
            check(stored.size_gib == row.size_gib, || {
                format!("its node has it with {} GiB", stored.size_gib)
            })?;
            check(stored.is_complete, || {
                format!("it is {} before it is complete", row.status().as_str())
            })?;
            known.made_at = Some(stored.made_at);
        }
        Ok(known)
    }

    /// A row goes once it is deleted and its node does not have it.
    fn explain_purge<K: Watched>(
        &self,
        known: &Known<K>,
        found: &BTreeMap<K::Id, Kept<K>>,
        truth: &Truth<'_>,
    ) -> Result<(), Wrong> {
        let row = &known.row;
        let id: InstanceId = row.id.into();
        let asked = K::may_end(self, row, found);
        check(row.deleted || row.is_lost() && asked, || {
            "its row is gone, and nobody deleted it".to_owned()
        })?;
        let is_given_up = self.is_asked(|asked| *asked == Ask::Lose(row.node.clone()));
        if row.is_lost() || is_given_up {
            return Ok(());
        }
        // A store that the engine no longer shows may have what Wharf never saw there.
        let [shown, hidden] = K::stored(truth, row);
        let was_seen = |hidden: Stored| known.made_at == Some(hidden.made_at);
        let is_there = shown.is_some() || hidden.is_some_and(was_seen);
        check(!is_there || truth.is_gone(&row.node, id), || {
            "its claim was dropped while its node has it".to_owned()
        })?;
        check(!truth.may_be_made(id), || {
            "its claim was dropped while a call that makes it is under way".to_owned()
        })
    }

    fn explain_kept_row<K: Watched>(
        &self,
        old: &Kept<K>,
        new: &Kept<K>,
        found: &BTreeMap<K::Id, Kept<K>>,
    ) -> Result<(), Wrong> {
        let is_unmade = new.failure == Some(KeptFailure::NotMade) && new.size_gib == 0;
        let is_complete = !old.made && new.made && new.size_gib < old.size_gib;
        let is_sized = old.size_gib == new.size_gib || K::IS_COPY && (is_complete || is_unmade);
        let is_kept = old.owner == new.owner
            && is_sized
            && old.rate == new.rate
            && old.node == new.node
            && old.created_at == new.created_at;
        check(is_kept, || {
            "its owner, size, rate, node or time of creation changed".to_owned()
        })?;
        let renamed = old.name == new.name || K::is_renamed(self, new);
        check(renamed, || {
            format!("its name is {}, which nobody asked for", new.name.as_str())
        })?;
        check(old.made <= new.made && old.events <= new.events, || {
            "it went back".to_owned()
        })?;
        let deleted = old.deleted == new.deleted || K::may_end(self, new, found);
        check(deleted && old.deleted <= new.deleted, || {
            "it is deleted, and nobody asked for it".to_owned()
        })?;
        let lost = old.is_lost() == new.is_lost()
            || self.is_asked(|asked| *asked == Ask::Lose(new.node.clone()));
        check(lost && old.is_lost() <= new.is_lost(), || {
            "it is lost, and the operator did not say so".to_owned()
        })
    }

    /// Checks, once there are no faults, that all of a kind are as their rows say.
    pub(super) fn kept_settled<K: Watched>(all: &All<K>) -> Result<(), Wrong> {
        for (id, Known { row, .. }) in all {
            let word = K::WORD;
            check(!row.deleted, || format!("{word} {id} is not removed"))?;
            check(row.status() != KeptStatus::Creating, || {
                format!("{word} {id} does not settle")
            })?;
        }
        Ok(())
    }
}
