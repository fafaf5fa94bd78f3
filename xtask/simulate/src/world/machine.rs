//! The machines of one store of an engine, and the calls about them.

use super::snapshot::{Disk, StoredSnapshot};
use super::volume::StoredVolume;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;
use wharf_domain::capacity::Size;
use wharf_domain::driver::{
    DriverTarget, Mount, Observed, Phase, PluginError, ReportedShortage, Spec, Tag,
};
use wharf_domain::ids::{InstanceId, SnapshotId, VolumeId};

/// The time since the begin of the world.
pub type Moment = Duration;

/// One creation of one instance.
pub type MachineKey = (InstanceId, u64);

pub fn key(tag: Tag) -> MachineKey {
    (tag.instance, tag.incarnation)
}

/// The state of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineState {
    /// It has its content, and has never been started.
    Filled,
    /// It runs, and is ready from this moment on.
    Runs(Moment),
    /// It does not run, with a reason if it ended by itself.
    Stopped(Option<String>),
}

/// A machine of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub size: Size,
    pub address: Ipv4Addr,
    pub public_address: Option<Ipv4Addr>,
    pub ports: Vec<u16>,
    pub gpus: Vec<String>,
    pub wan_ports: Vec<u16>,
    pub mounts: Vec<Mount>,
    pub state: MachineState,
    pub disk: Disk,
    /// The snapshot that its disk was made from.
    pub source: Option<SnapshotId>,
    /// The snapshot whose disk it is being given, and the end of that.
    pub restoring: Option<(SnapshotId, Moment)>,
}

impl Machine {
    fn new(spec: &Spec, ready_at: Moment) -> Self {
        let target = &spec.target;
        Self {
            size: target.size,
            address: target.network.address,
            public_address: target.public_network.as_ref().map(|net| net.address),
            ports: spec.published.iter().map(|port| port.node_port).collect(),
            gpus: spec.gpu_devices.clone(),
            wan_ports: target.wan_ports.clone(),
            mounts: target.volumes.clone(),
            state: MachineState::Runs(ready_at),
            disk: Disk::new(),
            source: spec.source.map(|source| source.snapshot),
            restoring: None,
        }
    }

    pub fn runs(&self) -> bool {
        matches!(self.state, MachineState::Runs(_))
    }

    fn phase(&self, now: Moment) -> Phase {
        match &self.state {
            MachineState::Filled => Phase::Creating,
            MachineState::Runs(ready_at) if now < *ready_at => Phase::Booting,
            MachineState::Runs(_) => Phase::Ready,
            MachineState::Stopped(why) => Phase::Stopped(why.clone()),
        }
    }

    /// Whether the machine is as specified. Its size and its open ports can change.
    fn is_as(&self, spec: &Spec) -> bool {
        let wanted = Self::new(spec, Moment::ZERO);
        (self.address, self.public_address) == (wanted.address, wanted.public_address)
            && (&self.ports, &self.gpus) == (&wanted.ports, &wanted.gpus)
    }

    /// What only one machine of a node can have: always the addresses, and ports and GPUs while it runs.
    pub fn uniques(&self) -> Vec<Unique> {
        let addresses = std::iter::once(self.address).chain(self.public_address);
        let mut uniques: Vec<_> = addresses.map(Unique::Address).collect();
        if self.runs() {
            uniques.extend(self.ports.iter().copied().map(Unique::Port));
            uniques.extend(self.gpus.iter().cloned().map(Unique::Gpu));
        }
        uniques
    }
}

/// Something that only one machine of a node can have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unique {
    Port(u16),
    Address(Ipv4Addr),
    Gpu(String),
}

impl Unique {
    /// The name of the field by which a driver reports that something else holds it.
    fn shortage(&self) -> ReportedShortage {
        let (field, requested) = match self {
            Self::Port(port) => ("node_port", u64::from(*port)),
            Self::Address(_) => ("lan_ipv4", 1),
            Self::Gpu(_) => ("n_gpus", 1),
        };
        ReportedShortage {
            field: field.to_owned(),
            requested,
            available: 0,
        }
    }
}

/// The store of an engine.
#[derive(Debug, Default)]
pub struct Store {
    pub machines: BTreeMap<MachineKey, Machine>,
    pub volumes: BTreeMap<VolumeId, StoredVolume>,
    pub snapshots: BTreeMap<SnapshotId, StoredSnapshot>,
    pub mark: Option<String>,
}

/// The time that a machine needs to boot.
pub const BOOT: Duration = Duration::from_millis(700);

impl Store {
    /// The phase of a machine, which the other members of the cluster may have.
    pub fn phase(&self, of: MachineKey, now: Moment) -> Phase {
        self.machines
            .get(&of)
            .map_or(Phase::Absent, |machine| machine.phase(now))
    }

