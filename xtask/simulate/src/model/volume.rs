//! The volumes, and who has them mounted.

use super::kept::{Stored, Watched};
use super::{Ask, Look, Model, Wrong, check, failed};
use crate::world::{StoredVolume, Truth};
use std::collections::{BTreeMap, BTreeSet};
use wharf_db::{Read as _, Rows as _, VOLUMES};
use wharf_domain::ids::{InstanceId, VolumeId};
use wharf_domain::volume::{OfVolume, Volume};
use wharf_instances::volumes::{MOUNTS, MountProgress, MountRow};

impl Watched for OfVolume {
    const IS_COPY: bool = false;

    fn stored(truth: &Truth<'_>, row: &Volume) -> [Option<Stored>; 2] {
        truth.volume(&row.node, row.id).map(|stored| {
            let StoredVolume { size_gib, made_at } = stored?;
            Some(Stored {
                size_gib,
                made_at,
                is_complete: true,
            })
        })
    }

    fn is_asked_for(model: &Model, row: &Volume) -> bool {
        let (owner, size_gib) = (row.owner, row.size_gib);
        model.is_asked(|asked| *asked == Ask::CreateVolume { owner, size_gib })
    }

    fn may_end(model: &Model, row: &Volume, _: &BTreeMap<VolumeId, Volume>) -> bool {
        model.is_asked(|asked| *asked == Ask::DeleteVolume(row.id))
    }

    fn is_renamed(model: &Model, row: &Volume) -> bool {
        let rename = Ask::RenameVolume {
            id: row.id,
            name: row.name.as_str().to_owned(),
        };
        model.is_asked(|asked| *asked == rename)
    }

    fn is_needed(_: &Model, _: &Volume) -> bool {
        false
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
        self.volumes = look
            .world
            .truth(|truth| self.explain_all(&self.volumes, &found, truth))?;
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

    /// Checks, once there are no faults, that volumes and mounts are as their rows say.
    pub(super) fn volumes_settled(&self, truth: &Truth<'_>, look: &Look<'_>) -> Result<(), Wrong> {
        Self::kept_settled(&self.volumes)?;
        Self::kept_settled(&self.snapshots)?;
        for node in truth.nodes() {
            for id in node.shown().kept() {
                let made = look.app.db().read(|rows| rows.was_made(id));
                let is_known = self.volumes.contains_key(&id.into())
                    || self.snapshots.contains_key(&id.into());
                check(is_known || !made.map_err(|error| failed(&error))?, || {
                    format!("node {} keeps {id}, an orphan", node.setup.name)
                })?;
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
