//! The snapshots of a simulated node, and machines that get their disks from them.

use super::api::{Call, Route};
use super::machine::{Content, MachineSize, MachineSpec, MachineState, Millis, StartOutcome};
use super::settings::{Settings, SnapshotSetting};
use super::world::{Answer, World};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Bytes in a gibibyte.
const GIB: u64 = 1 << 30;

/// A copy of the disk of a machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SimulatedSnapshot {
    /// Id of the installation that owns it.
    pub installation: String,
    /// The machine of which it is a copy.
    pub instance: Uuid,
    pub incarnation: u64,
    /// The size of the machine's disk.
    pub disk_size_gib: u32,
    /// Whether machines can be made from it.
    pub clonable: bool,
    /// Time at which it is complete; none if it never is.
    #[serde(default)]
    pub ready_at: Option<Millis>,
}

/// A restore in progress.
#[derive(Debug, Clone, Copy)]
pub struct SimulatedRestore {
    snapshot: Uuid,
    /// Time at which it is complete.
    done_at: Millis,
}

impl SimulatedSnapshot {
    fn is_ready(&self, now: Millis) -> bool {
        self.ready_at.is_some_and(|at| at <= now)
    }

    /// The space of its data: a tenth of the disk, as machines use.
    fn bytes(&self) -> u64 {
        u64::from(self.disk_size_gib) * GIB / 10
    }

    /// The disk that it takes on the node, in GiB.
    pub fn held_gib(&self) -> u32 {
        self.disk_size_gib.div_ceil(10)
    }

    /// The state, as the driver reads it.
    fn report(&self, now: Millis) -> Value {
        match self.ready_at {
            None => json!({ "state": "failed", "detail": "simulated failure" }),
            Some(at) if at > now => json!({ "state": "making", "again_ms": at - now }),
            Some(_) => {
                json!({ "state": "ready", "bytes": self.bytes(), "clonable": self.clonable })
            }
        }
    }

    /// The state, and the content.
    fn read(&self, id: Uuid, now: Millis) -> Value {
        #[derive(Serialize)]
        struct Read {
            #[serde(flatten)]
            report: Value,
            #[serde(flatten)]
            content: Content,
        }
        json!(Read {
            report: self.report(now),
            content: Content {
                life: MachineState::Created,
                cpu_ns: 0,
                disk_of: None,
                content_of: Some(id),
            },
        })
    }

    /// A row of the list.
    fn row(&self, now: Millis) -> Value {
        let mut row = self.report(now);
        if let Some(row) = row.as_object_mut() {
            row.insert("instance".to_owned(), json!(self.instance));
            row.insert("incarnation".to_owned(), json!(self.incarnation));
        }
        row
    }
}

impl World {
    /// Responds to a call about snapshots.
    pub fn act_on_snapshots(
        &mut self,
        route: &Route<'_>,
        settings: &Settings,
        outcome: StartOutcome,
        now: Millis,
    ) -> Answer {
        match (route.call, route.id, route.snapshot) {
            (Call::Take, Some(id), Some(snapshot)) => {
                self.take(id, snapshot, route, settings, outcome, now)
            }
            (Call::ReadSnapshot, Some(id), Some(snapshot)) => {
                let own = self.snapshots.get(&snapshot);
                let own = own.filter(|one| one.instance == id);
                (
                    200,
                    own.map_or(json!({ "state": "absent" }), |own| own.read(snapshot, now)),
                )
            }
            (Call::Drop, _, Some(snapshot)) => self.drop_snapshot(snapshot),
            _ if super::exists(settings.lose_snapshots_while.as_deref()) => (200, json!({})),
            _ => {
                let installation = route.parameter("installation").unwrap_or_default();
                let all = self.snapshots.iter();
                let own = all.filter(|(_, one)| one.installation == installation);
                let rows: BTreeMap<_, _> = own.map(|(id, one)| (id, one.row(now))).collect();
                (200, json!(rows))
            }
        }
    }

    fn take(
        &mut self,
        id: Uuid,
        snapshot: Uuid,
        route: &Route<'_>,
        settings: &Settings,
        outcome: StartOutcome,
        now: Millis,
    ) -> Answer {
        if settings.snapshots == SnapshotSetting::None {
            return (501, json!({ "message": "this node takes no snapshots" }));
        }
        if let Some(why) = &settings.refuse_snapshots {
            return (200, json!({ "state": "failed", "detail": why }));
        }
        if let Some(found) = self.snapshots.get(&snapshot) {
            if found.instance == id {
                return (200, found.report(now));
            }
            return (409, json!({ "message": "it is of another instance" }));
        }
        let incarnation = route.parameter("incarnation").and_then(|n| n.parse().ok());
        let Some(machine) = self.machine(id).filter(|_| self.has(id, incarnation)) else {
            return (404, json!({ "message": "no such instance" }));
        };
        if self.restores.contains_key(&id) {
            return (503, json!({ "retry_ms": settings.restore_ms }));
        }
        let taken = SimulatedSnapshot {
            installation: machine.wanted.installation.clone(),
            instance: id,
            incarnation: machine.wanted.incarnation,
            disk_size_gib: machine.wanted.size.disk_size_gib,
            clonable: settings.snapshots_clonable.0,
            ready_at: match outcome {
                StartOutcome::Fails => None,
                _ => Some(now.saturating_add(settings.snapshot_ms)),
            },
        };
        if let Some(refusal) = self.room.lack_of_disk(taken.held_gib()) {
            return refusal;
        }
        let report = taken.report(now);
        if let Err(error) = self.journal.write_snapshot(snapshot, Some(&taken)) {
            return (500, json!({ "message": error.to_string() }));
        }
        self.room.hold_disk(taken.held_gib());
        self.snapshots.insert(snapshot, taken);
        (200, report)
    }