    pub fn list(&self, now: Moment) -> Vec<Observed> {
        let observed = |(key, machine): (&MachineKey, &Machine)| Observed {
            tag: Tag {
                instance: key.0,
                incarnation: key.1,
            },
            phase: machine.phase(now),
        };
        self.machines.iter().map(observed).collect()
    }

    /// Fails if another machine, or something outside, has what a machine needs.
    fn room(&self, of: MachineKey, wanted: &Machine, taken: &[Unique]) -> Result<(), PluginError> {
        let others = self.machines.iter().filter(|(key, _)| **key != of);
        let mut held: Vec<_> = others.flat_map(|(_, other)| other.uniques()).collect();
        held.extend_from_slice(taken);
        let wanted = wanted.uniques().into_iter();
        let short: Vec<_> = wanted
            .filter(|one| held.contains(one))
            .map(|one| one.shortage())
            .collect();
        // An engine does not tell who holds a port.
        if short.is_empty() {
            Ok(())
        } else {
            Err(PluginError::Insufficient(short))
        }
    }

    pub fn ensure(
        &mut self,
        spec: &Spec,
        taken: &[Unique],
        now: Moment,
    ) -> Result<Phase, PluginError> {
        let of = key(spec.target.tag);
        match self.machines.get(&of) {
            Some(machine) if !machine.is_as(spec) => {
                return Err(PluginError::Conflict("another specification".to_owned()));
            }
            Some(machine) if machine.state == MachineState::Filled => {
                return self.start(&spec.target, taken, now);
            }
            Some(_) => {}
            None if spec.fetched => return Err(PluginError::NotFound),
            None => {
                let mut machine = Machine::new(spec, now + BOOT);
                machine.disk = self.new_disk(spec, now)?;
                machine.disk.push((of.0, now));
                self.room(of, &machine, taken)?;
                self.has_volumes(&machine.mounts, now)?;
                self.machines.insert(of, machine);
            }
        }
        Ok(self.phase(of, now))
    }

    pub fn start(
        &mut self,
        target: &DriverTarget,
        taken: &[Unique],
        now: Moment,
    ) -> Result<Phase, PluginError> {
        let of = key(target.tag);
        let machine = self.machines.get_mut(&of).ok_or(PluginError::NotFound)?;
        if machine.runs() {
            // A change of the size that failed may be in effect.
            machine.size = target.size;
        } else {
            let mut started = Machine {
                size: target.size,
                wan_ports: target.wan_ports.clone(),
                state: MachineState::Runs(now + BOOT),
                ..machine.clone()
            };
            started.disk.push((of.0, now));
            self.room(of, &started, taken)?;
            self.has_volumes(&started.mounts, now)?;
            self.machines.insert(of, started);
        }
        Ok(self.phase(of, now))
    }

    pub fn stop(&mut self, of: MachineKey, why: Option<&str>) {
        if let Some(machine) = self.machines.get_mut(&of).filter(|machine| machine.runs()) {
            machine.state = MachineState::Stopped(why.map(str::to_owned));
        }
    }

    pub fn resize(&mut self, target: &DriverTarget, now: Moment) -> Result<Phase, PluginError> {
        let of = key(target.tag);
        let machine = self.machines.get_mut(&of).ok_or(PluginError::NotFound)?;
        machine.size = target.size;
        Ok(self.phase(of, now))
    }

    pub fn set_ports(&mut self, target: &DriverTarget) -> Result<(), PluginError> {
        let machine = self.machines.get_mut(&key(target.tag));
        let machine = machine.filter(|machine| machine.runs());
        let wrong = || PluginError::Conflict("it does not run".to_owned());
        machine
            .ok_or_else(wrong)?
            .wan_ports
            .clone_from(&target.wan_ports);
        Ok(())
    }

    /// Makes a machine with the content of a backup. `ensure` starts it.
    pub fn fill(&mut self, spec: &Spec, disk: &Disk, taken: &[Unique]) -> Result<(), PluginError> {
        let machine = Machine {
            state: MachineState::Filled,
            disk: disk.clone(),
            ..Machine::new(spec, Moment::ZERO)
        };
        let of = key(spec.target.tag);
        self.room(of, &machine, taken)?;
        self.machines.insert(of, machine);
        Ok(())
    }

    /// Takes a machine that comes from another node, with the addresses and ports of this one.
    pub fn adopt(
        &mut self,
        spec: &Spec,
        from: &Machine,
        taken: &[Unique],
    ) -> Result<(), PluginError> {
        let machine = Machine {
            size: from.size,
            state: from.state.clone(),
            disk: from.disk.clone(),
            restoring: from.restoring,
            ..Machine::new(spec, Moment::ZERO)
        };
        let of = key(spec.target.tag);
        self.room(of, &machine, taken)?;
        self.machines.insert(of, machine);
        Ok(())
    }
}
