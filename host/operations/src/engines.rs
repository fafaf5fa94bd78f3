//! Compares the database with the engines of the nodes, for `wharf fsck --engines`.

use std::collections::{BTreeMap, BTreeSet};
use wharf_db::{Db, KeptTable, Read, Rows as _};
use wharf_domain::driver::PluginError;
use wharf_domain::error::Error;
use wharf_domain::ids::NodeId;
use wharf_domain::instance::{Instance, Intent, Progress};
use wharf_domain::kept::KeptStatus;
use wharf_domain::snapshot::OfSnapshot;
use wharf_domain::volume::OfVolume;
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
        let volumes = driver.list_volumes().await;
        let volumes = volumes.map(|all| {
            all.into_iter()
                .map(|one| (one.volume, one.state.is_whole()))
        });
        lines.extend(compare_kept::<OfVolume>(db, node, volumes)?);
        let snapshots = driver.list_snapshots().await;
        let snapshots = snapshots.map(|all| {
            all.into_iter()
                .map(|one| (one.snapshot, one.state.is_whole()))
        });
        lines.extend(compare_kept::<OfSnapshot>(db, node, snapshots)?);
    }
    Ok(lines)
}

/// The lines of the volumes or the snapshots of a node, from a list that says which are whole.
fn compare_kept<K: KeptTable>(
    db: &Db,
    node: &NodeId,
    listed: Result<impl Iterator<Item = (K::Id, bool)>, PluginError>,
) -> Result<Vec<String>, Error> {
    let word = K::WORD;
    let listed: BTreeMap<K::Id, bool> = match listed {
        Ok(listed) => listed.collect(),
        Err(error) => {
            return Ok(vec![format!(
                "node {node}: its {word}s are not compared: {error}"
            )]);
        }
    };
    let mut lines = Vec::new();
    db.read(|rows| {
        for id in listed.keys() {
            if rows.get(K::ROWS, *id)?.is_some() {
                continue;
            }
            let why = if rows.was_made((*id).into())? {
                "it was deleted, and the next start removes it".to_owned()
            } else {
                format!("no {word} of this database; Wharf leaves it alone")
            };
            lines.push(format!("{word} {id}: an orphan on node {node}: {why}"));
        }
        for id in rows.keys_under(K::ON_NODE, &node.0)? {
            let id = id?;
            let row = rows.get(K::ROWS, id)?;
            let is_ready = row.is_some_and(|row| row.status() == KeptStatus::Ready);
            if is_ready && listed.get(&id) != Some(&true) {
                lines.push(format!(
                    "{word} {id}: a ghost: its row says that it is on node {node}, which does not have it"
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
