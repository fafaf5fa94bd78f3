//! Conversion of volumes.

use super::driver::{again, rows};
use super::short;
use crate::bindings::{driver_types, volumes as wit};
use wharf_domain::driver::{
    Limits, Mount, ObservedVolume, PluginError, VolumeContent, VolumeReport, VolumeState,
};
use wharf_domain::ids::{NodeId, VolumeId};

/// To a guest.
pub fn mount(mount: &Mount) -> driver_types::Mount {
    driver_types::Mount {
        volume: mount.volume.to_string(),
        path: mount.path.clone(),
        read_only: mount.read_only,
    }
}

/// From a guest.
pub fn content(content: driver_types::VolumeContent) -> VolumeContent {
    match content {
        driver_types::VolumeContent::None => VolumeContent::Never,
        driver_types::VolumeContent::AtRest => VolumeContent::AtRest,
        driver_types::VolumeContent::AtAnyTime => VolumeContent::AtAnyTime,
    }
}

/// From a guest.
pub fn report(report: wit::VolumeReport) -> VolumeReport {
    VolumeReport {
        state: state(report.state),
        again: again(report.again_ms),
    }
}

fn state(state: wit::VolumeState) -> VolumeState {
    match state {
        wit::VolumeState::Absent => VolumeState::Absent,
        wit::VolumeState::Making(progress) => VolumeState::Making(short(&progress)),
        wit::VolumeState::Ready => VolumeState::Ready(()),
        wit::VolumeState::InUse => VolumeState::InUse,
        wit::VolumeState::Failed(why) => VolumeState::Failed(short(&why)),
    }
}

/// From a guest.
pub fn limits(found: wit::Limits) -> Limits {
    match found {
        wit::Limits::Held => Limits::Held,
        wit::Limits::Broken(why) => Limits::Broken(short(&why)),
    }
}

/// From a guest. An invalid id is skipped, as in a list of instances.
pub fn list(
    list: Vec<wit::ObservedVolume>,
    node: &NodeId,
) -> Result<Vec<ObservedVolume>, PluginError> {
    rows(list, "volumes", node, |row| {
        Some(ObservedVolume {
            volume: VolumeId::parse(&row.id)?,
            state: state(row.state),
        })
    })
}
