//! A node of the world: its engine with its stores, and the conditions that faults bring about.

use super::machine::{MachineKey, Moment, Store, Unique};
use super::{Answer, Request};
use std::collections::{BTreeMap, BTreeSet};
use wharf_domain::capacity::{GpuDevice, Size};
use wharf_domain::driver::{
    DiskGrow, Features, NodeHealth, Phase, PluginError, ResourceUsage, SnapshotKind, StoreMark,
    Surroundings, VolumeContent,
};
use wharf_domain::ids::{InstanceId, NodeId};

/// The reason of a machine that stopped because its node booted.
pub const BOOTED: &str = "the node booted";

/// The configuration of a node.
#[derive(Debug, Clone)]
pub struct NodeSetup {
    pub name: NodeId,
    pub cluster: Option<String>,
    pub capacity: Size,
    pub gpus: Vec<GpuDevice>,
}

/// A node.
#[derive(Debug)]
pub struct Node {
    pub setup: NodeSetup,
    /// The engine's own store, and another one that it may show instead.
    pub stores: [Store; 2],
    pub shows_other: bool,
    /// The number of the store that the engine shows, of all that it has shown.
    pub shown_number: u64,
    pub other_until: Option<Moment>,
    pub away_until: Moment,
    /// What something outside holds, and until when.
    pub taken: Vec<(Unique, Moment)>,
    /// The volumes and snapshots of stores that are gone.
    pub gone: BTreeSet<InstanceId>,
    pub interruptions: u64,
    pub boots: u64,
    /// The time of the last answer.
    pub answered: Option<Moment>,
}

impl Node {
    pub fn new(setup: NodeSetup) -> Self {
        Self {
            setup,
            stores: Default::default(),
            shows_other: false,
            shown_number: 0,
            other_until: None,
            away_until: Moment::ZERO,
            taken: Vec::new(),
            gone: BTreeSet::new(),
            interruptions: 0,
            boots: 0,
            answered: None,
        }
    }

    /// The store that the engine shows.
    pub fn shown(&self) -> &Store {
        let [own, other] = &self.stores;
        if self.shows_other { other } else { own }
    }

    /// The engine's own store.
    pub fn own(&self) -> &Store {
        let [own, _] = &self.stores;
        own
    }

    /// The own store, and the one that the engine shows.
    pub fn known(&self) -> impl Iterator<Item = &Store> {
        let [own, other] = &self.stores;
        std::iter::once(own).chain(self.shows_other.then_some(other))
    }

    pub fn shown_mut(&mut self) -> &mut Store {
        let [own, other] = &mut self.stores;
        if self.shows_other { other } else { own }
    }

    pub fn is_away(&self, now: Moment) -> bool {
        now < self.away_until
    }

    /// Ends the conditions whose time is over.
    pub fn pass(&mut self, now: Moment) {
        if self.other_until.is_some_and(|end| end <= now) {
            if self.shows_other {
                self.shown_number += 1;
            }
            self.shows_other = false;
            self.other_until = None;
            self.interruptions += 1;
        }
        self.taken.retain(|(_, until)| now < *until);
    }

    /// Shows another store for a while, which has nothing of Wharf's.
    pub fn show_other(&mut self, mark: Option<&str>, until: Moment) {
        self.other_until = Some(until);
        if self.shows_other {
            return;
        }
        let [_, other] = &mut self.stores;
        self.gone.extend(other.kept());
        *other = Store {
            mark: mark.map(str::to_owned),
            ..Store::default()
        };
        self.shows_other = true;
        self.shown_number += 1;
        self.interruptions += 1;
    }

    /// Makes the store that is shown the own one. The other one is gone.
    pub fn keep_shown(&mut self) {
        let [own, other] = &mut self.stores;
        if self.shows_other {
            std::mem::swap(own, other);
        }
        self.gone.extend(other.kept());
        *other = Store::default();
        self.shows_other = false;
        self.other_until = None;
    }

    /// What ran has stopped.
    pub fn boot(&mut self) {
        self.boots += 1;
        self.interruptions += 1;
        let keys: Vec<MachineKey> = self.shown().machines.keys().copied().collect();
        keys.into_iter()
            .for_each(|key| self.shown_mut().stop(key, Some(BOOTED)));
    }

