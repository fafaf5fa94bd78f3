//! Lookup of the volume that a path or a request names.

use super::shares::{shared_with, shares_with};
use wharf_db::{Rows, VOLUME_NAMES, VOLUMES};
use wharf_domain::error::Error;
use wharf_domain::ids::{UserId, VolumeId};
use wharf_domain::volume::Volume;
use wharf_ground::caller::Caller;
use wharf_ground::users::user_of_email;

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

/// A volume of the user's own, or one that is shared with the user: by its UUID, or as
/// `owner@example.com/name`. A name alone means one's own volumes: else any user could put a volume in the
/// place of another one by a share.
pub(super) fn readable(
    rows: &impl Rows,
    reader: &Reader,
    named: &str,
) -> Result<Option<Volume>, Error> {
    if let Some(volume) = own(rows, reader.user, named)? {
        return Ok(Some(volume));
    }
    let id = match VolumeId::parse(named) {
        Some(id) => Some(id),
        None => of_owner(rows, named)?,
    };
    let volume = match id {
        Some(id) => rows.get(&VOLUMES, id)?.filter(|volume| !volume.deleted),
        None => None,
    };
    let Some(volume) = volume else {
        return Ok(None);
    };
    let may_read = volume.owner == reader.user || shared_with(rows, volume.id, &reader.email)?;
    Ok(may_read.then_some(volume))
}

/// The volume that is named as `owner@example.com/name`.
pub(super) fn of_owner(rows: &impl Rows, named: &str) -> Result<Option<VolumeId>, Error> {
    // An address may have a slash, and no name has one.
    let Some((owner, name)) = named.rsplit_once('/') else {
        return Ok(None);
    };
    match user_of_email(rows, owner)? {
        Some(owner) => rows.get(&VOLUME_NAMES, (owner, name.to_owned())),
        None => Ok(None),
    }
}

/// The answer to a request with a volume that its user has not.
pub(super) fn unknown(rows: &impl Rows, reader: &Reader, named: &str) -> Result<String, Error> {
    let shared = shares_with(rows, &reader.email)?;
    Ok(
        if shared.iter().any(|volume| volume.name.as_str() == named) {
            format!(
                "you have no volume {named:?}; a shared one is named with its owner, as in \
             owner@example.com/{named}, or by its UUID"
            )
        } else {
            format!("you have no volume {named:?}")
        },
    )
}
