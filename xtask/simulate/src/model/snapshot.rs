//! Snapshots, restores, clones and plans.

use super::kept::{Stored, Watched};
use super::{Ask, Known, Look, Model, Wrong, check, failed};
use crate::world::{Disk, Machine, MachineKey, Truth};
use std::collections::BTreeMap;
use wharf_db::{Read as _, Rows as _, SNAPSHOTS};
use wharf_domain::event::EventKind;
use wharf_domain::ids::{InstanceId, SnapshotId};
use wharf_domain::instance::Intent;
use wharf_domain::kept::{KeptFailure, KeptStatus};
use wharf_domain::snapshot::{OfSnapshot, Snapshot};
use wharf_instances::snapshots::{RESTORES, RestoreRow, SNAPSHOT_PLANS, SOURCES};

/// The restores, clones and plans of instances at the last look.
#[derive(Debug, Clone, Default)]
pub struct Copies {
    restores: BTreeMap<InstanceId, RestoreRow>,
    sources: BTreeMap<InstanceId, SnapshotId>,
    /// The number of snapshots that the plan of an instance keeps, and the most that one ever did.
    plans: BTreeMap<InstanceId, usize>,
    most: BTreeMap<InstanceId, usize>,
    /// The content of each snapshot, once it was ready.
    pub(super) content: BTreeMap<SnapshotId, Disk>,
}

impl Watched for OfSnapshot {
    const IS_COPY: bool = true;

    fn stored(truth: &Truth<'_>, row: &Snapshot) -> [Option<Stored>; 2] {
        let of = (row.of.instance, row.of.incarnation);
        truth.snapshot(&row.node, row.id).map(|stored| {
            let stored = stored.filter(|stored| stored.of == of)?;
            Some(Stored {
                size_gib: 2,
                made_at: stored.made_at,
                is_complete: truth.is_complete(stored),
            })
        })
    }

    fn is_asked_for(model: &Model, row: &Snapshot) -> bool {
        let id = row.of.instance;
        let by_hand = model.is_asked(|asked| {
            matches!(asked, Ask::TakeSnapshot(of) if *of == id)
                || matches!(asked, Ask::Restore { id: of, first: true } if *of == id)
        });
        by_hand
            || model.backups.has(row.id)
            || row.of.planned.is_some() && model.copies.plans.contains_key(&id)
    }

    fn may_end(model: &Model, row: &Snapshot, found: &BTreeMap<SnapshotId, Snapshot>) -> bool {
        let id = row.of.instance;
        let asked = model.is_asked(|asked| match asked {
            Ask::DeleteSnapshot(of) => *of == row.id,
            Ask::Delete(of) | Ask::Forget(of) => *of == id,
            _ => false,
        });
        asked || model.backups.have_done_with(row.id) || is_surplus(model, row, found)
    }

    fn is_renamed(_: &Model, _: &Snapshot) -> bool {
        false
    }

    fn is_needed(model: &Model, row: &Snapshot) -> bool {
        let mut clones = model.copies.sources.iter();
        clones.any(|(id, source)| {
            let waits = |Known { row, .. }: &Known| {
                !row.provisioned && !row.failed && row.intent == Intent::Run
            };
            *source == row.id && model.instances.get(id).is_some_and(waits)
        })
    }
}

/// Whether a plan keeps a planned snapshot no more: there are as many newer ones as it keeps, and those are ready.
/// Of those that could not be taken, the newest stays.
fn is_surplus(model: &Model, row: &Snapshot, found: &BTreeMap<SnapshotId, Snapshot>) -> bool {
    let newer = |other: &&Snapshot| {
        let is_planned = other.of.planned.is_some() && other.of.instance == row.of.instance;
        is_planned && other.seq > row.seq
    };
    let count = |fits: fn(&Snapshot) -> bool| {
        let newer = found.values().filter(newer);
        newer.filter(|other| fits(other)).count()
    };
    let is_unmade = |row: &Snapshot| row.failure == Some(KeptFailure::NotMade);
    let keep = model.copies.plans.get(&row.of.instance).copied();
    let planned = row.of.planned.is_some();
    planned
        && if is_unmade(row) {
            count(is_unmade) > 0
        } else {
            keep.is_some_and(|keep| count(|row| row.status() == KeptStatus::Ready) >= keep)
        }
}

impl Model {
    pub(super) fn look_at_snapshots(&mut self, look: &Look<'_>) -> Result<(), Wrong> {
        let read = look.app.db().read(|rows| {
            let mut found = BTreeMap::new();
            for row in rows.all(&SNAPSHOTS)? {
                let (id, (), row) = row?;
                found.insert(id, row);
            }
            let restores = rows.under(&RESTORES, &())?.collect::<Result<_, _>>()?;
            let mut sources = BTreeMap::new();
            for row in rows.all(&SOURCES)? {
                let (id, (), row) = row?;
                sources.insert(id, row.snapshot);
            }
            let mut plans = BTreeMap::new();
            for row in rows.under(&SNAPSHOT_PLANS, &())? {
                let (id, row) = row?;
                plans.insert(id, row.request.keep as usize);
            }
            Ok((found, restores, sources, plans))
        });
        let (found, restores, sources, plans): (_, BTreeMap<_, _>, _, _) =
            read.map_err(|error| failed(&error))?;
        self.explain_plans(&plans)?;
        self.copies.sources = sources;
        let known = look
            .world
            .truth(|truth| self.explain_all(&self.snapshots, &found, truth))?;
        look.world
            .truth(|truth| self.explain_restores(&restores, truth, look))?;
        look.world.truth(|truth| {
            for (id, known) in known.iter().filter(|(_, known)| known.made_at.is_some()) {
                let stored = truth.snapshot(&known.row.node, *id).into_iter().flatten();
                let mut stored = stored.filter(|stored| Some(stored.made_at) == known.made_at);
                if let Some(stored) = stored.next() {
                    self.copies.content.insert(*id, stored.disk.clone());
                }
            }
        });
        self.copies.content.retain(|id, _| known.contains_key(id));
        self.snapshots = known;
        self.copies.restores = restores;
        self.check_clones(look)?;
        self.check_plans()
    }

