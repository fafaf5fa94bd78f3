//! Moves of instances to other nodes: of their cluster, or by a copy of their content.
//!
//! One write begins a move: it reserves a claim on the new node, and stops an instance that runs. Another
//! write ends it: the instance has its claim on the new node, or keeps the old one. In between, the
//! reconciler makes the new node fetch the instance.

use super::content::content;
use super::copies;
use super::nodes::NodeState;
use super::snapshots::SOURCES;
use super::suspension::{SUSPENDED, SUSPENDED_USERS};
use super::{App, SharedInventory, snapshots};
use wharf_config::Config;
use wharf_db::{CLAIMS, Changes, MOVES, MoveRow, Read, Rows, Table, View, tables};
use wharf_domain::audit::Origin;
use wharf_domain::capacity::Claim;
use wharf_domain::error::Error;
use wharf_domain::event::{EventKind, InstanceAddresses};
use wharf_domain::ids::{InstanceId, NodeId, UserId};
use wharf_domain::instance::{Instance, Intent, Progress, ResourceType};
use wharf_domain::placement::{MovePlace, MoveRequest, PlacementRequest};
use wharf_domain::time::Timestamp;
use wharf_ground::audit::record;
use wharf_ground::caller::Caller;

tables! {
    /// Users who let the operator stop, move and start their running instances.
    pub const MOVABLE: Table<UserId, (), ()> =
        Table::bounded(b'q', 1, "One row of a user", "Until the user changes it");
    /// Nodes that the operator drains.
    pub const DRAINED: Table<String, (), ()> =
        Table::bounded(b'N', 1, "One row of a node", "Until the operator resumes the node")
            .followed();
}

/// Whether the operator drains a node.
pub fn is_drained(rows: &impl Rows, node: &NodeId) -> Result<bool, Error> {
    Ok(rows.get(&DRAINED, &*node.0)?.is_some())
}

/// The nodes that the operator drains.
pub fn drained(rows: &impl Rows) -> Result<Vec<NodeId>, Error> {
    let nodes = rows.all(&DRAINED)?;
    nodes
        .map(|row| row.map(|(node, (), ())| NodeId(node)))
        .collect()
}

/// Whether a user's running instances may be moved.
pub fn consents(rows: &impl Rows, user: UserId) -> Result<bool, Error> {
    Ok(rows.get(&MOVABLE, user)?.is_some())
}

/// Notes whether a user's running instances may be stopped, moved and started again. Pure.
pub fn note_consent(
    view: &View<'_>,
    origin: &Origin,
    user: UserId,
    email: &str,
    permitted: bool,
) -> Result<Changes, Error> {
    if consents(view.rows, user)? == permitted {
        return Ok(Changes::none());
    }
    let result = if permitted { "permitted" } else { "refused" };
    let audited = record(view, origin, "user.moves", Some(user), email, result);
    let changes = Changes::none().set(&MOVABLE, user, permitted.then_some(()));
    Ok(changes.with(audited))
}

impl App {
    /// Whether the caller's running instances may be stopped, moved and started again.
    pub fn allows_moves(&self, caller: &Caller) -> Result<bool, Error> {
        self.db.read(|rows| consents(rows, caller.user))
    }

    /// Notes the caller's own choice.
    pub async fn allow_moves(&self, caller: &Caller, permitted: bool) -> Result<(), Error> {
        let (user, email, origin) = (caller.user, caller.email.clone(), caller.origin());
        let decided = self.db.write(move |view| {
            let changes = note_consent(view, &origin, user, &email, permitted)?;
            Ok(((), changes))
        });
        decided.await?;
        self.look_for_moves();
        Ok(())
    }
}

/// Fails if the instance is moving.
pub(super) fn check(rows: &impl Rows, instance: &Instance) -> Result<(), Error> {
    match rows.get(&MOVES, instance.id)? {
        Some(_) => Err(Error::NotApplicable(
            "the instance moves to another host; try again when it has arrived",
        )),
        None => Ok(()),
    }
}

/// A node to which an instance can move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoveTarget {
    pub node: NodeId,
    /// It copies the content, since it has no cluster with the old node.
    pub copies: bool,
}

impl MoveTarget {
    /// Whether an instance of this type can move there. The disk of a virtual machine is one sparse file, which
    /// a copy would fill.
    pub fn takes(&self, what: ResourceType) -> bool {
        !self.copies || what == ResourceType::Container
    }
}

/// The prospect of an instance that is to leave its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveProspect {
    /// It moves.
    Moving,
    /// It may move.
    Movable {
        /// It runs, and is stopped before the move.
        runs: bool,
    },
    /// It runs, and its owner does not let it be stopped.
    Stays,
    /// Its volumes are on the node, and do not move.
    Bound,
    /// An earlier change is under way.
    Busy,
    /// It has failed, so that there is nothing to move.
    Failed,
    /// It is being deleted.
    Deleted,
}

