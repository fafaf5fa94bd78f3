//! The least that a create writes.

use crate::db::{Change, Changes, Detail, View};
use crate::domain::blueprint::{Blueprint, Health};
use crate::domain::capacity::{CpuTier, Size};
use crate::domain::error::Error;
use crate::domain::event::What;
use crate::domain::ids::{Generation, InstanceId, NodeId, UserId};
use crate::domain::instance::{Instance, Intent, Progress, ResourceType};
use crate::domain::money::Rates;
use crate::domain::name::Name;
use crate::domain::secret::Sealed;
use crate::domain::state::InstanceState;
use crate::domain::time::Timestamp;
use crate::placement::{Inventory, NodeSetup, PlacementRequest, Pools};
use std::sync::Arc;

const SIZE: Size = Size {
    n_vcpus: 1,
    mem_gib: 1,
    disk_size_gib: 10,
};

pub fn inventory() -> Inventory {
    let node = NodeSetup {
        id: NodeId("one".to_owned()),
        capacity: Size {
            n_vcpus: 1000,
            mem_gib: 1000,
            disk_size_gib: 10_000,
        },
        gpus: Vec::new(),
        cpu_tiers: vec![CpuTier::GeneralPurpose],
        ssh_host: "localhost".to_owned(),
        lan_cidr: "10.0.0.0/16".parse().unwrap(),
        lan_subnet_prefix: 24,
        public_ipv4: Vec::new(),
    };
    let pools = Pools {
        ssh: (20_000, 20_999),
        web: (30_000, 30_999),
    };
    Inventory::new(vec![node], pools)
}

fn detail() -> Detail {
    Detail {
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
        secrets: Sealed::default(),
    }
}

type Decide = Box<dyn Fn(&View<'_>) -> Result<(InstanceId, Changes), Error> + Send>;

pub fn create() -> Decide {
    let id = InstanceId(uuid::Uuid::new_v4());
    Box::new(move |view| {
        let owner = UserId(1);
        let ask = PlacementRequest {
            owner,
            resource_type: ResourceType::Container,
            size: SIZE,
            cpu_tier: CpuTier::GeneralPurpose,
            gpu_model: None,
            web: false,
        };
        let placement = view.inventory.place(&ask).map_err(Error::Insufficient)?;
        let claim = placement.claim;
        let seq = view.rows.next_seq()?;
        let instance = Instance {
            id,
            seq,
            owner,
            name: Name::parse(&format!("instance-{seq}")).map_err(Error::internal)?,
            resource_type: ask.resource_type,
            flavor: "base".to_owned(),
            cpu_tier: ask.cpu_tier,
            size: SIZE,
            gpu_model: None,
            gpus: Vec::new(),
            created_at: Timestamp(1),
            rates: Rates::default(),
            password: Sealed::default(),
            node: claim.node.clone(),
            ssh_host: placement.ssh_host,
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
            billed: (InstanceState::Provisioning.billed(), SIZE),
        };
        let changes = Changes::none()
            .with(Change::NextSeq(seq + 1))
            .with(Change::PutClaim(id, claim))
            .with(Change::PutDetail(id, Box::new(detail())))
            .record(instance, Timestamp(1), What::Created);
        Ok((id, changes))
    })
}

/// Everything of it that a deletion removes.
pub fn delete(
    id: InstanceId,
) -> impl Fn(&View<'_>) -> Result<((), Changes), Error> + Send + 'static {
    move |_| {
        let changes = Changes::none()
            .with(Change::DropClaim(id))
            .with(Change::DropInstance(id));
        Ok(((), changes))
    }
}
