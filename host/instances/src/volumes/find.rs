//! Lookup of the volume that a path or a request names.

use super::shares::{shared_with, shares_with};
use wharf_db::{Rows, VOLUME_NAMES, VOLUMES};
use wharf_domain::error::Error;
use wharf_domain::ids::{UserId, VolumeId};
use wharf_domain::volume::Volume;
use wharf_ground::caller::Caller;

/// The answer where the caller has no such volume.
pub(super) const MISSING: Error = Error::Missing("Volume");

/// A user who looks for volumes.
#[derive(Debug, Clone)]
pub struct Reader {
    pub user: UserId,
    /// Address in its canonical form.
    pub email: String,
}

impl From<&Caller> for Reader {
    fn from(caller: &Caller) -> Self {
        Self {
            user: caller.user,
            email: caller.email.to_string(),
        }
    }
}

/// A volume of the user's own.
pub(super) fn own(rows: &impl Rows, user: UserId, named: &str) -> Result<Option<Volume>, Error> {
    let id = match VolumeId::parse(named) {
        Some(id) => Some(id),
        None => rows.get(&VOLUME_NAMES, (user, named.to_owned()))?,
    };
    let volume = match id {
        Some(id) => rows.get(&VOLUMES, id)?,
        None => None,
    };
    Ok(volume.filter(|volume| volume.owner == user && !volume.deleted))
}

/// A volume of the user's own, or one that is shared with the user: by its UUID, or by its name if only one
/// has it.
pub(super) fn readable(
    rows: &impl Rows,
    reader: &Reader,
    named: &str,
) -> Result<Option<Volume>, Error> {
    if let Some(volume) = own(rows, reader.user, named)? {
        return Ok(Some(volume));
    }
    if let Some(id) = VolumeId::parse(named) {
        return match rows.get(&VOLUMES, id)? {
            Some(volume) if !volume.deleted && shared_with(rows, id, &reader.email)? => {
                Ok(Some(volume))
            }
            _ => Ok(None),
        };
    }
    let mut found = None;
    for volume in shares_with(rows, &reader.email)? {
        if volume.name.as_str() == named && found.replace(volume).is_some() {
            return Ok(None);
        }
    }
    Ok(found)
}
