//! `PATCH`: the new name of a volume. Instances keep it at their paths.

use super::VolumeCondition;
use super::find::{MISSING, Reader, own};
use super::mounts::instances_with;
use super::read::{VolumeView, view as view_of};
use crate::App;
use wharf_db::{Changes, INSTANCES, Rows as _, VOLUME_NAMES};
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::kept::KeptEvent;
use wharf_domain::name::Name;
use wharf_ground::audit::record;
use wharf_ground::caller::Caller;

impl App {
    /// Renames one of the caller's volumes; without a name nothing changes.
    pub async fn rename_volume(
        &self,
        caller: &Caller,
        named: &str,
        condition: &VolumeCondition,
        name: Option<Name>,
    ) -> Result<VolumeView, Error> {
        let (reader, named, origin) = (Reader::from(caller), named.to_owned(), caller.origin());
        let (owner, condition) = (caller.user, condition.clone());
        let decided = self.db.write(move |view| {
            let mut volume = own(view.rows, owner, &named)?.ok_or(MISSING)?;
            condition.check(|| view_of(view.rows, &reader, volume.clone()))?;
            let Some(name) = name.clone().filter(|name| *name != volume.name) else {
                return Ok((volume.id, Changes::none()));
            };
            let key = (owner, name.as_str().to_owned());
            if view.rows.get(&VOLUME_NAMES, key)?.is_some() {
                return Err(FieldErrors::one("name", "is already taken").into());
            }
            let (id, before) = (volume.id, volume.name.to_string());
            let result = format!("renamed to {name}");
            volume.name = name;
            let mut changes = Changes::none()
                .record_kept(volume, view.now, KeptEvent::Renamed)
                .by(&origin);
            // Lists of instances show the name.
            for (instance, _) in instances_with(view.rows, id)? {
                if let Some(row) = view.rows.get(&INSTANCES, instance)? {
                    changes = changes.relist(row.owner);
                }
            }
            let audited = record(
                view,
                &origin,
                "volume.update",
                Some(owner),
                &before,
                &result,
            );
            Ok((id, changes.with(audited)))
        });
        let id = decided.await?;
        let reader = Reader::from(caller);
        self.db.read(|rows| {
            let volume = own(rows, owner, &id.to_string())?.ok_or(MISSING)?;
            view_of(rows, &reader, volume)
        })
    }
}
