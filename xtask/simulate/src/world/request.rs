//! The calls of drivers, and their answers.

use super::machine::{MachineKey, key};
use super::snapshot::Disk;
use wharf_domain::driver::{
    DriverTarget, NodeHealth, Observed, ObservedSnapshot, ObservedVolume, Phase, ResourceUsage,
    SnapshotState, Source, Spec, StoreMark, Surroundings, Tag, VolumeState,
};
use wharf_domain::ids::{SnapshotId, VolumeId};

/// A call of a driver.
#[derive(Debug, Clone)]
pub enum Request {
    Probe,
    List,
    Identify,
    Survey,
    Mark(String),
    Inspect(Tag),
    Stats(Tag),
    Ensure(Box<Spec>),
    Grow(Box<Spec>),
    MoveHere(Box<Spec>),
    Offer(Box<DriverTarget>),
    /// Content comes: that of a backup, or what another node offers.
    Fetch(Box<Spec>, Option<Disk>),
    Start(Box<DriverTarget>),
    Stop(Box<DriverTarget>),
    Resize(Box<DriverTarget>),
    SetPorts(Box<DriverTarget>),
    Delete(Box<DriverTarget>),
    MakeVolume(VolumeId, u32),
    UnmakeVolume(VolumeId),
    ListVolumes,
    SetVolumes(Box<DriverTarget>),
    TakeSnapshot(Box<DriverTarget>, SnapshotId),
    DropSnapshot(Source),
    RestoreSnapshot(Box<Spec>, SnapshotId),
    ListSnapshots,
    /// The content of a snapshot goes.
    Send(Source),
}

/// The answer to a call.
#[derive(Debug, Clone)]
pub enum Answer {
    Phase(Phase),
    Done,
    Health(NodeHealth),
    List(Vec<Observed>),
    Mark(StoreMark),
    Usage(ResourceUsage),
    Surroundings(Surroundings),
    Volume(VolumeState),
    Volumes(Vec<ObservedVolume>),
    Snapshot(SnapshotState),
    Snapshots(Vec<ObservedSnapshot>),
    Content(Disk),
}

impl Answer {
    /// The machines that it tells of, in answer to a call about this one.
    pub fn tells_of(&self, tag: Option<Tag>) -> Vec<MachineKey> {
        match self {
            Self::Phase(Phase::Absent) => Vec::new(),
            Self::Phase(_) | Self::Usage(_) => tag.into_iter().map(key).collect(),
            Self::List(list) => list.iter().map(|one| key(one.tag)).collect(),
            _ => Vec::new(),
        }
    }
}

impl Request {
    /// Its name in traces.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::List => "list",
            Self::Identify => "identify",
            Self::Survey => "survey",
            Self::Mark(_) => "mark",
            Self::Inspect(_) => "inspect",
            Self::Stats(_) => "stats",
            Self::Ensure(_) => "ensure",
            Self::Grow(_) => "grow",
            Self::MoveHere(_) => "move-here",
            Self::Offer(_) => "offer",
            Self::Fetch(..) => "fetch",
            Self::Start(_) => "start",
            Self::Stop(_) => "stop",
            Self::Resize(_) => "resize",
            Self::SetPorts(_) => "set-ports",
            Self::Delete(_) => "delete",
            Self::MakeVolume(..) => "make-volume",
            Self::UnmakeVolume(_) => "unmake-volume",
            Self::ListVolumes => "list-volumes",
            Self::SetVolumes(_) => "set-volumes",
            Self::TakeSnapshot(..) => "take-snapshot",
            Self::DropSnapshot(_) => "drop-snapshot",
            Self::RestoreSnapshot(..) => "restore-snapshot",
            Self::ListSnapshots => "list-snapshots",
            Self::Send(_) => "send",
        }
    }

    /// The instance that it is about.
    pub fn tag(&self) -> Option<Tag> {
        match self {
            Self::Probe
            | Self::List
            | Self::Identify
            | Self::Survey
            | Self::Mark(_)
            | Self::MakeVolume(..)
            | Self::UnmakeVolume(_)
            | Self::ListVolumes
            | Self::DropSnapshot(_)
            | Self::Send(_)
            | Self::ListSnapshots => None,
            Self::Inspect(tag) | Self::Stats(tag) => Some(*tag),
            Self::Ensure(spec)
            | Self::Grow(spec)
            | Self::MoveHere(spec)
            | Self::Fetch(spec, _)
            | Self::RestoreSnapshot(spec, _) => Some(spec.target.tag),
            Self::Start(target)
            | Self::Offer(target)
            | Self::Stop(target)
            | Self::Resize(target)
            | Self::SetPorts(target)
            | Self::SetVolumes(target)
            | Self::TakeSnapshot(target, _)
            | Self::Delete(target) => Some(target.tag),
        }
    }

    /// Whether it changes something on its node.
    pub fn changes(&self) -> bool {
        !matches!(
            self,
            Self::Probe
                | Self::List
                | Self::Identify
                | Self::Survey
                | Self::Inspect(_)
                | Self::Stats(_)
                | Self::ListVolumes
                | Self::ListSnapshots
                | Self::Send(_)
        )
    }

    /// Whether it may come late. Nobody can foresee a late change of mounts or of a disk: no list has them.
    pub fn may_be_late(&self) -> bool {
        !matches!(self, Self::SetVolumes(_) | Self::RestoreSnapshot(..))
    }

    /// Whether it sets the size of an instance.
    pub fn sets_size(&self) -> bool {
        matches!(self, Self::Resize(_) | Self::Start(_))
    }

    /// Whether it may make an instance run, or make it exist.
    pub fn brings_up(&self) -> bool {
        matches!(
            self,
            Self::Ensure(_) | Self::Start(_) | Self::MoveHere(_) | Self::Fetch(..)
        )
    }
}
