//! The snapshots of one store of an engine. They share the disk of their machine, and go with it.

use super::Answer;
use super::machine::{BOOT, MachineKey, MachineState, Moment, Store, key};
use wharf_domain::driver::{
    CompleteSnapshot, ObservedSnapshot, Phase, PluginError, SnapshotState, Spec, Tag,
};
use wharf_domain::ids::{InstanceId, SnapshotId};

/// The writes to a disk, in order: the machine that wrote, and when. Each machine writes when it starts.
pub type Disk = Vec<(InstanceId, Moment)>;

/// A snapshot of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSnapshot {
    pub of: MachineKey,
    pub disk: Disk,
    /// The moment of its creation.
    pub made_at: Moment,
}

/// The most bytes that a snapshot takes. It claims 2 GiB.
const BYTES: u64 = 3 << 29;

impl StoredSnapshot {
    /// Whether the copy has ended.
    pub(super) fn is_complete(&self, now: Moment) -> bool {
        now >= self.made_at + BOOT
    }

    fn state(&self, now: Moment) -> SnapshotState {
        if self.is_complete(now) {
            SnapshotState::Ready(CompleteSnapshot {
                bytes: BYTES,
                clonable: true,
            })
        } else {
            SnapshotState::Making("copying".to_owned())
        }
    }
}

impl Store {
    pub fn take_snapshot(
        &mut self,
        of: MachineKey,
        id: SnapshotId,
        now: Moment,
    ) -> Result<SnapshotState, PluginError> {
        if let Some(taken) = self.snapshots.get(&id) {
            return Ok(taken.state(now));
        }
        let machine = self.machines.get(&of).ok_or(PluginError::NotFound)?;
        let taken = StoredSnapshot {
            of,
            disk: machine.disk.clone(),
            made_at: now,
        };
        let state = taken.state(now);
        self.snapshots.insert(id, taken);
        Ok(state)
    }

    pub fn drop_snapshot(&mut self, id: SnapshotId) -> SnapshotState {
        self.snapshots.remove(&id);
        SnapshotState::Absent
    }

    /// The content of a snapshot.
    pub fn content_of(&self, id: SnapshotId, now: Moment) -> Result<Answer, PluginError> {
        let taken = self.snapshots.get(&id);
        Ok(match taken {
            Some(taken) if taken.is_complete(now) => Answer::Content(taken.disk.clone()),
            Some(taken) => Answer::Snapshot(taken.state(now)),
            None => Answer::Snapshot(SnapshotState::Absent),
        })
    }

    pub fn list_snapshots(&self, now: Moment) -> Vec<ObservedSnapshot> {
        let observed = |(id, one): (&SnapshotId, &StoredSnapshot)| ObservedSnapshot {
            snapshot: *id,
            instance: Tag {
                instance: one.of.0,
                incarnation: one.of.1,
            },
            state: one.state(now),
        };
        self.snapshots.iter().map(observed).collect()
    }

    /// Gives a stopped machine the disk of a snapshot, which takes a while. Its disk is empty meanwhile.
    pub fn restore_snapshot(
        &mut self,
        spec: &Spec,
        id: SnapshotId,
        now: Moment,
    ) -> Result<Phase, PluginError> {
        let of = key(spec.target.tag);
        let taken = self.snapshots.get(&id).filter(|taken| taken.of == of);
        let machine = self.machines.get_mut(&of).ok_or(PluginError::NotFound)?;
        if machine.runs() {
            return Ok(self.phase(of, now));
        }
        let disk = taken.ok_or(PluginError::NotFound)?.disk.clone();
        match machine.restoring {
            Some((from, end)) if from == id && end <= now => {
                (machine.disk, machine.restoring) = (disk, None);
                machine.state = MachineState::Stopped(None);
                Ok(Phase::Stopped(None))
            }
            Some((from, _)) if from == id => Ok(Phase::Growing("copying".to_owned())),
            _ => {
                machine.disk.clear();
                machine.restoring = Some((id, now + BOOT));
                Ok(Phase::Growing("copying".to_owned()))
            }
        }
    }

    /// The disk of a new machine: that of a snapshot, or an empty one.
    pub fn new_disk(&self, spec: &Spec, now: Moment) -> Result<Disk, PluginError> {
        let Some(source) = &spec.source else {
            return Ok(Disk::new());
        };
        let missing = || PluginError::Other("there is no such snapshot".to_owned());
        let from = self.snapshots.get(&source.snapshot).ok_or_else(missing)?;
        match from.state(now) {
            SnapshotState::Ready(_) => Ok(from.disk.clone()),
            _ => Err(missing()),
        }
    }

    /// Removes a machine with its snapshots.
    pub fn delete(&mut self, of: MachineKey) {
        self.machines.remove(&of);
        self.snapshots.retain(|_, one| one.of != of);
    }
}
