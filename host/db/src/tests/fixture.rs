//! The least that a create writes.

use crate::{
    CLAIMS, Changes, Followed, PROVISIONING_SPECS, Projection, ProvisioningSpec, Read, ReadRows,
    View,
};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use wharf_domain::blueprint::{Blueprint, Health};
use wharf_domain::capacity::{Claim, CpuTier, Size};
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::ids::{Generation, InstanceId, NodeId, UserId};
use wharf_domain::instance::{BilledSize, Instance, Intent, Progress, ResourceType};
use wharf_domain::money::Rates;
use wharf_domain::name::Name;
use wharf_domain::secret::Encrypted;
use wharf_domain::state::InstanceState;
use wharf_domain::time::Timestamp;

const SIZE: Size = Size {
    n_vcpus: 1,
    mem_gib: 1,
    disk_size_gib: 10,
};

const PORTS: RangeInclusive<u16> = 20_000..=20_999;

/// The ports of all claims.
#[derive(Clone, Default)]
pub struct Taken(Arc<Mutex<BTreeSet<u16>>>);

impl Taken {
    pub fn ports(&self) -> BTreeSet<u16> {
        self.0.lock().unwrap().clone()
    }

    fn free(&self) -> u16 {
        let taken = self.0.lock().unwrap();
        let mut ports = PORTS;
        ports.find(|port| !taken.contains(port)).unwrap()
    }

    fn take(&self, before: Option<&Claim>, after: Option<&Claim>) {
        let mut taken = self.0.lock().unwrap();
        if let Some(claim) = before {
            assert!(taken.remove(&claim.ssh_port), "freed twice");
        }
        if let Some(claim) = after {
            assert!(taken.insert(claim.ssh_port), "taken twice");
        }
    }
}

impl Projection for Taken {
    fn load(&mut self, rows: &ReadRows) -> Result<(), Error> {
        rows.each_claim(|_, claim| self.take(None, Some(&claim)))
    }

    fn follow(&mut self, change: &Followed) {
        if let Some((_, before, after)) = CLAIMS.change(change) {
            self.take(before, after);
        }
    }

    fn count_ports(&mut self, _: UserId, _: usize, _: usize) {}
}

fn provisioning_spec() -> ProvisioningSpec {
    ProvisioningSpec {
        hostname: "instance".to_owned(),
        blueprint: Arc::new(Blueprint {
            images: Vec::new(),
            files: Vec::new(),
            environment: Vec::new(),
            command: Vec::new(),
            health: Health::Ssh,
            ssh: true,
            web_port: None,
        }),
        secrets: Encrypted::default(),
    }
}

type Decide = Box<dyn Fn(&View<'_>) -> Result<(InstanceId, Changes), Error> + Send>;

/// At the first port that no claim has.
pub fn create() -> Decide {
    create_at(|view| {
        let mut taken = BTreeSet::new();
        view.rows.each_claim(|_, claim| {
            taken.insert(claim.ssh_port);
        })?;
        let mut ports = PORTS;
        let free = ports.find(|port| !taken.contains(port));
        free.ok_or(Error::NotFound)
    })
}

/// At the first port that the projection has not.
pub fn create_in(taken: &Taken) -> Decide {
    let taken = taken.clone();
    create_at(move |_| Ok(taken.free()))
}

fn create_at(port: impl Fn(&View<'_>) -> Result<u16, Error> + Send + 'static) -> Decide {
    let id = InstanceId(uuid::Uuid::new_v4());
    Box::new(move |view| {
        let (owner, port) = (UserId(1), port(view)?);
        let claim = Claim {
            node: NodeId("one".to_owned()),
            owner,
            compute: true,
            size: SIZE,
            gpus: Vec::new(),
            ssh_port: port,
            web_port: None,
            lan_subnet: 0,
            lan_ipv4: Ipv4Addr::new(10, 0, (port >> 8) as u8, port as u8),
            public_ipv4: None,
        };
        let seq = view.rows.next_seq(owner)?;
        let instance = Instance {
            id,
            seq,
            version: 0,
            owner,
            name: Name::parse(&format!("instance-{seq}")).map_err(Error::internal)?,
            resource_type: ResourceType::Container,
            flavor: "base".to_owned(),
            cpu_tier: CpuTier::GeneralPurpose,
            size: SIZE,
            gpu_model: None,
            gpus: Vec::new(),
            created_at: Timestamp(1),
            rates: Rates::default(),
            password: Encrypted::default(),
            node: claim.node.clone(),
            ssh_host: "localhost".to_owned(),
            login_user: "user".to_owned(),
            ssh_port: claim.ssh_port,
            ssh: true,
            web_port: None,
            lan_ipv4: claim.lan_ipv4,
            lan_subnet: claim.lan_subnet,
            public_ipv4: None,
            wan_ports: Vec::new(),
            intent: Intent::Run,
            generation: Generation(1),
            incarnation: 1,
            provisioned: false,
            failed: false,
            progress: Progress::Pending,
            deadline: None,
            resize: None,
            events: 0,
            ledger_entries: 0,
            last_event_at: Timestamp(1),
            billed: BilledSize {
                parts: InstanceState::Provisioning.billed(),
                size: SIZE,
            },
        };
        let changes = Changes::none()
            .put_claim(id, claim)
            .put(&PROVISIONING_SPECS, id, provisioning_spec())
            .record(instance, Timestamp(1), EventKind::Created);
        Ok((id, changes))
    })
}

/// Everything of it that a deletion removes.
pub fn delete(
    id: InstanceId,
) -> impl Fn(&View<'_>) -> Result<((), Changes), Error> + Send + 'static {
    move |view| {
        let mut changes = Changes::none();
        if let Some(mut row) = view.rows.instance(id)? {
            row.intend(Intent::Delete, None);
            changes = changes.record(row, Timestamp(3), EventKind::Deleted);
        }
        Ok(((), changes.drop_instance(id)))
    }
}

/// A use case that changes the intent; returns the row that it writes.
pub fn intend(
    id: InstanceId,
    intent: Intent,
) -> impl Fn(&View<'_>) -> Result<(Instance, Changes), Error> + Send + 'static {
    move |view| {
        let mut row = view.rows.instance(id)?.ok_or(Error::NotFound)?;
        row.intend(intent, None);
        let changes = Changes::none().record(row, Timestamp(2), EventKind::Stopped);
        Ok((changes.instance()?, changes))
    }
}
