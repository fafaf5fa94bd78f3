//! The drain of a node: no new instances on it, and no start of stopped ones, until it is resumed. Its
//! instances move to other nodes of its cluster.

use super::Operator;
use serde::{Deserialize, Serialize};
use wharf_db::{Changes, MOVES, Read, Rows as _, View};
use wharf_domain::audit::Origin;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::event::EventKind;
use wharf_domain::ids::NodeId;
use wharf_domain::instance::{Instance, Intent};
use wharf_ground::audit::record;
use wharf_ground::users::USERS;
use wharf_instances::moves::{
    DRAINED, MoveProspect, MoveTarget, consents, is_drained, neighbours, place, prospect,
};
use wharf_instances::snapshots::is_bound;

/// The instances and volumes that are left on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOnNode {
    pub instances: Vec<RemainingInstance>,
    /// Number of volumes and snapshots, whose data is on the node for good.
    pub volumes_and_snapshots: usize,
}

/// An instance that is left on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemainingInstance {
    /// UUID of the instance.
    pub instance: String,
    pub name: String,
    /// E-mail address of the owner.
    pub owner: String,
    pub state: String,
    /// Whether it moves, or the reason why it stays.
    #[serde(rename = "fate")]
    pub outcome: String,
}

impl Operator<'_> {
    /// Begins or ends the drain of a node. Returns the instances and volumes that are left on it.
    pub async fn drain_node(&self, name: &str, drained: bool) -> Result<LeftOnNode, Error> {
        let node = NodeId(name.to_owned());
        if !self.config.node.iter().any(|node| node.name == name) {
            return Err(FieldErrors::one("node", format!("no node is called {name:?}")).into());
        }
        let id = node.clone();
        let decided = self.db.write_essential(move |view| {
            if is_drained(view.rows, &id)? == drained {
                return Ok(((), Changes::none()));
            }
            let (operation, result) = if drained {
                ("node.drain", "drained")
            } else {
                ("node.resume", "resumed")
            };
            let audited = record(view, &Origin::operator(), operation, None, &id.0, result);
            let mut changes = Changes::none()
                .set(&DRAINED, &*id.0, drained.then_some(()))
                .with(audited);
            if drained {
                changes = changes.with(notify_owners(view, &id)?);
            }
            Ok(((), changes))
        });
        decided.await?;
        if let Some(app) = self.app {
            app.look_for_moves();
        }
        self.left_on(&node)
    }

    fn left_on(&self, node: &NodeId) -> Result<LeftOnNode, Error> {
        let near = neighbours(&self.config, node);
        let to = self.app.map(|app| app.destinations(node));
        self.db.read(|rows| {
            let mut instances = Vec::new();
            for id in rows.on_node(node)? {
                let Some(instance) = rows.instance(id)? else {
                    continue;
                };
                let (moving, consents) = (
                    rows.get(&MOVES, id)?.is_some(),
                    consents(rows, instance.owner)?,
                );
                let bound = is_bound(rows, &instance)?;
                let prospect = prospect(&instance, moving, consents, bound);
                let text = match prospect {
                    MoveProspect::Moving => "moving",
                    MoveProspect::Deleted => "being deleted",
                    MoveProspect::Failed => "stays: failed, its owner can delete it",
                    MoveProspect::Busy => "waits: a change of it is under way",
                    MoveProspect::Bound => {
                        "stays: its volumes or snapshots are on this node for good"
                    }
                    _ if near.is_empty() && to.as_ref().is_none_or(Vec::is_empty) => {
                        "stays: the node has no other one in its cluster"
                    }
                    MoveProspect::Stays => {
                        "stays: runs, and its owner does not let it be stopped for a move"
                    }
                    MoveProspect::Movable { .. } => match &to {
                        None => "moves once the server runs",
                        Some(to) if to.is_empty() => {
                            "waits: no other node of the cluster is in reach"
                        }
                        Some(to) if !to.iter().any(|to| to.takes(instance.resource_type)) => {
                            "stays: a virtual machine moves only within a cluster"
                        }
                        Some(to) if !self.has_place(rows, &instance, prospect, to)? => {
                            "waits: no other node has room"
                        }
                        Some(_) => "moves soon",
                    },
                };
                instances.push(RemainingInstance {
                    instance: id.to_string(),
                    owner: rows.get(&USERS, instance.owner)?.unwrap_or_default(),
                    state: instance.state().to_string(),
                    name: instance.name.as_str().to_owned(),
                    outcome: text.to_owned(),
                });
            }
            let kept = rows.kept_claims()?;
            let kept = kept.iter().filter(|kept| kept.node == *node).count();
            Ok(LeftOnNode {
                instances,
                volumes_and_snapshots: kept,
            })
        })
    }

    fn has_place(
        &self,
        rows: &impl Read,
        instance: &Instance,
        prospect: MoveProspect,
        to: &[MoveTarget],
    ) -> Result<bool, Error> {
        Ok(place(self.inventory, rows, instance, prospect, to)?.is_some())
    }
}

/// Tells the owners of running instances that do not move.
fn notify_owners(view: &View<'_>, node: &NodeId) -> Result<Changes, Error> {
    let mut changes = Changes::none();
    for id in view.rows.on_node(node)? {
        let Some(instance) = view.rows.instance(id)? else {
            continue;
        };
        let stays = !consents(view.rows, instance.owner)? || is_bound(view.rows, &instance)?;
        if instance.intent == Intent::Run && stays {
            changes = changes.record(instance, view.now, EventKind::NodeDrained);
        }
    }
    Ok(changes)
}
