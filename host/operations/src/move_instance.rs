//! The move of one instance to another node, at the operator's request.

use super::{Operator, no_instance};
use serde::{Deserialize, Serialize};
use wharf_db::{MOVES, Read as _, Rows as _};
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::{InstanceId, NodeId};
use wharf_domain::instance::Instance;
use wharf_instances::moves::{MoveProspect, MoveTarget, consents, place, prospect};
use wharf_instances::nodes::broken_limits;
use wharf_instances::snapshots::is_bound;
use wharf_instances::volumes::has_mounts;
use wharf_instances::{NodeState, Selector};

/// A move that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BegunMove {
    pub instance: InstanceId,
    /// The node to which it moves.
    pub node: String,
    /// Whether its content is copied, since the nodes have no common cluster.
    pub copies: bool,
    /// Whether it ran, and starts again after the move.
    pub restarts: bool,
}

impl Operator<'_> {
    /// Begins the move of an instance to a node, of its cluster or with an engine of its kind. One that runs is
    /// stopped, if its owner permits moves. A refusal names the reason.
    pub async fn move_instance(&self, instance: &str, node: &str) -> Result<BegunMove, Error> {
        let Some(app) = self.app else {
            return refuse(
                "node",
                "start the server first: it carries out moves".to_owned(),
            );
        };
        let selector = Selector::parse(instance);
        let row = self.db.read(|rows| {
            let id = match &selector {
                Selector::Id(id) => Some(*id),
                Selector::Name(name) => rows.id_of_name(name)?,
            };
            let row = id.map_or(Ok(None), |id| rows.instance(id))?;
            row.ok_or_else(|| no_instance(&selector))
        })?;
        let prospect = self.movable(&row)?;
        let to = self.destination(&row, node)?;
        let found = self.db.read(|rows| {
            let to = std::slice::from_ref(&to);
            place(self.inventory, rows, &row, prospect, to)
        })?;
        if found.is_none() {
            let broken = self.db.read(broken_limits)?;
            let why = if broken.contains_key(&to.node) {
                "takes nothing new, because it does not hold the sizes of disks"
            } else {
                "has no room for it, or cannot run it"
            };
            return refuse("node", format!("node {node} {why}; see `wharf node list`"));
        }
        let begun = BegunMove {
            instance: row.id,
            node: node.to_owned(),
            copies: to.copies,
            restarts: prospect == MoveProspect::Movable { runs: true },
        };
        if !app.begin_move(row.id, vec![to], true).await? {
            let why = "it has changed meanwhile; try again".to_owned();
            return refuse("instance", why);
        }
        Ok(begun)
    }

    /// The prospect of an instance that may move, or the reason why it stays.
    fn movable(&self, row: &Instance) -> Result<MoveProspect, Error> {
        let (prospect, has_volumes) = self.db.read(|rows| {
            let moving = rows.get(&MOVES, row.id)?.is_some();
            let (consents, bound) = (consents(rows, row.owner)?, is_bound(rows, row)?);
            let prospect = prospect(row, moving, consents, bound);
            Ok((prospect, has_mounts(rows, row.id)?))
        })?;
        let why = match prospect {
            MoveProspect::Movable { .. } => return Ok(prospect),
            MoveProspect::Moving => "moves already",
            MoveProspect::Deleted => "is being deleted",
            MoveProspect::Failed => "has failed: its owner can delete it",
            MoveProspect::Busy => "has a change under way: try again when that has ended",
            MoveProspect::Bound if !has_volumes => {
                "has snapshots, which are on its node for good: its owner can delete them"
            }
            MoveProspect::Bound => {
                "has volumes, which are on its node for good: its owner can create it without them"
            }
            MoveProspect::Stays => {
                "runs, and its owner does not let it be stopped for a move: the owner permits it \
                 in the account settings, or stops the instance"
            }
        };
        refuse("instance", format!("{} {why}", row.name.as_str()))
    }

    /// The node as a destination, or the reason why it is none.
    fn destination(&self, row: &Instance, node: &str) -> Result<MoveTarget, Error> {
        let id = NodeId(node.to_owned());
        if !self.config.node.iter().any(|known| known.name == node) {
            return refuse("node", format!("no node is called {node:?}"));
        }
        if row.node == id {
            return refuse("node", format!("the instance is on node {node} already"));
        }
        let app = self.app.ok_or_else(|| Error::internal("no server"))?;
        for of in [&row.node, &id] {
            let state = app.nodes().state(of);
            if state != NodeState::Reachable {
                return refuse("node", format!("node {of} is not in reach: {state}"));
            }
        }
        let mut to = app.destinations(&row.node).into_iter();
        let to = to.find(|to| to.node == id).ok_or_else(|| {
            let why = format!(
                "instances of node {} cannot move to node {node}: the nodes have no common cluster, and \
                 their engines do not copy content to each other; see docs/engines.md",
                row.node
            );
            Error::from(FieldErrors::one("node", why))
        })?;
        if !to.takes(row.resource_type) {
            let why = "a virtual machine moves only within a cluster".to_owned();
            return refuse("instance", why);
        }
        Ok(to)
    }
}

fn refuse<T>(field: &'static str, why: String) -> Result<T, Error> {
    Err(FieldErrors::one(field, why).into())
}
