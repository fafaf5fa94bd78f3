//! The refusal to delete a volume in use, since engines may remove one below an instance or a backup.

use super::mounts::instances_with;
use std::collections::BTreeSet;
use wharf_db::{INSTANCES, Rows};
use wharf_domain::error::Error;
use wharf_domain::instance::Intent;
use wharf_domain::volume::Volume;
use wharf_ground::users::USERS;

/// Fails if a backup copies the volume, or instances have it. It names them, and those of other users by their users.
pub(super) fn refuse_in_use(rows: &impl Rows, volume: &Volume) -> Result<(), Error> {
    if let Some(copy) = volume.of.copy {
        let text = format!(
            "backup {} of volume {} is running; wait for its end, or delete it first",
            copy.backup, volume.name
        );
        return Err(Error::Refused(text));
    }
    let (mut named, mut others, mut deleted) = (Vec::new(), BTreeSet::new(), false);
    for (id, _) in instances_with(rows, volume.id)? {
        match rows.get(&INSTANCES, id)? {
            Some(row) if row.intent == Intent::Delete => deleted = true,
            Some(row) if row.owner == volume.owner => named.push(row.name.to_string()),
            Some(row) => {
                others.insert(rows.get(&USERS, row.owner)?.unwrap_or_default());
            }
            None => {}
        }
    }
    let name = &volume.name;
    if !others.is_empty() {
        let others: Vec<_> = others.into_iter().collect();
        named.push(format!("instances of {}", others.join(", ")));
    }
    if !named.is_empty() {
        let named = named.join(", ");
        let text = format!("volume {name} is attached to {named}; delete these first");
        return Err(Error::Refused(text));
    }
    if deleted {
        let text = format!(
            "volume {name} is attached to instances that are being deleted; try again shortly"
        );
        return Err(Error::Refused(text));
    }
    Ok(())
}
