//! `GET` of one volume and of the list.

use super::delete::refuse_in_use;
use super::find::{MISSING, Reader, own, readable};
use super::mounts::instances_with;
use super::shares::shares_with;
use crate::{App, Condition, KeptUse, Nodes};
use wharf_db::{INSTANCES, Rows, VOLUME_NAMES, VOLUMES};
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, NodeId, UserId};
use wharf_domain::volume::{OfVolume, Volume};
use wharf_ground::caller::Caller;
use wharf_ground::users::USERS;

/// The data of a volume that its reader may see.
#[derive(Debug, Clone)]
pub struct VolumeView {
    pub volume: Volume,
    pub owner_email: String,
    /// Whether another user shares it with the reader.
    pub shared: bool,
    pub attached_to: Vec<Attachment>,
}

/// The condition of a request on a volume.
pub type VolumeCondition = Condition<VolumeView>;

/// An instance that has a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Id, name and path; `None` for an instance of another user.
    pub own: Option<(InstanceId, String, String)>,
    pub owner_email: String,
    pub read_only: bool,
}

/// The volume as the reader sees it. Its owner sees all instances that have it, and other readers see their
/// own.
pub(super) fn view(rows: &impl Rows, reader: &Reader, volume: Volume) -> Result<VolumeView, Error> {
    let mut attached_to = Vec::new();
    let is_owner = volume.owner == reader.user;
    for (id, mount) in instances_with(rows, volume.id)? {
        let Some(instance) = rows.get(&INSTANCES, id)? else {
            continue;
        };
        let is_own = instance.owner == reader.user;
        if is_own || is_owner {
            attached_to.push(Attachment {
                own: is_own.then(|| {
                    (
                        id,
                        instance.name.to_string(),
                        mount.path.as_str().to_owned(),
                    )
                }),
                owner_email: rows.get(&USERS, instance.owner)?.unwrap_or_default(),
                read_only: mount.read_only,
            });
        }
    }
    Ok(VolumeView {
        owner_email: rows.get(&USERS, volume.owner)?.unwrap_or_default(),
        shared: !is_owner,
        attached_to,
        volume,
    })
}

impl KeptUse for OfVolume {
    type View = VolumeView;
    type Context = Reader;

    fn context(_: &App, caller: &Caller) -> Reader {
        Reader::from(caller)
    }

    fn view(rows: &impl Rows, reader: &Reader, volume: Volume) -> Result<VolumeView, Error> {
        view(rows, reader, volume)
    }

    fn own(rows: &impl Rows, user: UserId, named: &str) -> Result<Volume, Error> {
        own(rows, user, named)?.ok_or(MISSING)
    }

    fn readable(rows: &impl Rows, caller: &Caller, named: &str) -> Result<Volume, Error> {
        readable(rows, &Reader::from(caller), named)?.ok_or(MISSING)
    }

    fn refuse_in_use(rows: &impl Rows, volume: &Volume) -> Result<(), Error> {
        refuse_in_use(rows, volume)
    }

    fn work_on(nodes: &Nodes, node: &NodeId) {
        nodes.work_on_volumes(node);
    }
}

impl App {
    /// At most `limit` of the caller's volumes and those that are shared with the caller, oldest first, from
    /// the one that follows `after` on.
    pub fn volumes(
        &self,
        caller: &Caller,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<VolumeView>, Error> {
        let reader = Reader::from(caller);
        self.db.read(|rows| {
            let mut found = shares_with(rows, &reader.email)?;
            for row in rows.under(&VOLUME_NAMES, &reader.user)? {
                found.extend(rows.get(&VOLUMES, row?.1)?);
            }
            found.retain(|volume| after.is_none_or(|after| volume.seq > after));
            found.sort_by_key(|volume| volume.seq);
            let first = found.into_iter().take(limit);
            first.map(|volume| view(rows, &reader, volume)).collect()
        })
    }
}
