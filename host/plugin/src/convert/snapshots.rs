//! Conversion of snapshots.

use super::driver::{again, rows, tag, tag_from_guest};
use super::short;
use crate::bindings::{driver_types as wit, snapshots::ObservedSnapshot as Observed};
use wharf_domain::driver::{
    CompleteSnapshot, ObservedSnapshot, PluginError, SnapshotKind, SnapshotReport, SnapshotState,
    Source,
};
use wharf_domain::ids::{NodeId, SnapshotId};

/// To a guest.
pub fn source(source: Source) -> wit::Source {
    wit::Source {
        snapshot: source.snapshot.to_string(),
        instance: tag(source.instance),
    }
}

/// From a guest.
pub fn kind(kind: wit::SnapshotKind) -> SnapshotKind {
    match kind {
        wit::SnapshotKind::None => SnapshotKind::None,
        wit::SnapshotKind::Shared => SnapshotKind::Shared,
        wit::SnapshotKind::Copied => SnapshotKind::Copied,
    }
}

/// From a guest.
pub fn report(report: wit::SnapshotReport) -> SnapshotReport {
    SnapshotReport {
        state: state(report.state),
        again: again(report.again_ms),
    }
}

fn state(state: wit::SnapshotState) -> SnapshotState {
    match state {
        wit::SnapshotState::Absent => SnapshotState::Absent,
        wit::SnapshotState::Copying(progress) => SnapshotState::Making(short(&progress)),
        wit::SnapshotState::Ready(complete) => SnapshotState::Ready(CompleteSnapshot {
            bytes: complete.bytes,
            clonable: complete.clonable,
        }),
        wit::SnapshotState::InUse => SnapshotState::InUse,
        wit::SnapshotState::Failed(why) => SnapshotState::Failed(short(&why)),
    }
}

/// From a guest. An invalid id is skipped, as in a list of instances.
pub fn list(list: Vec<Observed>, node: &NodeId) -> Result<Vec<ObservedSnapshot>, PluginError> {
    rows(list, "snapshots", node, |row| {
        Some(ObservedSnapshot {
            snapshot: SnapshotId::parse(&row.id)?,
            instance: tag_from_guest(&row.instance)?,
            state: state(row.state),
        })
    })
}
