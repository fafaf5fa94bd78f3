//! The volumes: why their rows may change, where the world has them, and who has them mounted.

use super::{Ask, Look, Model, Wrong, check, failed};
use crate::world::{Moment, StoredVolume, Truth};
use std::collections::{BTreeMap, BTreeSet};
use wharf_db::{Read as _, Rows as _, VOLUMES};
use wharf_domain::ids::{InstanceId, NodeId, UserId, VolumeId};
use wharf_domain::kept::{KeptFailure, KeptStatus};
use wharf_domain::volume::Volume;
use wharf_instances::volumes::{MOUNTS, MountProgress, MountRow};

/// A volume as the last look found it.
#[derive(Debug, Clone)]
pub struct KnownVolume {
    pub row: Volume,
    /// The moment of its creation in the world, once it was ready.
    made_at: Option<Moment>,
}

impl KnownVolume {
    /// Whether its node has it, with its content.
    pub fn is_there(&self, truth: &Truth<'_>) -> bool {
        let stored = truth.volume(&self.row.node, self.row.id);
        let mut stored = stored.into_iter().flatten();
        stored.any(|stored| self.made_at.is_none_or(|at| at == stored.made_at))
    }
}

/// The volumes of instances.
pub type Mounts = BTreeMap<(InstanceId, VolumeId), MountRow>;

impl Model {
    pub(super) fn look_at_volumes(&mut self, look: &Look<'_>) -> Result<(), Wrong> {
        let read = look.app.db().read(|rows| {
            let mut volumes = BTreeMap::new();
            for row in rows.all(&VOLUMES)? {
                let (id, (), row) = row?;
                volumes.insert(id, row);
            }
            let mut mounts = Mounts::new();
            for row in rows.all(&MOUNTS)? {
                let (instance, volume, row) = row?;
                mounts.insert((instance, volume), row);
            }
            Ok((volumes, mounts))
        });
        let (found, mounts) = read.map_err(|error| failed(&error))?;
        let ids: BTreeSet<_> = self.volumes.keys().chain(found.keys()).copied().collect();
        let mut next = BTreeMap::new();
        for id in ids {
            let (before, after) = (self.volumes.get(&id), found.get(&id));
            let explained = look
                .world
                .truth(|truth| self.explain_volume(before, after, truth));
            let known = explained.map_err(|why| format!("volume {id}: {why}"))?;
            next.extend(known.map(|known| (id, known)));
        }
        self.volumes = next;
        self.explain_mounts(&mounts)?;
        self.mounts = mounts;
        look.world.truth(|truth| self.check_mounts(truth))
    }

    /// An instance gets volumes of its owner, and for reading those that are shared with its owner.
    fn explain_mounts(&self, mounts: &Mounts) -> Result<(), Wrong> {
        let new = mounts
            .iter()
            .filter(|(key, _)| !self.mounts.contains_key(key));
        for ((instance, volume), row) in new {
            let of = self.instances.get(instance).map(|known| known.row.owner);
            let volume_of = self.volumes.get(volume).map(|known| known.row.owner);
            let (Some(reader), Some(owner)) = (of, volume_of) else {
                return Err(format!("{instance}: its volume {volume} is not there"));
            };
            let share = Ask::ShareVolume {
                id: *volume,
                reader,
            };
            let is_shared =
                self.readers.contains(&(*volume, reader)) || self.is_asked(|asked| *asked == share);
            check(reader == owner || row.read_only && is_shared, || {
                format!("{instance}: its owner has no right to volume {volume}")
            })?;
        }
        Ok(())
    }