    fn drop_snapshot(&mut self, id: Uuid) -> Answer {
        let mut machines = self.machines.values();
        if !self.shares_disks && machines.any(|machine| machine.disk_of == Some(id)) {
            return (200, json!({ "state": "in_use" }));
        }
        match self.forget_snapshot(id) {
            Ok(()) => (200, json!({ "state": "absent" })),
            Err(error) => (500, json!({ "message": error.to_string() })),
        }
    }

    fn forget_snapshot(&mut self, id: Uuid) -> std::io::Result<()> {
        match self.snapshots.remove(&id) {
            Some(gone) => {
                self.room.release_disk(gone.held_gib());
                self.journal.write_snapshot(id, None)
            }
            None => Ok(()),
        }
    }

    /// Removes what goes with a machine: a restore in progress, and its snapshots if they share its disk.
    pub fn forget_disk_of(&mut self, id: Uuid) -> std::io::Result<()> {
        self.restores.remove(&id);
        if !self.shares_disks {
            return Ok(());
        }
        let all = self.snapshots.iter();
        let own = all.filter(|(_, one)| one.instance == id);
        let own: Vec<_> = own.map(|(snapshot, _)| *snapshot).collect();
        own.into_iter()
            .try_for_each(|one| self.forget_snapshot(one))
    }

    /// Returns the response if a machine cannot be made from its source.
    pub fn unclonable(&self, wanted: &MachineSpec, now: Millis) -> Option<Answer> {
        let source = wanted.source?;
        let id = source.snapshot;
        let failed = |why: String| Some((200, json!({ "phase": "failed", "detail": why })));
        let of = (source.instance, source.incarnation);
        match self.snapshots.get(&id) {
            Some(one) if (one.instance, one.incarnation) == of && one.is_ready(now) => {
                if !one.clonable {
                    return failed(format!("no machine can be made from snapshot {id}"));
                }
                (one.disk_size_gib > wanted.size.disk_size_gib)
                    .then(|| too_small(one.disk_size_gib, wanted.size.disk_size_gib))
            }
            _ => failed(format!("snapshot {id} is not on the node")),
        }
    }

    /// `POST /instances/ID/restore/SNAPSHOT`
    pub fn restore(
        &mut self,
        id: Uuid,
        route: &Route<'_>,
        settings: &Settings,
        now: Millis,
    ) -> Answer {
        let Ok(size) = serde_json::from_value::<MachineSize>(route.body.clone()) else {
            return (400, json!({ "message": "a size is required" }));
        };
        let own = |one: &&SimulatedSnapshot| one.instance == id && one.is_ready(now);
        let found = route.snapshot.and_then(|snapshot| {
            let one = self.snapshots.get(&snapshot).filter(own)?;
            Some((snapshot, one.disk_size_gib))
        });
        let Some((snapshot, disk)) = found else {
            return (
                404,
                json!({ "message": "no such snapshot of the instance" }),
            );
        };
        if self.machine(id).is_some_and(super::machine::Machine::runs) {
            return (409, json!({ "message": "the instance runs" }));
        }
        if disk > size.disk_size_gib {
            return too_small(disk, size.disk_size_gib);
        }
        let done_at = now.saturating_add(settings.restore_ms);
        let begun = self.restores.entry(id);
        let begun = begun.or_insert(SimulatedRestore { snapshot, done_at });
        if begun.snapshot != snapshot {
            *begun = SimulatedRestore { snapshot, done_at };
        }
        let left = begun.done_at.saturating_sub(now);
        if left > 0 {
            let progress = json!({ "phase": "growing", "detail": "restoring", "again_ms": left });
            return (200, progress);
        }
        self.restores.remove(&id);
        self.change(id, |machine| {
            machine.wanted.size.disk_size_gib = size.disk_size_gib;
            machine.disk_of = Some(snapshot);
        });
        self.report(id, now)
    }
}

fn too_small(needed: u32, given: u32) -> Answer {
    let short = json!({ "field": "disk_size_gib", "requested": needed, "available": given });
    (507, json!({ "shortages": [short] }))
}