/// The prospect of an instance; `bound` if it has volumes. Pure.
pub fn prospect(instance: &Instance, moving: bool, consents: bool, bound: bool) -> MoveProspect {
    match (instance.intent, instance.progress) {
        (Intent::Delete, _) => MoveProspect::Deleted,
        _ if moving => MoveProspect::Moving,
        _ if instance.failed => MoveProspect::Failed,
        (_, Progress::Pending) | (Intent::Start, _) => MoveProspect::Busy,
        _ if bound => MoveProspect::Bound,
        (Intent::Stop, _) => MoveProspect::Movable { runs: false },
        (Intent::Run, _) if consents => MoveProspect::Movable { runs: true },
        (Intent::Run, _) => MoveProspect::Stays,
    }
}

/// The other nodes of a node's cluster.
pub fn neighbours(config: &Config, node: &NodeId) -> Vec<NodeId> {
    let Some(own) = config.node.iter().find(|known| known.name == node.0) else {
        return Vec::new();
    };
    let is_near =
        |other: &&wharf_config::NodeConfig| other.name != own.name && other.is_beside(own);
    let others = config.node.iter().filter(is_near);
    others.map(|other| NodeId(other.name.clone())).collect()
}

/// The requirements of an existing instance.
pub(super) fn requirements(
    rows: &impl Read,
    instance: &Instance,
) -> Result<PlacementRequest, Error> {
    let spec = rows.provisioning_spec(instance.id)?;
    let images = spec.map(|spec| {
        let images = spec.blueprint.images.iter();
        images.map(|image| image.reference.clone()).collect()
    });
    // A clone is made where its snapshot is, and content stays where it has come to.
    let is_copy =
        rows.get(&SOURCES, instance.id)?.is_some() || content(rows, instance.id)?.is_some();
    let is_bound = (!instance.provisioned && is_copy) || snapshots::is_bound(rows, instance)?;
    Ok(PlacementRequest {
        owner: instance.owner,
        resource_type: instance.resource_type,
        size: instance.size,
        cpu_tier: instance.cpu_tier,
        gpu_model: instance.gpu_model.clone(),
        flavor: instance.flavor.clone(),
        web: instance.web_port.is_some(),
        images: images.unwrap_or_default(),
        nodes: is_bound.then(|| vec![instance.node.clone()]),
    })
}

/// A place for an instance that may move, and whether it needs a copy. A node of the cluster comes first.
pub fn place(
    inventory: &SharedInventory,
    rows: &impl Read,
    instance: &Instance,
    prospect: MoveProspect,
    to: &[MoveTarget],
) -> Result<Option<(MovePlace, bool)>, Error> {
    let (MoveProspect::Movable { runs: run }, Some(claim)) = (prospect, rows.claim(instance.id)?)
    else {
        return Ok(None);
    };
    let request = MoveRequest {
        placement: requirements(rows, instance)?,
        claim: &claim,
        ssh_host: &instance.ssh_host,
        run,
    };
    let among = |copies: bool| {
        let is_one = |node: &NodeId| {
            let mut to = to.iter();
            to.any(|to| to.node == *node && to.copies == copies && to.takes(instance.resource_type))
        };
        let place = inventory.place_move(&request, is_one);
        place.map(|place| (place, copies))
    };
    Ok(among(false).or_else(|| among(true)))
}

impl App {
    /// Lets the drainer look for instances that may have to move.
    pub fn look_for_moves(&self) {
        self.drains.notify_one();
    }

    /// The nodes to which instances of a node can move now, those of its cluster first.
    pub fn destinations(&self, node: &NodeId) -> Vec<MoveTarget> {
        let config = self.config();
        let Some(own) = config.node.iter().find(|known| known.name == node.0) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for other in config.node.iter().filter(|other| other.name != own.name) {
            let id = NodeId(other.name.clone());
            if self.nodes.state(&id) != NodeState::Reachable {
                continue;
            }
            let in_cluster =
                other.is_beside(own) && self.drivers.get(&id).is_some_and(|driver| driver.moves());
            if in_cluster || self.copies_content(node, &id) {
                found.push(MoveTarget {
                    node: id,
                    copies: !in_cluster,
                });
            }
        }
        found.sort_by_key(|destination| destination.copies);
        found
    }

    /// Whether content moves between two nodes.
    fn copies_content(&self, from: &NodeId, to: &NodeId) -> bool {
        let can = |node: &NodeId| {
            let driver = self
                .drivers
                .get(node)
                .filter(|driver| driver.has_content())?;
            let features = self.nodes.features(node)?;
            features.content.then(|| driver.engine_kind().to_owned())
        };
        can(from).is_some_and(|kind| can(to) == Some(kind))
    }

