//! The refusal to copy a volume that an instance may write meanwhile.

use super::mounts::instances_with;
use wharf_db::{INSTANCES, Rows};
use wharf_domain::error::Error;
use wharf_domain::instance::{Intent, Progress};
use wharf_domain::state::InstanceState;
use wharf_domain::volume::Volume;

/// Fails unless the instance that may write the volume is stopped, and its node was seen to follow.
pub fn refuse_writers(rows: &impl Rows, volume: &Volume) -> Result<(), Error> {
    for (id, mount) in instances_with(rows, volume.id)? {
        let Some(row) = rows.get(&INSTANCES, id)?.filter(|_| !mount.read_only) else {
            continue;
        };
        let is_stopped = matches!(row.state(), InstanceState::Exited | InstanceState::ShutOff)
            && row.intent == Intent::Stop
            && row.progress == Progress::Settled;
        if !is_stopped {
            return Err(Error::Refused(format!(
                "instance {} writes volume {}: stop it, and start it again once the backup is done",
                row.name, volume.name
            )));
        }
    }
    Ok(())
}
