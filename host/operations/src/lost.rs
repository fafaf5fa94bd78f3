//! The loss of a node: its machine will not come back with its disks. The instances are reported as lost and
//! cost nothing, and everything that they held is free. Only the operator knows that a node is lost; one
//! that is out of reach frees nothing.

use super::Operator;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wharf_db::{CLAIMS, Changes, KeptTable, MOVES, Read as _, Rows as _, VOLUMES_ON, View};
use wharf_domain::audit::Origin;
use wharf_domain::driver::PluginError;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::event::EventKind;
use wharf_domain::ids::{InstanceId, NodeId};
use wharf_domain::instance::{Instance, Intent, Progress};
use wharf_domain::kept::{Kept, KeptEvent, KeptFailure};
use wharf_domain::snapshot::OfSnapshot;
use wharf_domain::volume::OfVolume;
use wharf_ground::audit::record;
use wharf_ground::users::USERS;
use wharf_instances::NodeState;
use wharf_instances::copies::{self, copies};
use wharf_instances::moves::{DRAINED, abandon, arrive, is_drained};
use wharf_instances::restart::STARTS;
use wharf_instances::snapshots::{RESTORES, SOURCES};
use wharf_instances::volumes::{MOUNTED, MOUNTS};

/// An instance that was lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostLine {
    /// UUID of the instance.
    pub instance: String,
    pub name: String,
    /// E-mail address of the owner.
    pub owner: String,
}

impl Operator<'_> {
    /// Gives up a node with its instances. Refuses if its engine answers. Returns the lost instances; those
    /// that were being deleted are gone.
    pub async fn lose_node(&self, name: &str) -> Result<Vec<LostLine>, Error> {
        let node = NodeId(name.to_owned());
        let configured = self.config.node.iter().any(|node| node.name == name);
        if configured {
            self.check_lost(&node).await?;
        } else if self.db.read(|rows| {
            let kept = rows.kept_claims()?;
            Ok(rows.on_node(&node)?.is_empty() && kept.iter().all(|kept| kept.node != node))
        })? {
            return refuse(format!("no node is called {name:?}"));
        }
        let id = node.clone();
        let full = Duration::from_secs(self.config.provisioning_deadline_s);
        let decided = self.db.write_essential(move |view| {
            let mut changes = Changes::none();
            let (mut lines, mut changed) = (Vec::new(), Vec::new());
            for instance in view.rows.on_node(&id)? {
                let Some(row) = view.rows.instance(instance)? else {
                    continue;
                };
                changed.push(instance);
                if row.intent == Intent::Delete {
                    changes = changes
                        .event(&row, view.now, EventKind::Purged)
                        .drop_instance(instance);
                    continue;
                }
                // Its content is on the new node of its move.
                let moving = view.rows.get(&MOVES, instance)?;
                let is_complete = copies(view.rows, instance)?.complete;
                if let Some(moving) = moving.filter(|_| is_complete) {
                    changes = changes.with(arrive(row, &moving, view, view.now.plus(full))?);
                    continue;
                }
                lines.push(LostLine {
                    instance: instance.to_string(),
                    name: row.name.as_str().to_owned(),
                    owner: view.rows.get(&USERS, row.owner)?.unwrap_or_default(),
                });
                changes = lose(changes, row, view)?;
            }
            changes = changes
                .with(unmount(view, &id)?)
                .with(lose_kept::<OfVolume>(view, &id)?)
                .with(lose_kept::<OfSnapshot>(view, &id)?);
            // An instance that was on its way to the node stays on the old one.
            for row in view.rows.under(&MOVES, &())? {
                let (instance, moving) = row?;
                let row = view.rows.instance(instance)?;
                let row = row.filter(|row| row.intent != Intent::Delete);
                if let Some(row) = row.filter(|row| row.node != id && moving.claim.node == id) {
                    let why = format!("node {id} is lost");
                    let until = view.now.plus(full);
                    changes = changes.with(abandon(row, &moving, view, until, why)?);
                    changed.push(instance);
                }
            }
            if configured && !is_drained(view.rows, &id)? {
                changes = changes.put(&DRAINED, &*id.0, ());
            }
            let audited = record(view, &Origin::operator(), "node.lost", None, &id.0, "lost");
            Ok(((lines, changed), changes.with(audited)))
        });
        let (lines, changed): (_, Vec<InstanceId>) = decided.await?;
        tracing::warn!(%node, instances = lines.len(), "the operator has given the node up as lost");
        if let Some(app) = self.app {
            for instance in changed {
                app.wake(instance).await;
                app.waiters().notify(instance);
            }
        }
        Ok(lines)
    }

    /// Fails if the node's engine answers, or may answer.
    async fn check_lost(&self, node: &NodeId) -> Result<(), Error> {
        let Some(app) = self.app else {
            return refuse(
                "start the server first: it sees whether the node is in reach".to_owned(),
            );
        };
        let driver = app.driver(node).cloned();
        let driver = driver.ok_or_else(|| Error::internal(format!("{node} has no driver")))?;
        let answer = app.call(async move { driver.list().await }).await;
        let state = app.nodes().state(node);
        let answers = matches!(
            answer,
            Ok(_) | Err(PluginError::Busy | PluginError::RetryLater(_))
        );
        match state {
            NodeState::Unreachable(_) if !answers => Ok(()),
            _ if answers => refuse(format!(
                "node {node} is in reach: drain it with `wharf node drain {node}`"
            )),
            state => refuse(format!(
                "node {node} is not known to be out of reach; it is: {state}"
            )),
        }
    }
}

