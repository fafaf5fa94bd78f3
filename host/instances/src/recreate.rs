//! `recreate/`: creates an instance again that was lost with its node. It keeps its UUID, name, flavor, size,
//! keys and rates, and has new addresses and new ports. Its disk is that of a backup, or empty. Its volumes come back
//! with it.

mod volumes;

pub use volumes::{Returning, ReturningMount};

use super::content::{CONTENT, ContentNodes, ContentRow, ContentStore};
use super::find::Selector;
use super::host_keys::HOST_KEYS;
use super::suspension;
use super::{App, InstanceCondition, InstanceView, SharedInventory, audited, moves, quota};
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

/// The parts of an instance that is created again.
#[derive(Debug, Clone, Copy)]
pub struct RecreateRequest {
    pub disk: NewDisk,
    /// Whether its volumes come back with it.
    pub volumes: bool,
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

/// The inputs of a decision about a lost instance, beside the rows.
struct Recreation {
    inventory: SharedInventory,
    defaults: QuotaLimits,
    deadline: Timestamp,
    wanted: RecreateRequest,
    store: Option<Arc<dyn ContentStore>>,
    nodes: ContentNodes,
    volume_nodes: ContentNodes,
}

/// An instance that is created again.
#[derive(Debug, Clone, Default)]
pub struct Recreated {
    /// Time of its backup; none if its disk is empty.
    pub from: Option<Timestamp>,
    /// Names of the volumes that do not come back.
    pub volumes_lost: Vec<String>,
}

impl Recreation {
    fn decide(
        &self,
        view: &View<'_>,
        row: Instance,
    ) -> Result<((Instance, Recreated), Changes), Error> {
        let (id, owner) = (row.id, row.owner);
        suspension::check(view.rows, &row)?;
        check_lost(view.rows, id)?;
        let backup = self.backup(view, &row)?;
        let mut volumes = self.volumes(view, &row)?;
        let volumes_lost = std::mem::take(&mut volumes.lost);
        let limits = quota::limits(view.rows, owner, self.defaults)?;
        quota::kept(&self.inventory, limits, owner, volumes.usage())?;
        let mut request = moves::requirements(view.rows, &row)?;
        // Content that was on its way to the old node does not bind the instance to it.
        let nodes = match &backup {
            Some(backup) => Some(self.nodes.of_kind(&backup.of.engine_kind)?),
            None => None,
        };
        request.nodes = volumes.nodes(&self.volume_nodes, &self.inventory, request.size, nodes)?;
        let placement = quota::place(&self.inventory, limits, &request)
            .map_err(|error| volumes.named(error, request.size))?;
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
        let node = changes.instance()?.node;
        let changes = volumes.record(changes, &node, view.now)?;
        let recreated = Recreated { from, volumes_lost };
        Ok(((changes.instance()?, recreated), changes))
    }

    /// The volumes that come back.
    fn volumes(&self, view: &View<'_>, of: &Instance) -> Result<Returning, Error> {
        if !self.wanted.volumes {
            return Ok(Returning::default());
        }
        let store = self.store.as_ref().ok_or(Error::Overloaded)?;
        Returning::of(view.rows, of, |_, volume| {
            store.backup_of_volume(view, volume)
        })
    }

    /// The backup that the disk is to be of.
    fn backup(&self, view: &View<'_>, of: &Instance) -> Result<Option<Backup>, Error> {
        let (wanted, none) = match self.wanted.disk {
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
    async fn recreation(&self, wanted: RecreateRequest) -> Recreation {
        Recreation {
            inventory: self.inventory.clone(),
            defaults: self.config().quota.limits(),
            deadline: self.deadline(self.clock.now()),
            wanted,
            store: self.content_store(),
            nodes: match wanted.disk {
                NewDisk::Empty => ContentNodes::default(),
                NewDisk::Newest | NewDisk::Backup(_) => self.content_nodes_seen().await,
            },
            volume_nodes: if wanted.volumes {
                self.volume_nodes_seen().await
            } else {
                ContentNodes::default()
            },
        }
    }

    /// Places a lost instance again. The reconciler makes it after the answer.
    pub async fn recreate(
        &self,
        caller: &Caller,
        selector: &Selector,
        condition: &InstanceCondition,
        wanted: RecreateRequest,
    ) -> Result<InstanceView, Error> {
        let target = self.target(caller, selector, condition);
        let recreation = self.recreation(wanted).await;
        let decided = self.change(caller, OPERATION, move |view| {
            recreation.decide(view, target.find(view.rows)?)
        });
        let (instance, _) = decided.await.map_err(|error| self.with_freeing(error))?;
        self.nodes.work_on_volumes(&instance.node);
        self.nudge(caller, instance.id).await;
        Ok(self.view(caller, instance))
    }

    /// Does so for the owner, at the operator's request, with the newest backup and the volumes.
    pub async fn rescue(&self, id: InstanceId) -> Result<Recreated, Error> {
        let recreation = self.recreation(RecreateRequest {
            disk: NewDisk::Newest,
            volumes: true,
        });
        let recreation = recreation.await;
        let decided = audited(Origin::operator(), OPERATION, move |view: &View<'_>| {
            let row = view.rows.instance(id)?;
            let row = row.filter(|row| row.intent != Intent::Delete);
            recreation.decide(view, row.ok_or(Error::NotFound)?)
        });
        let (instance, recreated) = self.db.write(decided).await?;
        self.nodes.work_on_volumes(&instance.node);
        self.wake(instance.id).await;
        Ok(recreated)
    }
}