    /// Checks that the difference since the last look has a reason, and that the world has what the row promises.
    fn explain_volume(
        &self,
        before: Option<&KnownVolume>,
        after: Option<&Volume>,
        truth: &Truth<'_>,
    ) -> Result<Option<KnownVolume>, Wrong> {
        let Some(row) = after else {
            return before
                .map_or(Ok(()), |before| self.explain_purge(before, truth))
                .map(|()| None);
        };
        match before {
            None => {
                let (owner, size_gib) = (row.owner, row.size_gib);
                let asked = self.is_asked(|asked| *asked == Ask::CreateVolume { owner, size_gib });
                check(asked, || "it is new, and nobody asked for it".to_owned())?;
            }
            Some(before) => self.explain_volume_row(&before.row, row)?,
        }
        let made_at = before.and_then(|before| before.made_at);
        let [shown, hidden] = truth.volume(&row.node, row.id);
        let mut known = KnownVolume {
            row: row.clone(),
            made_at,
        };
        let is_gone = truth.is_gone(&row.node, row.id) || self.aged_volumes.contains(&row.id);
        if row.status() == KeptStatus::Ready && !is_gone {
            let is_it = |stored: &StoredVolume| made_at.is_none_or(|at| at == stored.made_at);
            let Some(stored) = shown.filter(is_it).or(hidden.filter(is_it)) else {
                return Err(
                    "it is ready, and its node does not have it with its content".to_owned(),
                );
            };
            check(stored.size_gib == row.size_gib, || {
                format!("its node has it with {} GiB", stored.size_gib)
            })?;
            known.made_at = Some(stored.made_at);
        }
        Ok(Some(known))
    }

    /// A row goes once the volume is deleted and its node does not have it.
    fn explain_purge(&self, known: &KnownVolume, truth: &Truth<'_>) -> Result<(), Wrong> {
        let row = &known.row;
        let asked = self.is_asked(|asked| *asked == Ask::DeleteVolume(row.id));
        check(row.deleted || row.is_lost() && asked, || {
            "its row is gone, and nobody deleted it".to_owned()
        })?;
        let is_given_up = self.is_asked(|asked| *asked == Ask::Lose(row.node.clone()));
        if row.is_lost() || is_given_up {
            return Ok(());
        }
        // A store that the engine no longer shows may have what Wharf never saw there.
        let [shown, hidden] = truth.volume(&row.node, row.id);
        let was_seen = |hidden: StoredVolume| known.made_at == Some(hidden.made_at);
        let is_there = shown.is_some() || hidden.is_some_and(was_seen);
        check(!is_there || truth.is_gone(&row.node, row.id), || {
            "its claim was dropped while its node has it".to_owned()
        })?;
        check(!truth.may_be_made(row.id), || {
            "its claim was dropped while a call that makes it is under way".to_owned()
        })
    }

    fn explain_volume_row(&self, old: &Volume, new: &Volume) -> Result<(), Wrong> {
        let is_kept = old.owner == new.owner
            && old.size_gib == new.size_gib
            && old.rate == new.rate
            && old.node == new.node
            && old.created_at == new.created_at;
        check(is_kept, || {
            "its owner, size, rate, node or time of creation changed".to_owned()
        })?;
        let rename = Ask::RenameVolume {
            id: new.id,
            name: new.name.as_str().to_owned(),
        };
        let renamed = old.name == new.name || self.is_asked(|asked| *asked == rename);
        check(renamed, || {
            format!("its name is {}, which nobody asked for", new.name.as_str())
        })?;
        check(old.made <= new.made && old.events <= new.events, || {
            "it went back".to_owned()
        })?;
        let deleted = old.deleted == new.deleted
            || self.is_asked(|asked| *asked == Ask::DeleteVolume(new.id));
        check(deleted && old.deleted <= new.deleted, || {
            "it is deleted, and nobody asked for it".to_owned()
        })?;
        let is_lost = new.failure == Some(KeptFailure::Lost);
        let lost = old.is_lost() == is_lost
            || self.is_asked(|asked| *asked == Ask::Lose(new.node.clone()));
        check(lost && old.is_lost() <= is_lost, || {
            "it is lost, and the operator did not say so".to_owned()
        })
    }

