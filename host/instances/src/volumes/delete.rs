//! `DELETE`: the volume disappears for its user at once. Its claim is released once the node no longer has
//! it.

use super::VolumeCondition;
use super::find::{MISSING, Reader, own};
use super::mounts::instances_with;
use super::read::view as view_of;
use crate::{App, kept};
use std::collections::BTreeSet;
use wharf_db::{INSTANCES, Rows};
use wharf_domain::error::Error;
use wharf_domain::instance::Intent;
use wharf_domain::kept::KeptEvent;
use wharf_domain::volume::Volume;
use wharf_ground::audit::record;
use wharf_ground::caller::Caller;
use wharf_ground::users::USERS;

impl App {
    /// Deletes one of the caller's volumes with its data. Refuses while an instance has it, since engines may
    /// remove a volume that is in use.
    pub async fn delete_volume(
        &self,
        caller: &Caller,
        named: &str,
        condition: &VolumeCondition,
    ) -> Result<(), Error> {
        let (reader, named, origin) = (Reader::from(caller), named.to_owned(), caller.origin());
        let (owner, condition) = (caller.user, condition.clone());
        let decided = self.db.write_essential(move |view| {
            let volume = own(view.rows, owner, &named)?.ok_or(MISSING)?;
            condition.check(|| view_of(view.rows, &reader, volume.clone()))?;
            refuse_in_use(view.rows, &volume)?;
            let (node, name) = (volume.node.clone(), volume.name.to_string());
            let changes = kept::delete(volume, view.now, KeptEvent::Deleted).by(&origin);
            let audited = record(
                view,
                &origin,
                "volume.delete",
                Some(owner),
                &name,
                "deleted",
            );
            Ok((node, changes.with(audited)))
        });
        let node = decided.await?;
        self.nodes.work_on_volumes(&node);
        Ok(())
    }
}

/// Names the instances that have the volume; those of other users by their users.
fn refuse_in_use(rows: &impl Rows, volume: &Volume) -> Result<(), Error> {
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