    /// Carries out a request that concerns no other node.
    pub fn carry_out(&mut self, request: &Request, now: Moment) -> Result<Answer, PluginError> {
        let taken: Vec<_> = self.taken.iter().map(|(what, _)| what.clone()).collect();
        let store = self.shown_mut();
        let phase = match request {
            Request::Ensure(spec) => store.ensure(spec, &taken, now)?,
            Request::Start(target) => store.start(target, &taken, now)?,
            Request::Resize(target) => store.resize(target, now)?,
            Request::Grow(spec) | Request::MoveHere(spec) | Request::Fetch(spec, _) => {
                store.phase(super::machine::key(spec.target.tag), now)
            }
            Request::Stop(target) => {
                let of = super::machine::key(target.tag);
                store.stop(of, None);
                store.phase(of, now)
            }
            Request::Delete(target) => {
                store.delete(super::machine::key(target.tag));
                Phase::Absent
            }
            Request::Offer(target) => store.phase(super::machine::key(target.tag), now),
            Request::Inspect(tag) => store.phase(super::machine::key(*tag), now),
            Request::SetPorts(target) => {
                store.set_ports(target)?;
                return Ok(Answer::Done);
            }
            Request::Mark(mark) => {
                store.mark.get_or_insert_with(|| mark.clone());
                return Ok(Answer::Done);
            }
            Request::Identify => {
                let mark = store.mark.clone();
                return Ok(Answer::Mark(mark.map_or(StoreMark::Missing, StoreMark::Is)));
            }
            Request::List => return Ok(Answer::List(store.list(now))),
            Request::Probe => return Ok(Answer::Health(self.health())),
            Request::Survey => return Ok(Answer::Surroundings(surroundings())),
            Request::MakeVolume(id, size_gib) => {
                return Ok(Answer::Volume(store.make_volume(*id, *size_gib, now)));
            }
            Request::UnmakeVolume(id) => return Ok(Answer::Volume(store.unmake_volume(*id))),
            Request::ListVolumes => return Ok(Answer::Volumes(store.list_volumes(now))),
            Request::SetVolumes(target) => {
                store.set_volumes(target, now)?;
                return Ok(Answer::Done);
            }
            Request::TakeSnapshot(target, id) => {
                let of = super::machine::key(target.tag);
                return Ok(Answer::Snapshot(store.take_snapshot(of, *id, now)?));
            }
            Request::DropSnapshot(of) => {
                return Ok(Answer::Snapshot(store.drop_snapshot(of.snapshot)));
            }
            Request::Send(of) => return store.content_of(of.snapshot, now),
            Request::RestoreSnapshot(spec, id) => store.restore_snapshot(spec, *id, now)?,
            Request::ListSnapshots => return Ok(Answer::Snapshots(store.list_snapshots(now))),
            Request::Stats(tag) => {
                return match store.machines.get(&super::machine::key(*tag)) {
                    Some(machine) if machine.runs() => Ok(Answer::Usage(usage(now))),
                    _ => Err(PluginError::Conflict("it does not run".to_owned())),
                };
            }
        };
        Ok(Answer::Phase(phase))
    }

    fn health(&self) -> NodeHealth {
        NodeHealth {
            version: "simulation".to_owned(),
            features: Features {
                containers: true,
                vms: true,
                live_resize: true,
                disk_grow: DiskGrow::Running,
                disk_limit: true,
                gpus: true,
                stats: true,
                network: false,
                kvm: false,
                volumes: true,
                late_attach: true,
                snapshots: SnapshotKind::Shared,
                content: true,
                volume_content: VolumeContent::Never,
            },
            totals: self.setup.capacity,
            gpus: self.setup.gpus.clone(),
            boot_id: self.boots.to_string(),
        }
    }
}

fn surroundings() -> Surroundings {
    Surroundings {
        networks: Vec::new(),
        missing_images: Vec::new(),
        images_without_ssh: Vec::new(),
        image_contents: BTreeMap::new(),
        own_view: None,
        machine: None,
    }
}

fn usage(now: Moment) -> ResourceUsage {
    let ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    ResourceUsage {
        cpu_ns: ns / 20,
        at_ns: ns,
        mem_used_bytes: 1 << 27,
        disk_used_bytes: 1 << 28,
    }
}
