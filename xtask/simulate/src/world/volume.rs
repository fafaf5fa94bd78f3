//! The volumes of one store of an engine, and the calls about them. The engine does not see to it that a volume has one
//! writer: that is Wharf's.

use super::machine::{BOOT, Moment, Store, key};
use wharf_domain::driver::{DriverTarget, Mount, ObservedVolume, PluginError, VolumeState};
use wharf_domain::ids::{InstanceId, VolumeId};

/// A volume of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredVolume {
    pub size_gib: u32,
    /// The moment of its creation, which tells it from one that was made again, empty.
    pub made_at: Moment,
}

impl StoredVolume {
    fn state(self, now: Moment) -> VolumeState {
        if now < self.made_at + BOOT {
            VolumeState::Making("formatting".to_owned())
        } else {
            VolumeState::Ready(())
        }
    }
}

impl Store {
    pub fn make_volume(&mut self, id: VolumeId, size_gib: u32, now: Moment) -> VolumeState {
        let made = StoredVolume {
            size_gib,
            made_at: now,
        };
        self.volumes.entry(id).or_insert(made).state(now)
    }

    pub fn unmake_volume(&mut self, id: VolumeId) -> VolumeState {
        let mut mounts = self.machines.values().flat_map(|machine| &machine.mounts);
        if mounts.any(|mount| mount.volume == id) {
            return VolumeState::InUse;
        }
        self.volumes.remove(&id);
        VolumeState::Absent
    }

    /// The ids of its volumes and snapshots.
    pub fn kept(&self) -> impl Iterator<Item = InstanceId> {
        let volumes = self.volumes.keys().copied().map(InstanceId::from);
        volumes.chain(self.snapshots.keys().copied().map(InstanceId::from))
    }

    pub fn list_volumes(&self, now: Moment) -> Vec<ObservedVolume> {
        let observed = |(id, volume): (&VolumeId, &StoredVolume)| ObservedVolume {
            volume: *id,
            state: volume.state(now),
        };
        self.volumes.iter().map(observed).collect()
    }

    pub fn set_volumes(&mut self, target: &DriverTarget, now: Moment) -> Result<(), PluginError> {
        self.has_volumes(&target.volumes, now)?;
        let machine = self.machines.get_mut(&key(target.tag));
        machine
            .ok_or(PluginError::NotFound)?
            .mounts
            .clone_from(&target.volumes);
        Ok(())
    }

    /// Fails if the store lacks a volume.
    pub fn has_volumes(&self, mounts: &[Mount], now: Moment) -> Result<(), PluginError> {
        let is_ready = |mount: &Mount| {
            let volume = self.volumes.get(&mount.volume);
            volume.is_some_and(|volume| volume.state(now) == VolumeState::Ready(()))
        };
        if mounts.iter().all(is_ready) {
            Ok(())
        } else {
            Err(PluginError::Other("there is no such volume".to_owned()))
        }
    }
}