    fn explain_plans(&mut self, plans: &BTreeMap<InstanceId, usize>) -> Result<(), Wrong> {
        self.explain_plans_of(&self.copies.plans, plans, Ask::Plan)?;
        for (id, keep) in plans {
            let most = self.copies.most.entry(*id).or_default();
            *most = (*most).max(*keep);
        }
        self.copies.plans.clone_from(plans);
        Ok(())
    }

    /// Explains the differences of plans since the last look.
    pub(super) fn explain_plans_of(
        &self,
        before: &BTreeMap<InstanceId, usize>,
        plans: &BTreeMap<InstanceId, usize>,
        ask: fn(InstanceId, Option<usize>) -> Ask,
    ) -> Result<(), Wrong> {
        for (id, keep) in plans {
            let is_known = before.get(id) == Some(keep);
            let plan = ask(*id, Some(*keep));
            check(is_known || self.is_asked(|asked| *asked == plan), || {
                format!("{id}: it has a plan, and nobody asked for it")
            })?;
        }
        for id in before.keys() {
            // The plan of an instance that is being deleted holds no bucket: it goes with the bucket.
            let is_gone = self.instances.get(id).is_none_or(|known| {
                let forget = Ask::ForgetBucket(known.row.owner);
                known.row.intent == Intent::Delete && self.is_asked(|asked| *asked == forget)
            });
            let end = ask(*id, None);
            let explained = plans.contains_key(id) || self.is_asked(|asked| *asked == end);
            check(explained || is_gone, || {
                format!("{id}: its plan is gone, and nobody ended it")
            })?;
        }
        Ok(())
    }

    /// A restore is asked for, and one that has ended has given the disk the content of then.
    fn explain_restores(
        &self,
        restores: &BTreeMap<InstanceId, RestoreRow>,
        truth: &Truth<'_>,
        look: &Look<'_>,
    ) -> Result<(), Wrong> {
        for id in restores.keys() {
            let asked = self.copies.restores.contains_key(id)
                || self.is_asked(|asked| matches!(asked, Ask::Restore { id: of, .. } if of == id));
            check(asked, || {
                format!("{id}: it is restored, and nobody asked for it")
            })?;
        }
        for (id, restore) in &self.copies.restores {
            let known = self.instances.get(id);
            let Some(known) = known.filter(|_| restores.get(id) != Some(restore)) else {
                continue;
            };
            let events = look.app.db().read(|rows| rows.events(*id));
            let events = events.map_err(|error| failed(&error))?;
            let of_restore = events.iter().rev().find_map(|event| match &event.what {
                EventKind::Restored(_) => Some(true),
                EventKind::RestoreFailed(_) => Some(false),
                _ => None,
            });
            let content = self.copies.content.get(&restore.snapshot);
            let key = (*id, known.row.incarnation);
            let is_unsure = self.aged.contains(id) || truth.ever_came_late(key);
            let (Some(true), Some(content), false) = (of_restore, content, is_unsure) else {
                continue;
            };
            let machine = machine(truth, known, key);
            let has_it = |machine: &Machine| {
                machine.disk.starts_with(content) && machine.restoring.is_none()
            };
            check(machine.is_none_or(has_it), || {
                format!("{id}: it was restored, and has not the content of its snapshot")
            })?;
        }
        Ok(())
    }

    /// A clone that is up has the disk of its snapshot.
    fn check_clones(&self, look: &Look<'_>) -> Result<(), Wrong> {
        look.world.truth(|truth| {
            for (id, source) in &self.copies.sources {
                let known = self.instances.get(id).filter(|known| known.is_up());
                let Some(known) = known.filter(|known| known.row.incarnation == 1) else {
                    continue;
                };
                let machine = machine(truth, known, (*id, 1));
                let is_it = |machine: &Machine| machine.source == Some(*source);
                check(machine.is_none_or(is_it), || {
                    format!("{id}: its disk was not made from snapshot {source}")
                })?;
            }
            Ok(())
        })
    }

    /// A plan keeps no more than its number, beside those that a restore needs.
    fn check_plans(&self) -> Result<(), Wrong> {
        let mut counts: BTreeMap<InstanceId, usize> = BTreeMap::new();
        for known in self.snapshots.values() {
            let row = &known.row;
            let restore = self.copies.restores.get(&row.of.instance);
            let is_used =
                restore.is_some_and(|to| to.snapshot == row.id || to.first == Some(row.id));
            let is_kept = row.of.planned.is_some() && row.status() == KeptStatus::Ready;
            *counts.entry(row.of.instance).or_default() += usize::from(is_kept && !is_used);
        }
        for (id, count) in counts {
            let most = self.copies.most.get(&id).copied().unwrap_or_default();
            // One that a restore needed goes with the next run.
            check(count <= most + 1, || {
                format!("{id}: its plan has {count} snapshots, and keeps {most}")
            })?;
        }
        Ok(())
    }
}

/// The machine of an instance on its node.
fn machine<'a>(truth: &'a Truth<'_>, of: &Known, key: MachineKey) -> Option<&'a Machine> {
    let mut machines = truth.machines_of(key.0);
    machines
        .find(|(node, found, _)| *found == key && **node == of.row.node)
        .map(|(.., machine)| machine)
}
