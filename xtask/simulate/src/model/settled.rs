//! What must be true once there are no faults any more and some time has passed.

use super::{Known, Look, Model, Wrong, check, failed};
use crate::world::Truth;
use wharf_db::Read as _;
use wharf_domain::instance::{Instance, Intent, Progress};

impl Model {
    /// Checks that the nodes are as the rows say, and that the audit log has what was acknowledged.
    pub fn settled(&self, look: &Look<'_>) -> Result<(), Wrong> {
        look.world.truth(|truth| {
            for (id, known) in &self.instances {
                let row = &known.row;
                let lost = known.claim.is_none();
                check(lost || row.progress == Progress::Settled, || {
                    format!("{id} does not settle")
                })?;
                check(known.moving.is_none(), || {
                    format!("{id} does not end its move")
                })?;
                check(row.intent != Intent::Delete, || {
                    format!("{id} is not removed")
                })?;
                if self.aged.contains(id) {
                    continue;
                }
                let is_right = is_as(truth, row);
                is_right.map_err(|why| format!("{id} with intent {:?}: {why}", row.intent))?;
            }
            self.check_orphans(truth, look)?;
            self.backups_settled(truth)?;
            self.volumes_settled(truth, look)
        })?;
        self.webhooks_settled(look)?;
        self.check_audit(look)
    }

    /// A machine that an instance no longer has is gone.
    fn check_orphans(&self, truth: &Truth<'_>, look: &Look<'_>) -> Result<(), Wrong> {
        for node in truth.nodes() {
            for key in node.shown().machines.keys() {
                let known = self.instances.get(&key.0);
                let row = known.map(|known| &known.row);
                let made = look.app.db().read(|rows| rows.was_made(key.0));
                // A lost instance is on no node.
                let is_own = known.is_some_and(|Known { row, claim, .. }| {
                    claim.is_some() && row.incarnation == key.1 && row.node == node.setup.name
                });
                // A database that was restored does not know what is newer.
                let is_newer = row.map_or(!made.map_err(|error| failed(&error))?, |row| {
                    row.incarnation < key.1
                });
                check(is_own || is_newer || self.aged.contains(&key.0), || {
                    format!("node {} keeps an orphan of {}", node.setup.name, key.0)
                })?;
            }
        }
        Ok(())
    }

    fn check_audit(&self, look: &Look<'_>) -> Result<(), Wrong> {
        for ((owner, operation), (done, unknown)) in &self.acknowledged {
            let read = look
                .app
                .db()
                .read(|rows| rows.audit_of(*owner, 0, usize::MAX));
            let records = read.map_err(|error| failed(&error))?;
            let found = records
                .iter()
                .filter(|(_, record)| record.operation == *operation);
            let found = found.count() as u64;
            check((*done..=done + unknown).contains(&found), || {
                format!(
                    "the audit log has {found} of {done} to {} {operation} of user {}",
                    done + unknown,
                    owner.0
                )
            })?;
        }
        Ok(())
    }
}

/// Whether the nodes have an instance as its row says.
fn is_as(truth: &Truth<'_>, row: &Instance) -> Result<(), Wrong> {
    let shown = truth.nodes().flat_map(|node| {
        let machines = node.shown().machines.iter();
        machines.map(move |(key, machine)| (&node.setup.name, *key, machine))
    });
    let running: Vec<_> = shown
        .filter(|(_, key, machine)| key.0 == row.id && machine.runs())
        .collect();
    if row.intent != Intent::Run {
        return check(running.is_empty(), || {
            format!("{} machines run", running.len())
        });
    }
    let [(node, key, machine)] = running.as_slice() else {
        return Err(format!("{} machines run", running.len()));
    };
    check(**node == row.node && key.1 == row.incarnation, || {
        "another machine runs".to_owned()
    })?;
    check(
        machine.size == row.size || truth.is_sized_late(*key),
        || format!("its machine has the size {:?}", machine.size),
    )?;
    let gpus: Vec<_> = row.gpus.iter().map(|gpu| gpu.device.clone()).collect();
    check(machine.gpus == gpus, || {
        "its machine has other GPUs".to_owned()
    })
}