    /// Each machine that runs has a right to what it has mounted. A volume has one writer, or any number of readers.
    fn check_mounts(&self, truth: &Truth<'_>) -> Result<(), Wrong> {
        for node in truth.nodes() {
            let mut rights: BTreeMap<VolumeId, [usize; 2]> = BTreeMap::new();
            let machines = node.known().flat_map(|store| &store.machines);
            for (key, machine) in machines.filter(|(_, machine)| machine.runs()) {
                // What came late is removed as an orphan.
                let Some(known) = self.instances.get(&key.0) else {
                    continue;
                };
                let is_own = known.row.incarnation == key.1 && known.row.node == node.setup.name;
                if !is_own || truth.ever_came_late(*key) || self.aged.contains(&key.0) {
                    continue;
                }
                for mount in &machine.mounts {
                    let [writers, readers] = rights.entry(mount.volume).or_default();
                    *(if mount.read_only { readers } else { writers }) += 1;
                    let has_right = self.mounts.contains_key(&(key.0, mount.volume));
                    check(has_right || known.claim.is_none(), || {
                        format!(
                            "{} has volume {} mounted without a right to it",
                            key.0, mount.volume
                        )
                    })?;
                }
            }
            for (volume, [writers, readers]) in rights {
                check(writers == 0 || writers + readers == 1, || {
                    format!("volume {volume} has {writers} writers and {readers} readers")
                })?;
            }
        }
        Ok(())
    }

    /// The disk that volumes claim on a node, in GiB.
    pub(super) fn volumes_on(&self, node: &NodeId) -> u32 {
        let volumes = self.volumes.values().map(|known| &known.row);
        let here = volumes.filter(|row| row.node == *node && !row.is_lost());
        here.map(|row| row.size_gib).sum()
    }

    /// The number of an owner's volumes, and their GiB.
    pub(super) fn volumes_of(&self) -> BTreeMap<UserId, [u64; 2]> {
        let mut sums: BTreeMap<_, [u64; 2]> = BTreeMap::new();
        for known in self.volumes.values().filter(|known| !known.row.deleted) {
            let [count, gib] = sums.entry(known.row.owner).or_default();
            *count += 1;
            *gib += u64::from(known.row.size_gib);
        }
        sums
    }

    /// Checks, once there are no faults, that volumes and mounts are as their rows say.
    pub(super) fn volumes_settled(&self, truth: &Truth<'_>, look: &Look<'_>) -> Result<(), Wrong> {
        for (id, KnownVolume { row, .. }) in &self.volumes {
            check(!row.deleted, || format!("volume {id} is not removed"))?;
            check(row.status() != KeptStatus::Creating, || {
                format!("volume {id} does not settle")
            })?;
        }
        for node in truth.nodes() {
            for id in node.shown().volumes.keys() {
                let made = look.app.db().read(|rows| rows.was_made(InstanceId(id.0)));
                let is_orphan = !self.volumes.contains_key(id);
                check(
                    !(is_orphan && made.map_err(|error| failed(&error))?),
                    || format!("node {} keeps an orphan volume {id}", node.setup.name),
                )?;
            }
            for (key, machine) in &node.shown().machines {
                let rows = self.mounts.range((key.0, VolumeId(uuid::Uuid::nil()))..);
                let rows = rows.take_while(|((id, _), _)| *id == key.0);
                let wanted: BTreeSet<_> = rows.map(|((_, id), row)| (*id, row.read_only)).collect();
                let has = machine
                    .mounts
                    .iter()
                    .map(|mount| (mount.volume, mount.read_only));
                let is_aged = self.aged.contains(&key.0);
                let is_own = self.instances.get(&key.0).is_some_and(|known| {
                    !is_aged
                        && known.row.incarnation == key.1
                        && known.claim.is_some()
                        && machine.runs()
                });
                check(!is_own || wanted == has.collect(), || {
                    format!("{}: its machine has other volumes than its rows", key.0)
                })?;
            }
        }
        let pending = |row: &MountRow| row.progress != MountProgress::Attached;
        for ((id, volume), row) in &self.mounts {
            let is_up = self
                .instances
                .get(id)
                .is_some_and(|known| known.claim.is_some());
            check(!(is_up && pending(row)), || {
                format!("{id}: volume {volume} stays {:?}", row.progress)
            })?;
        }
        Ok(())
    }
}
