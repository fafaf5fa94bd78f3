//! The volumes of a lost instance. One that was lost too is made again from its newest backup, on the node of the
//! instance. One that a node has, because it came back with another instance, is attached again.

use super::ContentNodes;
use crate::SharedInventory;
use crate::volumes::{NewMounts, Reader, claim, name_volumes};
use std::collections::BTreeMap;
use wharf_db::{Changes, Read, VOLUMES};
use wharf_domain::backup::{Backup, ContentOf};
use wharf_domain::capacity::Size;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::event::EventKind;
use wharf_domain::ids::{InstanceId, NodeId, VolumeId};
use wharf_domain::instance::Instance;
use wharf_domain::kept::{KeptEvent, KeptFailure};
use wharf_domain::quota::QuotaUsage;
use wharf_domain::time::Timestamp;
use wharf_domain::volume::{MountPath, MountRequest, OfVolume, Volume};
use wharf_ground::users::USERS;

/// The advice where the volumes are in the way.
const WITHOUT: &str = "set `volumes` to false to create the instance again without them";

/// A volume that an instance had when it was lost.
struct LostMount {
    volume: VolumeId,
    name: String,
    path: String,
    read_only: bool,
}

/// A volume that comes back with its instance.
#[derive(Debug, Clone)]
pub struct ReturningMount {
    pub row: Volume,
    pub path: MountPath,
    pub read_only: bool,
    /// The backup that it is made of; none if a node has it.
    pub from: Option<Backup>,
}

/// The volumes of a lost instance, by whether they come back with it.
#[derive(Debug, Clone, Default)]
pub struct Returning {
    /// The time of the loss, as far as the events of the instance tell.
    pub lost_at: Option<Timestamp>,
    pub back: Vec<ReturningMount>,
    /// Names of the others: their owner has deleted them, they have no backup, or are not for this instance now.
    pub lost: Vec<String>,
}

/// The time at which an instance was lost, and the volumes that it had then, as far as its events tell.
fn loss(rows: &impl Read, id: InstanceId) -> Result<(Option<Timestamp>, Vec<LostMount>), Error> {
    let (mut at, mut volumes) = (None, BTreeMap::new());
    let mut before = BTreeMap::new();
    for row in rows.event_rows(id)? {
        match row.event.what {
            EventKind::VolumeAttached {
                volume,
                name,
                path,
                read_only,
            } => {
                let mount = LostMount {
                    volume,
                    name,
                    path,
                    read_only,
                };
                volumes.insert(volume, mount);
            }
            EventKind::VolumeDetached { volume, .. } => drop(volumes.remove(&volume)),
            EventKind::Recreated | EventKind::RecreatedFrom(_) => {
                before = std::mem::take(&mut volumes);
            }
            // The instance is lost as before, also without volumes that were left out.
            EventKind::Failed(_) => {
                before.append(&mut volumes);
                volumes = std::mem::take(&mut before);
            }
            EventKind::Lost => at = Some(row.event.at),
            _ => {}
        }
    }
    Ok((at, volumes.into_values().collect()))
}

impl Returning {
    /// Those of an instance. `newest` is the newest complete backup of a volume.
    pub fn of<R: Read>(
        rows: &R,
        instance: &Instance,
        newest: impl Fn(&R, &Volume) -> Result<Option<Backup>, Error>,
    ) -> Result<Self, Error> {
        let reader = Reader {
            user: instance.owner,
            email: rows.get(&USERS, instance.owner)?.unwrap_or_default(),
        };
        let (lost_at, mounts) = loss(rows, instance.id)?;
        let mut returning = Self {
            lost_at,
            ..Self::default()
        };
        for mount in mounts {
            let row = rows.get(&VOLUMES, mount.volume)?;
            let own = row.filter(|row| row.owner == reader.user && !row.deleted);
            let gone = own.filter(is_gone);
            let Ok(path) = MountPath::parse(&mount.path) else {
                returning.lost.push(mount.name);
                continue;
            };
            let back = if let Some(row) = gone {
                newest(rows, &row)?.map(|backup| ReturningMount {
                    row,
                    path,
                    read_only: mount.read_only,
                    from: Some(backup),
                })
            } else {
                let request = MountRequest {
                    volume: mount.volume.to_string(),
                    path,
                    read_only: Some(mount.read_only),
                };
                let claimed = claim(rows, &reader, &request)?.ok();
                claimed.map(|(row, _)| ReturningMount {
                    row,
                    path: request.path,
                    read_only: mount.read_only,
                    from: None,
                })
            };
            match back {
                Some(back) => returning.back.push(back),
                None => returning.lost.push(mount.name),
            }
        }
        Ok(returning)
    }

