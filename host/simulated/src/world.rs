//! The machines of a simulated node and their shared resources.

use super::api::{Call, Route};
use super::journal::{Journal, StoreContent};
use super::machine::{
    ENDED, Machine, MachineRow, MachineSize, MachineSpec, MachineState, Millis, StartOutcome,
};
use super::room::NodeResources;
use super::settings::{DiskGrowSetting, Settings, SimulatedCapacity, SnapshotSetting};
use super::snapshots::{SimulatedRestore, SimulatedSnapshot};
use super::volumes::SimulatedVolume;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Bound;
use uuid::Uuid;

/// The mark of a store that ends with its process; the WIT defines it.
const IN_MEMORY: &str = "volatile";
/// Maximum number of machines in one page of a list.
const PAGE: usize = 20_000;

/// The state of a simulated node.
#[derive(Debug)]
pub struct World {
    pub(super) machines: BTreeMap<Uuid, Machine>,
    pub(super) volumes: BTreeMap<Uuid, SimulatedVolume>,
    pub(super) snapshots: BTreeMap<Uuid, SimulatedSnapshot>,
    /// Restores in progress, by machine. They end with the process.
    pub(super) restores: BTreeMap<Uuid, SimulatedRestore>,
    /// Whether snapshots share the blocks of disks.
    pub(super) shares_disks: bool,
    pub(super) room: NodeResources,
    boot_id: String,
    /// Marks of the store, by installation.
    marks: BTreeMap<String, String>,
    has_constant_mark: bool,
    pub(super) journal: Journal,
}

pub type Answer = (u16, Value);

/// A page of a list in order of id, with the last id if more pages follow.
#[derive(Debug, Serialize)]
pub struct MachinePage<'a> {
    rows: Vec<(&'a Uuid, MachineRow<'a>)>,
    next: Option<&'a Uuid>,
}

impl World {
    /// Creates a node with the machines of an earlier process.
    pub fn new(settings: &Settings, journal: Journal, kept: StoreContent) -> Self {
        let mut world = Self {
            machines: kept.machines,
            marks: kept.marks,
            volumes: kept.volumes,
            snapshots: kept.snapshots,
            restores: BTreeMap::new(),
            shares_disks: settings.snapshots != SnapshotSetting::Copied,
            has_constant_mark: false,
            room: NodeResources::new(settings.capacity),
            // Only machines in a file survive a restart of the process.
            boot_id: if journal.keeps() {
                "kept".into()
            } else {
                Uuid::new_v4().to_string()
            },
            journal,
        };
        let machines = std::mem::take(&mut world.machines);
        for (id, machine) in &machines {
            world.room.hold(*id, machine);
        }
        world.machines = machines;
        for volume in world.volumes.values() {
            world.room.hold_disk(volume.size_gib);
        }
        for snapshot in world.snapshots.values() {
            world.room.hold_disk(snapshot.held_gib());
        }
        world
    }

    /// Gives the store one mark for ever. A store in memory ends with the process, and no other process
    /// can have it.
    pub fn keep_constant_mark(&mut self) {
        self.has_constant_mark = true;
    }

    /// `GET /marks/INSTALLATION`
    pub fn mark(&self, installation: &str) -> Option<&str> {
        if self.has_constant_mark {
            Some(IN_MEMORY)
        } else {
            self.marks.get(installation).map(String::as_str)
        }
    }

    /// `PUT /marks/INSTALLATION`
    pub fn set_mark(&mut self, installation: &str, body: &Value) -> Answer {
        let Some(mark) = body.as_str() else {
            return (400, json!({ "message": "a mark is a string" }));
        };
        if self.mark(installation).is_none() {
            if let Err(error) = self.journal.write_mark(installation, mark) {
                return (500, json!({ "message": error.to_string() }));
            }
            self.marks.insert(installation.to_owned(), mark.to_owned());
        }
        (200, json!({}))
    }

