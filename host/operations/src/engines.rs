//! Compares the database with the engines of the nodes, for `wharf fsck --engines`.

use std::collections::{BTreeMap, BTreeSet};
use wharf_db::{Db, Read, Rows as _, VOLUMES, VOLUMES_ON};
use wharf_domain::driver::{ObservedVolume, VolumeState};
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, NodeId};
use wharf_domain::instance::{Instance, Intent, Progress};
use wharf_domain::kept::KeptStatus;
use wharf_plugin::NodeDriver;

/// One line for each object without a row, each row without its object, and each node that cannot be
/// compared.
pub async fn compare_engines(
    db: &Db,
    drivers: &BTreeMap<NodeId, NodeDriver>,
) -> Result<Vec<String>, Error> {
    let mut rows = BTreeMap::new();
    db.read(|read| read.each_instance(|i| drop(rows.insert(i.id, i))))?;
    let mut lines = Vec::new();
    let nodes: BTreeSet<&NodeId> = rows.values().map(|i| &i.node).collect();
    for node in nodes.iter().filter(|node| !drivers.contains_key(**node)) {
        let count = rows.values().filter(|i| i.node == **node).count();
        lines.push(format!(
            "node {node}: {count} instances are on it, but the configuration lacks it"
        ));
    }
    for (node, driver) in drivers {
        let listed = match driver.list().await {
            Ok(listed) => listed,
            Err(error) => {
                lines.push(format!("node {node}: not compared: {error}"));
                continue;
            }
        };
        let objects: BTreeSet<_> = listed
            .iter()
            .map(|observed| observed.tag.instance)
            .collect();
        for id in &objects {
            let here = rows.get(id).is_some_and(|row| row.node == *node);
            if here {
                continue;
            }
            let made = db.read(|read| read.was_made(*id))?;
            let why = if made {
                "its instance was deleted, and the next start removes it"
            } else {
                "no instance of this database; Wharf leaves it alone"
            };
            lines.push(format!("{id}: an orphan on node {node}: {why}"));
        }
        let here = rows.values().filter(|row| row.node == *node);
        for row in here.filter(|row| has_object(row) && !objects.contains(&row.id)) {
            lines.push(format!(
                "{}: a ghost: its row says that it is on node {node}, which does not have it",
                row.id
            ));
        }
        match driver.list_volumes().await {
            Ok(listed) => lines.extend(compare_volumes(db, node, &listed)?),
            Err(error) => lines.push(format!(
                "node {node}: its volumes are not compared: {error}"
            )),
        }
    }
    Ok(lines)
}

/// The lines of the volumes of a node.
fn compare_volumes(
    db: &Db,
    node: &NodeId,
    listed: &[ObservedVolume],
) -> Result<Vec<String>, Error> {
    let mut lines = Vec::new();
    let states: BTreeMap<_, _> = listed.iter().map(|one| (one.volume, &one.state)).collect();
    db.read(|rows| {
        for id in states.keys() {
            if rows.get(&VOLUMES, *id)?.is_some() {
                continue;
            }
            let why = if rows.was_made(InstanceId(id.0))? {
                "it was deleted, and the next start removes it"
            } else {
                "no volume of this database; Wharf leaves it alone"
            };
            lines.push(format!("volume {id}: an orphan on node {node}: {why}"));
        }
        for id in rows.keys_under(&VOLUMES_ON, &node.0)? {
            let id = id?;
            let row = rows.get(&VOLUMES, id)?;
            let is_ready = row.is_some_and(|row| row.status() == KeptStatus::Ready);
            let is_there = matches!(
                states.get(&id),
                Some(VolumeState::Ready(()) | VolumeState::InUse)
            );
            if is_ready && !is_there {
                lines.push(format!(
                    "volume {id}: a ghost: its row says that it is on node {node}, which does not have it"
                ));
            }
        }
        Ok(())
    })?;
    Ok(lines)
}

/// Whether the engine must have an object for a row.
fn has_object(row: &Instance) -> bool {
    row.progress == Progress::Settled && row.provisioned && row.intent != Intent::Delete
}
