//! Shares of volumes: named users may attach a volume to instances of theirs, read-only.

use super::find::{MISSING, Reader, own, readable};
use crate::{App, suspension};
use serde::{Deserialize, Serialize};
use wharf_db::{Changes, Rows, Table, VOLUMES, View, tables};
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::VolumeId;
use wharf_domain::kept::KeptEvent;
use wharf_domain::time::Timestamp;
use wharf_domain::volume::Volume;
use wharf_ground::audit::record;
use wharf_ground::caller::Caller;

/// The most shares of one volume.
const MAX_SHARES: usize = 50;

tables! {
    /// Shares of volumes by the number that is their id.
    pub const VOLUME_SHARES: Table<VolumeId, u64, VolumeShareRow> =
        Table::bounded(b'v', 1, "50 of a volume", "With their volume")
            .removed_with(&VOLUMES)
            .indexed(|volume, _, row, entries| {
                entries.put(&VOLUMES_OF_READERS, (row.user.as_str(), *volume), &())
            });
    /// Volumes that are shared with the user of an address.
    pub const VOLUMES_OF_READERS: Table<String, VolumeId, ()> =
        Table::index_of(&VOLUME_SHARES, b'M', 0);
}

/// A share of a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeShareRow {
    /// Address of the reader in its canonical form, who may have no user yet.
    pub user: String,
    pub created_at: Timestamp,
}

/// A share as its owner sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeShare {
    pub id: u64,
    pub user: String,
    pub created_at: Timestamp,
}

/// Whether a volume is shared with the user of an address.
pub(super) fn shared_with(rows: &impl Rows, id: VolumeId, email: &str) -> Result<bool, Error> {
    Ok(rows.get(&VOLUMES_OF_READERS, (email, id))?.is_some())
}

/// The volumes that are shared with the user of an address.
pub(super) fn shares_with(rows: &impl Rows, email: &str) -> Result<Vec<Volume>, Error> {
    let mut found = Vec::new();
    for id in rows.keys_under(&VOLUMES_OF_READERS, &email.to_owned())? {
        let volume = rows.get(&VOLUMES, id?)?;
        found.extend(volume.filter(|volume| !volume.deleted));
    }
    Ok(found)
}

fn shares(rows: &impl Rows, volume: VolumeId) -> Result<Vec<VolumeShare>, Error> {
    let mut found = Vec::new();
    for row in rows.under(&VOLUME_SHARES, &volume)? {
        let (id, VolumeShareRow { user, created_at }) = row?;
        found.push(VolumeShare {
            id,
            user,
            created_at,
        });
    }
    found.sort_by_key(|share| (share.created_at, share.id));
    Ok(found)
}

impl App {
    /// Returns the shares of one of the caller's volumes, in the order of their creation. A reader sees the
    /// own one alone.
    pub fn volume_shares(&self, caller: &Caller, named: &str) -> Result<Vec<VolumeShare>, Error> {
        let reader = Reader::from(caller);
        self.db.read(|rows| {
            let volume = readable(rows, &reader, named)?.ok_or(MISSING)?;
            let mut found = shares(rows, volume.id)?;
            found.retain(|share| volume.owner == reader.user || share.user == reader.email);
            Ok(found)
        })
    }

    /// Shares one of the caller's volumes with the user of an address in its canonical form.
    pub async fn share_volume(
        &self,
        caller: &Caller,
        named: &str,
        user: String,
    ) -> Result<VolumeShare, Error> {
        let id = self.random.number()?;
        let (owner, named, own_email) = (caller.user, named.to_owned(), caller.email.to_string());
        let origin = caller.origin();
        let decide = move |view: &View<'_>| {
            let volume = own(view.rows, owner, &named)?.ok_or(MISSING)?;
            suspension::check_user(view.rows, owner)?;
            let others = shares(view.rows, volume.id)?;
            let refusal = if user == own_email {
                Some("is your own address".to_owned())
            } else if others.iter().any(|share| share.user == user) {
                Some("reads the volume already".to_owned())
            } else if others.len() >= MAX_SHARES {
                Some(format!("a volume can have at most {MAX_SHARES} shares"))
            } else {
                None
            };
            if let Some(refusal) = refusal {
                return Err(FieldErrors::one("user", refusal).into());
            }
            let row = VolumeShareRow {
                user: user.clone(),
                created_at: view.system,
            };
            let share = VolumeShare {
                id,
                user: row.user.clone(),
                created_at: row.created_at,
            };
            let name = volume.name.to_string();
            let changes = Changes::none()
                .put(&VOLUME_SHARES, (volume.id, id), row)
                .record_kept(volume, view.now, KeptEvent::Shared(user.clone()))
                .by(&origin);
            let result = format!("shared with {user}");
            let audited = record(view, &origin, "volume.share", Some(owner), &name, &result);
            Ok((share, changes.with(audited)))
        };
        self.db.write(decide).await
    }

    /// Ends a share of the caller's volume, or the one by which the caller reads another user's. Instances that
    /// have the volume keep it.
    pub async fn unshare_volume(
        &self,
        caller: &Caller,
        named: &str,
        id: Option<u64>,
    ) -> Result<(), Error> {
        let (reader, named, origin) = (Reader::from(caller), named.to_owned(), caller.origin());
        let decide = move |view: &View<'_>| {
            let volume = readable(view.rows, &reader, &named)?.ok_or(MISSING)?;
            let is_own = volume.owner == reader.user;
            let missing = Error::Missing("Share");
            let Some(id) = id else { return Err(missing) };
            let key = (volume.id, id);
            let share = view.rows.get(&VOLUME_SHARES, key)?;
            let share = share.filter(|share| is_own || share.user == reader.email);
            let share = share.ok_or(missing)?;
            let name = volume.name.to_string();
            let result = format!("not shared with {} any more", share.user);
            let changes = Changes::none().remove(&VOLUME_SHARES, key);
            let changes = if is_own {
                let what = KeptEvent::Unshared(share.user);
                changes.record_kept(volume, view.now, what).by(&origin)
            } else {
                // The owner is told, and not by which key of the reader.
                changes.record_kept(volume, view.now, KeptEvent::Left(share.user))
            };
            let user = Some(reader.user);
            let audited = record(view, &origin, "volume.unshare", user, &name, &result);
            Ok(((), changes.with(audited)))
        };
        self.db.write_essential(decide).await
    }
}