    /// `GET /info`
    pub fn info(&self, settings: &Settings) -> Value {
        let capacity = settings.capacity.unwrap_or(SimulatedCapacity {
            n_vcpus: 0,
            mem_gib: 0,
            disk_size_gib: 0,
        });
        let gpus: Vec<_> = settings
            .gpus
            .iter()
            .map(|gpu| json!({ "model": gpu.model, "device": gpu.device }))
            .collect();
        json!({
            "version": concat!("simulated ", env!("CARGO_PKG_VERSION")),
            "n_vcpus": capacity.n_vcpus,
            "mem_gib": capacity.mem_gib,
            "disk_size_gib": capacity.disk_size_gib,
            "gpus": gpus,
            "disk_grow": settings.disk_grow,
            "volumes": settings.volumes.0,
            "late_attach": settings.late_attach,
            "content": settings.content,
            "volume_content": settings.volume_content,
            "snapshots": settings.snapshots,
            "live_resize": !settings.fixed_while_running,
            "boot_id": self.boot_id,
            "missing_images": settings.missing_images(),
            "images_without_ssh": settings.images_without_ssh,
            "image_contents": settings.image_contents,
        })
    }

    /// `GET /instances`
    pub fn list(&self, route: &Route<'_>, now: Millis) -> MachinePage<'_> {
        let after = route
            .parameter("after")
            .and_then(|id| Uuid::try_parse(id).ok());
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let installation = route.parameter("installation").unwrap_or_default();
        let rows: Vec<_> = self
            .machines
            .range((from, Bound::Unbounded))
            .filter(|(_, machine)| machine.wanted.installation == installation)
            .take(PAGE)
            .map(|(id, machine)| (id, machine.row(now)))
            .collect();
        let last = rows.last().map(|(id, _)| *id);
        MachinePage {
            next: last.filter(|_| rows.len() == PAGE),
            rows,
        }
    }

    /// Returns whether there is a machine, of this incarnation if one is given.
    pub(super) fn has(&self, id: Uuid, incarnation: Option<u64>) -> bool {
        let is = |machine: &Machine| incarnation.is_none_or(|n| n == machine.wanted.incarnation);
        self.machines.get(&id).is_some_and(is)
    }

    /// Returns the host name of a machine.
    pub fn hostname(&self, id: Uuid) -> Option<String> {
        self.machines
            .get(&id)
            .map(|machine| machine.wanted.hostname.clone())
    }

    /// Responds to a call about one machine. A machine of another incarnation is absent for it.
    pub fn act(
        &mut self,
        route: &Route<'_>,
        id: Uuid,
        settings: &Settings,
        outcome: StartOutcome,
        now: Millis,
    ) -> Answer {
        if let Some(at) = self
            .machines
            .get(&id)
            .and_then(|machine| machine.ended(now))
        {
            self.change(id, |machine| machine.halt(at, Some(ENDED.into())));
        }
        let body = &route.body;
        let incarnation = route.parameter("incarnation").and_then(|n| n.parse().ok());
        let is_there = self.has(id, incarnation);
        match route.call {
            Call::Ensure => self.ensure(id, body, settings, outcome, now),
            Call::Delete => self.delete(id, incarnation),
            Call::Inspect | Call::Stop if !is_there => (200, json!({ "phase": "absent" })),
            _ if !is_there => (404, json!({ "message": "no such instance" })),
            Call::Start => self.start(id, body, settings, outcome, now),
            Call::Stop => {
                self.restores.remove(&id);
                self.change(id, |machine| machine.halt(now, None));
                self.report(id, now)
            }
            Call::Grow => self.grow(id, body, now),
            Call::Restore => self.restore(id, route, settings, now),
            Call::Resize => self.resize(id, body, settings, now),
            Call::Stats => self.stats(id, now),
            Call::Ports => self.set_ports(id, body),
            Call::SetVolumes => self.set_volumes(id, body, settings),
            Call::Inspect
            | Call::Content
            | Call::Changes
            | Call::Fetch
            | Call::Receive
            | Call::Probe
            | Call::List
            | Call::Identify
            | Call::Mark
            | Call::Make
            | Call::ReadVolume
            | Call::VolumeContent
            | Call::FetchVolume
            | Call::ReceiveVolume
            | Call::Unmake
            | Call::ListVolumes
            | Call::ProveLimits
            | Call::Take
            | Call::ReadSnapshot
            | Call::Drop
            | Call::ListSnapshots
            | Call::MoveHere => self.report(id, now),
        }
    }

    fn ensure(
        &mut self,
        id: Uuid,
        body: &Value,
        settings: &Settings,
        outcome: StartOutcome,
        now: Millis,
    ) -> Answer {
        let wanted: MachineSpec = match serde_json::from_value(body.clone()) {
            Ok(wanted) => wanted,
            Err(error) => return (400, json!({ "message": error.to_string() })),
        };
        if let Some(machine) = self.machines.get(&id) {
            if !machine.is_as(&wanted) {
                return (
                    409,
                    json!({ "message": "it exists with another specification" }),
                );
            }
            if machine.life != MachineState::Created {
                return self.report(id, now);
            }
            let changed = Machine {
                life: life(settings, outcome, now),
                ..machine.clone()
            };
            return self.run(id, changed, settings, now);
        }
        let unfit = self.unmountable(id, &wanted.mounts, now);
        if let Some(refusal) = unfit.or_else(|| self.unclonable(&wanted, now)) {
            return refusal;
        }
        let machine = Machine {
            life: life(settings, outcome, now),
            disk_of: wanted.source.map(|source| source.snapshot),
            wanted,
            cpu_ns: 0,
            ports: Vec::new(),
            content_of: None,
        };
        let held = NodeResources::held(&machine, &settings.held());
        if let Some(refusal) = held.or(self.room.refusal(id, &machine, MachineSize::default())) {
            return refusal;
        }
        self.room.hold(id, &machine);
        self.machines.insert(id, machine);
        self.report_written(id, now)
    }

    fn start(
        &mut self,
        id: Uuid,
        body: &Value,
        settings: &Settings,
        outcome: StartOutcome,
        now: Millis,
    ) -> Answer {
        let Some(machine) = self.machines.get(&id) else {
            return (404, Value::Null);
        };
        if !matches!(machine.life, MachineState::Stopped(_)) {
            return self.report(id, now);
        }
        let mut changed = machine.clone();
        changed.life = life(settings, outcome, now);
        if let Some(size) = size(body) {
            if settings.disk_grow == DiskGrowSetting::Stopped
                && size.disk_size_gib > machine.wanted.size.disk_size_gib
            {
                return (200, json!({ "phase": "growing", "again_ms": 10 }));
            }
            changed.wanted.size = size;
        }
        self.run(id, changed, settings, now)
    }

    /// Changes a machine to one that runs.
    fn run(&mut self, id: Uuid, changed: Machine, settings: &Settings, now: Millis) -> Answer {
        let now_used = self.machines.get(&id).map(Machine::share);
        let now_used = now_used.unwrap_or_default();
        let held = NodeResources::held(&changed, &settings.held());
        if let Some(refusal) = held.or(self.room.refusal(id, &changed, now_used)) {
            return refusal;
        }
        self.change(id, |machine| *machine = changed);
        self.report(id, now)
    }

    /// Grows the disk of a stopped machine.
    fn grow(&mut self, id: Uuid, body: &Value, now: Millis) -> Answer {
        let (Some(machine), Some(size)) = (self.machines.get(&id), size(body)) else {
            return (
                400,
                json!({ "message": "a machine and its size are required" }),
            );
        };
        let (mut changed, now_used) = (machine.clone(), machine.share());
        if !machine.runs() && size.disk_size_gib > machine.wanted.size.disk_size_gib {
            changed.wanted.size.disk_size_gib = size.disk_size_gib;
            if let Some(refusal) = self.room.refusal(id, &changed, now_used) {
                return refusal;
            }
            self.change(id, |machine| *machine = changed);
        }
        self.report(id, now)
    }

    /// Returns the response of a machine whose content does not fit onto a larger disk.
    pub fn keeps_its_disk(&self, id: Uuid) -> Answer {
        let disk = self.machines.get(&id).map(|m| m.wanted.size.disk_size_gib);
        let short = json!({ "field": "disk_size_gib", "requested": 0, "available": disk });
        (507, json!({ "shortages": [short] }))
    }

    fn resize(&mut self, id: Uuid, body: &Value, settings: &Settings, now: Millis) -> Answer {
        let (Some(machine), Some(size)) = (self.machines.get(&id), size(body)) else {
            return (
                400,
                json!({ "message": "n_vcpus, mem_gib and disk_size_gib are required" }),
            );
        };
        if size.disk_size_gib < machine.wanted.size.disk_size_gib {
            return (
                422,
                json!({ "field": "disk_size_gib", "message": "a disk only grows" }),
            );
        }
        let grows = size.disk_size_gib > machine.wanted.size.disk_size_gib;
        if grows && settings.disk_grow != DiskGrowSetting::Running {
            return (
                422,
                json!({ "field": "disk_size_gib", "message": "disks cannot grow here" }),
            );
        }
        let is = machine.wanted.size;
        let only_disk = (size.n_vcpus, size.mem_gib) == (is.n_vcpus, is.mem_gib);
        if settings.fixed_while_running && machine.runs() && !only_disk {
            return (
                422,
                json!({ "field": "n_vcpus", "message": "running machines cannot be resized here" }),
            );
        }
        let (mut changed, now_used) = (machine.clone(), machine.share());
        changed.wanted.size = size;
        if let Some(refusal) = self.room.refusal(id, &changed, now_used) {
            return refusal;
        }
        self.change(id, |machine| *machine = changed);
        self.report(id, now)
    }

    /// Returns a machine.
    pub fn machine(&self, id: Uuid) -> Option<&Machine> {
        self.machines.get(&id)
    }

    /// Takes a machine that comes from another node. Returns the response if it does not fit.
    pub fn adopt(&mut self, id: Uuid, machine: Machine) -> Option<Answer> {
        if let Some(refusal) = self.room.refusal(id, &machine, MachineSize::default()) {
            return Some(refusal);
        }
        self.room.hold(id, &machine);
        self.machines.insert(id, machine);
        let (status, body) = self.report_written(id, 0);
        (status != 200).then_some((status, body))
    }

    /// Deletes a machine; only the one of this incarnation, if there is one.
    pub fn delete(&mut self, id: Uuid, incarnation: Option<u64>) -> Answer {
        if !self.has(id, incarnation) {
            return (200, json!({ "phase": "absent" }));
        }
        if let Some(machine) = self.machines.remove(&id) {
            self.room.release(id, &machine);
            let gone = self.journal.write(id, None);
            if let Err(error) = gone.and_then(|()| self.forget_disk_of(id)) {
                return (500, json!({ "message": error.to_string() }));
            }
        }
        (200, json!({ "phase": "absent" }))
    }

    fn stats(&self, id: Uuid, now: Millis) -> Answer {
        match self.machines.get(&id) {
            Some(machine) if machine.runs() => (200, machine.usage(now)),
            _ => (409, json!({ "message": "it does not run" })),
        }
    }

    fn set_ports(&mut self, id: Uuid, body: &Value) -> Answer {
        let open = |machine: &&Machine| machine.runs() && machine.wanted.kind == "vm";
        if self.machines.get(&id).filter(open).is_none() {
            return (409, json!({ "message": "not a running virtual machine" }));
        }
        match serde_json::from_value::<Vec<u16>>(body.clone()) {
            Ok(ports) => {
                self.change(id, |machine| machine.ports = ports);
                (200, json!({}))
            }
            Err(error) => (400, json!({ "message": error.to_string() })),
        }
    }

    pub(super) fn report(&self, id: Uuid, now: Millis) -> Answer {
        match self.machines.get(&id) {
            Some(machine) => (200, machine.report(now)),
            None => (200, json!({ "phase": "absent" })),
        }
    }

    fn report_written(&mut self, id: Uuid, now: Millis) -> Answer {
        match self.journal.write(id, self.machines.get(&id)) {
            Ok(()) => self.report(id, now),
            Err(error) => (500, json!({ "message": error.to_string() })),
        }
    }

    /// Changes a machine, and updates the sums and the journal.
    pub(super) fn change(&mut self, id: Uuid, with: impl FnOnce(&mut Machine)) {
        if let Some(mut machine) = self.machines.remove(&id) {
            self.room.release(id, &machine);
            with(&mut machine);
            self.room.hold(id, &machine);
            self.machines.insert(id, machine);
            self.report_written(id, 0);
        }
    }
}

fn life(settings: &Settings, outcome: StartOutcome, now: Millis) -> MachineState {
    let dies_at = match outcome {
        StartOutcome::Fails => return MachineState::Failed,
        StartOutcome::Lives => None,
        StartOutcome::Dies(after) => Some(now.saturating_add(after)),
    };
    MachineState::Running {
        since: now,
        ready_at: now.saturating_add(settings.ready_after_ms),
        dies_at,
    }
}

fn size(body: &Value) -> Option<MachineSize> {
    serde_json::from_value(body.clone()).ok()
}