/// Gives up an instance. A later incarnation tells its object from that of a new creation, and makes it an
/// orphan if the machine returns.
fn lose(changes: Changes, mut row: Instance, view: &View<'_>) -> Result<Changes, Error> {
    let id = row.id;
    let changes = match view.rows.get(&MOVES, id)? {
        Some(moving) => copies::leave_on(changes, view.rows, id, &moving.claim.node)?,
        None => changes,
    };
    let node = row.node.clone();
    row.failed = true;
    row.intend(Intent::Stop, None);
    row.progress = Progress::Settled;
    row.resize = None;
    row.incarnation += 1;
    Ok(changes
        .remove(&MOVES, id)
        .remove(&STARTS, id)
        .remove(&RESTORES, id)
        .remove(&SOURCES, id)
        .remove(&CLAIMS, (node.0, id))
        .set_lost(id, true)
        .record(row, view.now, EventKind::Lost)
        .audited(&Origin::operator(), "instance.lose", view.now))
}

/// Gives up the volumes or the snapshots of a node. The instances that had the volumes are lost too.
fn lose_kept<K: KeptTable>(view: &View<'_>, node: &NodeId) -> Result<Changes, Error> {
    let mut changes = Changes::none();
    for id in view.rows.keys_under(K::ON_NODE, &node.0)? {
        let Some(row) = view.rows.get(K::ROWS, id?)? else {
            continue;
        };
        if row.deleted {
            changes = changes.drop_kept(&row);
            continue;
        }
        let lost = Kept {
            failure: Some(KeptFailure::Lost),
            ..row
        };
        let (owner, name) = (Some(lost.owner), lost.name.to_string());
        let what = KeptEvent::Failed(KeptFailure::Lost, "the node is lost".to_owned());
        let operation = format!("{}.lose", K::WORD);
        let origin = Origin::operator();
        changes = changes
            .record_kept(lost, view.now, what)
            .with(record(view, &origin, &operation, owner, &name, "error"));
    }
    Ok(changes)
}

/// The instances of a lost node have its volumes no more.
fn unmount(view: &View<'_>, node: &NodeId) -> Result<Changes, Error> {
    let mut changes = Changes::none();
    for volume in view.rows.keys_under(&VOLUMES_ON, &node.0)? {
        let volume = volume?;
        for instance in view.rows.keys_under(&MOUNTED, &volume)? {
            changes = changes.remove(&MOUNTS, (instance?, volume));
        }
    }
    Ok(changes)
}

fn refuse<T>(why: String) -> Result<T, Error> {
    Err(FieldErrors::one("node", why).into())
}