    fn again(&self) -> impl Iterator<Item = (&Volume, &Backup)> {
        let again = self.back.iter();
        again.filter_map(|mount| Some((&mount.row, mount.from.as_ref()?)))
    }

    /// The quantities of those that hold nothing now.
    pub fn usage(&self) -> QuotaUsage {
        let mut usage = QuotaUsage::default();
        for (row, _) in self.again().filter(|(row, _)| row.is_lost()) {
            usage.n_volumes += 1;
            usage.volume_gib += u64::from(row.size_gib);
        }
        usage
    }

    /// The nodes that can have an instance of this size and its volumes; `None` if any can. `among` are
    /// those that can have the instance without them.
    pub fn nodes(
        &self,
        kinds: &ContentNodes,
        inventory: &SharedInventory,
        size: Size,
        among: Option<Vec<NodeId>>,
    ) -> Result<Option<Vec<NodeId>>, Error> {
        let mut nodes = among;
        let mut keep = |those: Vec<NodeId>| {
            let kept = match nodes.take() {
                Some(nodes) => nodes.into_iter().filter(|n| those.contains(n)).collect(),
                None => those,
            };
            nodes = Some(kept);
        };
        let mut disk = size.disk_size_gib;
        for (row, backup) in self.again() {
            keep(kinds.of_kind(&backup.of.engine_kind)?);
            disk = disk.saturating_add(row.size_gib);
        }
        let mut present = self.back.iter().filter(|mount| mount.from.is_none());
        if let Some(first) = present.next() {
            if let Some(other) = present.find(|other| other.row.node != first.row.node) {
                let (one, two) = (&first.row.name, &other.row.name);
                let why = format!("{one} and {two} are on two hosts: {WITHOUT}");
                return Err(FieldErrors::one("volumes", why).into());
            }
            keep(vec![first.row.node.clone()]);
        }
        let nodes = match nodes {
            Some(nodes) if !self.back.is_empty() => nodes,
            unbound => return Ok(unbound),
        };
        if nodes.is_empty() {
            let why = format!("no host takes the instance with all of its volumes: {WITHOUT}");
            return Err(FieldErrors::one("volumes", why).into());
        }
        let most = nodes.iter().map(|node| inventory.free_disk(node)).max();
        let with_room = |node: &NodeId| inventory.free_disk(node) >= disk;
        let roomy: Vec<_> = nodes.into_iter().filter(with_room).collect();
        if roomy.is_empty() {
            let short = (
                "disk_size_gib",
                disk.into(),
                most.unwrap_or_default().into(),
            );
            return Err(self.named(Error::Insufficient(vec![short].into()), size));
        }
        Ok(Some(roomy))
    }

    /// Adds the volumes to the shortfall of the nodes that can have them and an instance of this size.
    pub fn named(&self, error: Error, size: Size) -> Error {
        let names = self.back.iter().map(|mount| &mount.row.name);
        name_volumes(error, size, names)
    }

    /// The volumes on a node, and the rights of the instance among the changes to them.
    pub fn record(
        self,
        mut changes: Changes,
        node: &NodeId,
        now: Timestamp,
    ) -> Result<Changes, Error> {
        let mut mounts = NewMounts::default();
        for mount in self.back {
            let mut row = mount.row;
            if let Some(backup) = mount.from {
                row = Volume {
                    node: node.clone(),
                    made: false,
                    failure: None,
                    of: OfVolume {
                        copy: None,
                        content: Some(ContentOf {
                            backup: backup.id,
                            engine_kind: backup.of.engine_kind,
                        }),
                    },
                    ..row
                };
                let what = KeptEvent::RecreatedFrom(backup.created_at);
                changes = changes.record_kept(row.clone(), now, what);
            }
            mounts.add(row, mount.path, mount.read_only);
        }
        mounts.record(changes, now)
    }
}

/// Whether no node has the volume, and none will have it without another attempt.
fn is_gone(row: &Volume) -> bool {
    match row.failure {
        Some(KeptFailure::Lost) => true,
        Some(KeptFailure::NotMade | KeptFailure::NoContent) => !row.made,
        Some(KeptFailure::Missing) | None => false,
    }
}
