//! `recreate/`: creates an instance again that was lost with its node. It keeps its UUID, name, flavor, size,
//! keys and rates, and has new addresses and new ports. Its disk is that of a backup, or empty.

use super::content::{CONTENT, ContentNodes, ContentRow, ContentStore};
use super::find::Selector;
use super::host_keys::HOST_KEYS;
use super::suspension;
use super::{App, InstanceCondition, InstanceView, SharedInventory, audited, moves, quota};
use std::collections::BTreeMap;
use std::sync::Arc;
use wharf_db::{Changes, Read, View};
use wharf_domain::audit::Origin;
use wharf_domain::backup::{Backup, BackupOf, ContentOf};
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::event::EventKind;
use wharf_domain::ids::{BackupId, InstanceId};
use wharf_domain::instance::{Instance, Intent, ResourceType};
use wharf_domain::quota::QuotaLimits;
use wharf_domain::time::Timestamp;
use wharf_ground::caller::Caller;

/// The open port of a new virtual machine.
const NEW: [u16; 1] = [22];
const OPERATION: &str = "instance.recreate";

/// The disk of an instance that is created again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewDisk {
    Empty,
    /// That of its newest backup.
    Newest,
    Backup(BackupId),
}

/// Fails unless the instance was lost with its node.
pub fn check_lost(rows: &impl Read, id: InstanceId) -> Result<(), Error> {
    if rows.is_lost(id)? {
        return Ok(());
    }
    Err(Error::NotApplicable(
        "only an instance whose host was lost can be created again",
    ))
}

/// The time at which an instance was lost, and the names of the volumes that it had then, as far as its events tell.
pub fn loss(rows: &impl Read, id: InstanceId) -> Result<(Option<Timestamp>, Vec<String>), Error> {
    let (mut at, mut volumes) = (None, BTreeMap::new());
    for row in rows.event_rows(id)? {
        match row.event.what {
            EventKind::VolumeAttached { volume, name, .. } => drop(volumes.insert(volume, name)),
            EventKind::VolumeDetached { volume, .. } => drop(volumes.remove(&volume)),
            EventKind::Recreated | EventKind::RecreatedFrom(_) => volumes.clear(),
            EventKind::Lost => at = Some(row.event.at),
            _ => {}
        }
    }
    Ok((at, volumes.into_values().collect()))
}

/// The inputs of a decision about a lost instance, beside the rows.
struct Recreation {
    inventory: SharedInventory,
    defaults: QuotaLimits,
    deadline: Timestamp,
    disk: NewDisk,
    store: Option<Arc<dyn ContentStore>>,
    nodes: ContentNodes,
}

/// The instance, and the time of its backup.
type Recreated = (Instance, Option<Timestamp>);

impl Recreation {
    fn decide(&self, view: &View<'_>, row: Instance) -> Result<(Recreated, Changes), Error> {
        let (id, owner) = (row.id, row.owner);
        suspension::check(view.rows, &row)?;
        check_lost(view.rows, id)?;
        let backup = self.backup(view, &row)?;
        let limits = quota::limits(view.rows, owner, self.defaults)?;
        let mut request = moves::requirements(view.rows, &row)?;
        // Content that was on its way to the old node does not bind the instance to it.
        request.nodes = match &backup {
            Some(backup) => Some(self.nodes.of_kind(&backup.of.engine_kind)?),
            None => None,
        };
        let placement = quota::place(&self.inventory, limits, &request)?;
        if row.resource_type == ResourceType::Vm {
            quota::open(&self.inventory, limits, owner, [&NEW, &row.wan_ports])?;
        }
        let claim = placement.claim;
        let mut row = moves::relocated(row, &claim, &placement.ssh_host);
        (row.provisioned, row.failed) = (false, false);
        row.intend(Intent::Run, Some(self.deadline));
        let from = backup.as_ref().map(|backup| backup.created_at);
        let content = backup.map(|backup| ContentRow {
            of: ContentOf {
                backup: backup.id,
                engine_kind: backup.of.engine_kind,
            },
            has_come: false,
        });
        let what = from.map_or(EventKind::Recreated, EventKind::RecreatedFrom);
        let changes = Changes::none()
            .set_lost(id, false)
            .put_claim(id, claim)
            .put(&HOST_KEYS, id, Vec::new())
            .set(&CONTENT, id, content)
            .record(row, view.now, what);
        Ok(((changes.instance()?, from), changes))
    }

    /// The backup that the disk is to be of.
    fn backup(&self, view: &View<'_>, of: &Instance) -> Result<Option<Backup>, Error> {
        let (wanted, none) = match self.disk {
            NewDisk::Empty => return Ok(None),
            NewDisk::Newest => (None, "this instance has no backup"),
            NewDisk::Backup(id) => (Some(id), "this instance has no such backup"),
        };
        let store = self.store.as_ref().ok_or(Error::Overloaded)?;
        let found = store.backup(view, of, wanted)?;
        let found = found.ok_or_else(|| FieldErrors::one("backup", none))?;
        let fits = match &found.of.what {
            BackupOf::Instance { size, .. } => size.disk_size_gib <= of.size.disk_size_gib,
            BackupOf::Volume { .. } => false,
        };
        if of.resource_type != ResourceType::Container || !fits {
            return Err(
                FieldErrors::one("backup", "is larger than the disk of this instance").into(),
            );
        }
        Ok(Some(found))
    }
}

impl App {
    async fn recreation(&self, disk: NewDisk) -> Recreation {
        Recreation {
            inventory: self.inventory.clone(),
            defaults: self.config().quota.limits(),
            deadline: self.deadline(self.clock.now()),
            disk,
            store: self.content_store(),
            nodes: match disk {
                NewDisk::Empty => ContentNodes::default(),
                NewDisk::Newest | NewDisk::Backup(_) => self.content_nodes_seen().await,
            },
        }
    }

    /// Places a lost instance again. The reconciler makes it after the answer.
    pub async fn recreate(
        &self,
        caller: &Caller,
        selector: &Selector,
        condition: &InstanceCondition,
        disk: NewDisk,
    ) -> Result<InstanceView, Error> {
        let target = self.target(caller, selector, condition);
        let recreation = self.recreation(disk).await;
        let decided = self.change(caller, OPERATION, move |view| {
            recreation.decide(view, target.find(view.rows)?)
        });
        let (instance, _) = decided.await.map_err(|error| self.with_freeing(error))?;
        self.nudge(caller, instance.id).await;
        Ok(self.view(caller, instance))
    }

    /// Does so for the owner, at the operator's request, with the newest backup. Returns the time of the backup.
    pub async fn rescue(&self, id: InstanceId) -> Result<Option<Timestamp>, Error> {
        let recreation = self.recreation(NewDisk::Newest).await;
        let decided = audited(Origin::operator(), OPERATION, move |view: &View<'_>| {
            let row = view.rows.instance(id)?;
            let row = row.filter(|row| row.intent != Intent::Delete);
            recreation.decide(view, row.ok_or(Error::NotFound)?)
        });
        let (instance, from) = self.db.write(decided).await?;
        self.wake(instance.id).await;
        Ok(from)
    }
}