    /// Begins the move of an instance to one of these nodes. If it was not `asked` for, its node must be drained. False if
    /// it cannot move now.
    pub async fn begin_move(
        &self,
        id: InstanceId,
        to: Vec<MoveTarget>,
        asked: bool,
    ) -> Result<bool, Error> {
        let inventory = self.inventory.clone();
        let decided = self.db.write_essential(move |view| {
            let Some(row) = view.rows.instance(id)? else {
                return Ok((false, Changes::none()));
            };
            let (moving, consents) = (view.rows.get(&MOVES, id)?, consents(view.rows, row.owner)?);
            let bound = snapshots::is_bound(view.rows, &row)?;
            let prospect = prospect(&row, moving.is_some(), consents, bound);
            let place = if asked || is_drained(view.rows, &row.node)? {
                place(&inventory, view.rows, &row, prospect, &to)?
            } else {
                None
            };
            let Some((place, by_copy)) = place else {
                return Ok((false, Changes::none()));
            };
            let mut copies = copies::copies(view.rows, id)?;
            if by_copy {
                copies = copies::begin(copies, &row, view.now);
            }
            let runs = place.claim.compute;
            let moving = MoveRow {
                claim: place.claim,
                ssh_host: place.ssh_host,
                keeps_ssh_port: place.keeps_ssh_port,
                stopped: !runs,
                run: runs,
            };
            let mut row = row;
            row.intend(Intent::Stop, None);
            let changes = copies::put(Changes::none(), id, copies)
                .put(&MOVES, id, moving)
                .record(row, view.now, EventKind::Moving)
                .audited(&Origin::operator(), "instance.move", view.now);
            Ok((true, changes))
        });
        let begun = decided.await?;
        if begun {
            self.wake(id).await;
        }
        Ok(begun)
    }
}

/// The row of an instance with a new claim, perhaps on another node.
pub(super) fn relocated(instance: Instance, claim: &Claim, ssh_host: &str) -> Instance {
    Instance {
        node: claim.node.clone(),
        ssh_host: ssh_host.to_owned(),
        ssh_port: claim.ssh_port,
        web_port: claim.web_port,
        lan_ipv4: claim.lan_ipv4,
        lan_subnet: claim.lan_subnet,
        public_ipv4: claim.public_ipv4,
        gpus: claim.gpus.clone(),
        ..instance
    }
}

/// Ends a move: the new node has the instance, which starts there by the deadline if it ran before.
pub fn arrive(
    row: Instance,
    moving: &MoveRow,
    view: &View<'_>,
    deadline: Timestamp,
) -> Result<Changes, Error> {
    let (id, from) = (row.id, row.node.clone());
    let row = relocated(row, &moving.claim, &moving.ssh_host);
    let (mut row, run) = resume(row, moving, view, deadline)?;
    let copies = copies::copies(view.rows, id)?;
    let copy = copies.making;
    row.incarnation = copy.unwrap_or(row.incarnation);
    let mut claim = moving.claim.clone();
    claim.compute = run;
    let addresses = InstanceAddresses {
        ssh_host: row.ssh_host.clone(),
        ssh_port: row.ssh_port,
        lan_ipv4: row.lan_ipv4,
        public_ipv4: row.public_ipv4,
    };
    let mut changes = copies::put(Changes::none(), id, copies::keep(copies));
    if copy.is_some() {
        // A copy needs no snapshot of the old node.
        changes = changes.remove(&SOURCES, id);
    }
    // The ports that stay are freed with the old claim, and taken with the new one.
    Ok(changes
        .remove(&MOVES, id)
        .remove(&CLAIMS, (from.0, id))
        .put_claim(id, claim)
        .record(row, view.now, EventKind::Moved(addresses)))
}

/// Ends a move that is not possible: the instance stays on its node, and starts there again if it ran.
pub fn abandon(
    row: Instance,
    moving: &MoveRow,
    view: &View<'_>,
    deadline: Timestamp,
    why: String,
) -> Result<Changes, Error> {
    let id = row.id;
    let (row, run) = resume(row, moving, view, deadline)?;
    let changes = copies::leave_on(Changes::none(), view.rows, id, &moving.claim.node)?;
    let mut changes = changes.remove(&MOVES, id);
    if let Some(mut claim) = view.rows.claim(id)? {
        claim.compute = run;
        changes = changes.put_claim(id, claim);
    }
    Ok(changes.record(row, view.now, EventKind::MoveFailed(why)))
}

/// The row after a move. True if the instance is to run again.
fn resume(
    mut row: Instance,
    moving: &MoveRow,
    view: &View<'_>,
    deadline: Timestamp,
) -> Result<(Instance, bool), Error> {
    let suspended = view.rows.get(&SUSPENDED, row.id)?.is_some()
        || view.rows.get(&SUSPENDED_USERS, row.owner)?.is_some();
    let run = moving.run && !suspended;
    if run {
        row.intend(Intent::Run, Some(deadline))
    } else {
        row.progress = Progress::Settled
    }
    Ok((row, run))
}
