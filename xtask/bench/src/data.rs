//! Data directories with any number of instances.
//!
//! Wharf's own database code writes the rows, many creates at a time: through REST, 1,000,000 instances
//! would take hours. The instances are stopped, so that no node is expected to run them.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use wharf::server::open_db;
use wharf_accounts::key::{ApiKeys, KeyRequest};
use wharf_config::Config;
use wharf_db::{Changes, Db, PROVISIONING_SPECS, ProvisioningSpec, Read as _, View};
use wharf_domain::audit::Origin;
use wharf_domain::blueprint::{Blueprint, BlueprintFile, FileContent, Health, Image};
use wharf_domain::capacity::{CpuTier, Size};
use wharf_domain::error::Error;
use wharf_domain::event::EventKind;
use wharf_domain::ids::{Generation, InstanceId, NodeId, UserId};
use wharf_domain::instance::{BilledSize, Instance, Intent, Progress, ResourceType};
use wharf_domain::money::{Rate, Rates};
use wharf_domain::name::Name;
use wharf_domain::placement::PlacementRequest;
use wharf_domain::scope::Scopes;
use wharf_domain::secret::{Encrypted, InstanceSecrets, SecretText};
use wharf_domain::state::InstanceState;
use wharf_ground::vault::Vault;
use wharf_instances::SharedInventory;
use wharf_testkit::process::wait_until;

/// Concurrent creates.
const CONCURRENCY: usize = 1024;
/// The most instances of a node, because of its ports.
const PER_NODE: usize = 9_000;

/// A data directory with its configuration.
pub struct Data {
    dir: TempDir,
    /// The keys of all users.
    pub keys: Vec<String>,
    /// The instances of the first user.
    pub first: Vec<InstanceId>,
    /// The number of nodes.
    pub nodes: usize,
}

const SIZE: Size = Size {
    n_vcpus: 1,
    mem_gib: 1,
    disk_size_gib: 10,
};

impl Data {
    /// Makes an installation of simulated nodes, whose engines know none of the instances.
    pub fn make(nodes: usize, users: usize, instances: usize) -> Result<Self> {
        Self::new(nodes, users, instances, None)
    }

    /// Makes an installation whose engines have the instances, and are observed at this interval.
    pub fn observed(nodes: usize, users: usize, instances: usize, every: Duration) -> Result<Self> {
        Self::new(nodes, users, instances, Some(every))
    }

    fn new(
        nodes: usize,
        users: usize,
        instances: usize,
        observed: Option<Duration>,
    ) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("wharf-bench-").tempdir()?;
        let config = dir.path().join("wharf.toml");
        let engines = observed.map(|every| (dir.path(), every));
        fs::write(&config, configuration(nodes, engines))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        let engines = observed.map(|_| dir.path());
        let (keys, first) = runtime.block_on(fill(&config, users, instances, engines))?;
        drop(runtime);
        wait_until_closed(&dir.path().join("data/wharf.redb"))?;
        Ok(Self {
            dir,
            keys,
            first,
            nodes,
        })
    }

    /// Makes an installation with as many nodes as the instances need, at least ten.
    pub fn of_size(users: usize, instances: usize) -> Result<Self> {
        Self::make(instances.div_ceil(PER_NODE).max(10), users, instances)
    }

    /// The configuration file.
    pub fn config(&self) -> PathBuf {
        self.dir.path().join("wharf.toml")
    }

    /// The log of a server on it.
    pub fn log(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    /// The key of the first user.
    pub fn key(&self) -> &str {
        self.keys.first().map_or("", String::as_str)
    }
}

/// The thread of the database closes the file a moment after its last use.
fn wait_until_closed(file: &Path) -> Result<()> {
    let closed = || wharf_db::rows_in(file).is_ok();
    ensure!(
        wait_until(Duration::from_secs(30), closed),
        "the database stays open"
    );
    Ok(())
}

/// Nodes with their own login hosts, so that ports suffice for any number of instances. With a directory,
/// their engines keep instances in files there, and are observed at the interval.
fn configuration(nodes: usize, engines: Option<(&Path, Duration)>) -> String {
    let mut text = "listen = \"127.0.0.1:0\"\ndata_dir = \"data\"\n\
         [ssh_ports]\nfrom = 20000\nto = 29999\n[quota]\nn_ports = \"unlimited\"\n\
         [limits]\nrequests_per_second = 0\nrequests_per_second_per_user = 0\n\
         records_per_user_per_day = 0\n"
        .to_owned();
    // Writing into a String cannot fail.
    if let Some((_, every)) = engines {
        let _ = writeln!(text, "observe_every_ms = {}", every.as_millis());
    }
    for n in 0..nodes {
        let endpoint = match engines {
            Some((dir, _)) => format!("simulated://{}", engine(dir, &name(n)).display()),
            None => "simulated:".to_owned(),
        };
        let _ = write!(
            text,
            "[[node]]\nname = \"{}\"\ndriver = \"simulated\"\nendpoint = \"{endpoint}\"\n\
             ssh_host = \"n{n}.example.org\"\nprobe_host = \"127.0.0.1\"\nlan_subnet_prefix = 22\n\
             lan_cidr = \"10.0.0.0/12\"\n\
             capacity = {{ n_vcpus = 100000, mem_gib = 100000, disk_size_gib = 1000000 }}\n",
            name(n)
        );
    }
    text
}

/// The name of a node.
fn name(node: usize) -> String {
    format!("n{node:05}")
}

/// The file of a simulated engine.
fn engine(dir: &Path, node: &str) -> PathBuf {
    dir.join(format!("{node}.engine"))
}

async fn fill(
    config: &Path,
    users: usize,
    instances: usize,
    engines: Option<&Path>,
) -> Result<(Vec<String>, Vec<InstanceId>)> {
    let config = Config::load(config)?;
    let (db, inventory, clock) = open_db(&config)?;
    let vault = Arc::new(Vault::open(&config.data_dir, &db).await?);
    let keys = ApiKeys::load(db.clone(), clock)?;
    let (mut shown, mut owners) = (Vec::new(), Vec::new());
    for n in 0..users {
        let new = KeyRequest {
            email: format!("user{n}@example.org"),
            name: String::new(),
            scopes: Scopes::ALL,
            expires_at: None,
        };
        let key = keys.new_key(new, &Origin::operator()).await?;
        shown.push(key.key.expose().to_owned());
        let caller = keys.authenticate(key.key.expose(), "bench".into());
        owners.push(caller.context("a new key does not work")?.user);
    }
    let mut first = Vec::new();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..instances {
        let owner = *owners.get(n % users.max(1)).context("no users")?;
        let id = InstanceId(uuid::Uuid::now_v7());
        if owners.first() == Some(&owner) {
            first.push(id);
        }
        if tasks.len() >= CONCURRENCY
            && let Some(done) = tasks.join_next().await
        {
            done??;
        }
        let inventory = inventory.clone();
        tasks.spawn(create(
            db.clone(),
            inventory,
            Arc::clone(&vault),
            id,
            owner,
            n,
        ));
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    if let Some(dir) = engines {
        write_engines(&db, dir)?;
    }
    Ok((shown, first))
}

/// Writes the file of each engine: a line for each of its instances, which is stopped.
fn write_engines(db: &Db, dir: &Path) -> Result<()> {
    let mut files: BTreeMap<NodeId, String> = BTreeMap::new();
    db.read(|rows| {
        let installation = rows.installation()?;
        rows.each_claim(|id, claim| {
        let line = json!({ "id": id.0, "machine": {
            "wanted": {
                "installation": installation, "incarnation": 1, "kind": "container",
                "hostname": "calm-harbor", "image": "localhost/wharf/base:1",
                "address": claim.lan_ipv4, "node_ports": [claim.ssh_port],
                "n_vcpus": SIZE.n_vcpus, "mem_gib": SIZE.mem_gib, "disk_size_gib": SIZE.disk_size_gib,
            },
            "life": { "Stopped": null },
            "cpu_ns": 0,
        }});
        let file = files.entry(claim.node).or_default();
        // Writing into a String cannot fail.
        let _ = writeln!(file, "{line}");
    })
    })?;
    for (node, lines) in files {
        fs::write(engine(dir, &node.to_string()), lines)?;
    }
    Ok(())
}

async fn create(
    db: Db,
    inventory: SharedInventory,
    vault: Arc<Vault>,
    id: InstanceId,
    owner: UserId,
    n: usize,
) -> Result<(), Error> {
    let password = vault.encrypt_text(id, &SecretText::new("xk7Rb2mQw9TzLd4H"))?;
    let provisioning_spec = ProvisioningSpec {
        hostname: format!("calm-harbor-{n}"),
        blueprint: Arc::new(blueprint()),
        secrets: vault.encrypt_all(id, &InstanceSecrets::default())?,
    };
    db.write(move |view| {
        decide(
            view,
            &inventory,
            id,
            owner,
            n,
            &password,
            &provisioning_spec,
        )
    })
    .await
}

fn decide(
    view: &View<'_>,
    inventory: &SharedInventory,
    id: InstanceId,
    owner: UserId,
    n: usize,
    password: &Encrypted,
    provisioning_spec: &ProvisioningSpec,
) -> Result<((), Changes), Error> {
    let ask = PlacementRequest {
        owner,
        resource_type: ResourceType::Container,
        size: SIZE,
        cpu_tier: CpuTier::GeneralPurpose,
        gpu_model: None,
        flavor: "base".to_owned(),
        web: false,
        images: Vec::new(),
        nodes: None,
    };
    let placement = inventory.place(&ask)?;
    let (claim, seq) = (placement.claim, view.rows.next_seq(owner)?);
    let name = Name::parse(&format!("calm-harbor-{n}"));
    let rate = Rate(12_500_000);
    let instance = Instance {
        id,
        seq,
        version: 0,
        owner,
        name: name.map_err(Error::internal)?,
        resource_type: ResourceType::Container,
        flavor: "base".to_owned(),
        cpu_tier: CpuTier::GeneralPurpose,
        size: SIZE,
        gpu_model: None,
        gpus: Vec::new(),
        created_at: view.now,
        rates: Rates {
            vcpu: rate,
            mem: rate,
            disk: rate,
            gpu: Rate(0),
        },
        password: password.clone(),
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
        intent: Intent::Stop,
        generation: Generation(2),
        incarnation: 1,
        provisioned: true,
        failed: false,
        progress: Progress::Settled,
        deadline: None,
        resize: None,
        events: 0,
        ledger_entries: 0,
        last_event_at: view.now,
        billed: BilledSize {
            parts: InstanceState::Exited.billed(),
            size: SIZE,
        },
    };
    let changes = Changes::none()
        .put_claim(id, claim)
        .put(&PROVISIONING_SPECS, id, provisioning_spec.clone())
        .record(instance, view.now, EventKind::Created);
    Ok(((), changes))
}

/// A blueprint of the size of the flavor `base`.
fn blueprint() -> Blueprint {
    let file = |path: &str, bytes: usize| BlueprintFile {
        path: path.to_owned(),
        mode: 0o600,
        uid: 0,
        gid: 0,
        content: FileContent::Bytes(vec![b'x'; bytes]),
    };
    Blueprint {
        images: ["docker", "simulated"]
            .map(|kind| Image {
                engine_kind: kind.to_owned(),
                reference: "localhost/wharf/base:1".to_owned(),
            })
            .to_vec(),
        files: vec![
            file("/etc/wharf/first-boot/user", 4),
            file("/etc/wharf/first-boot/password", 120),
        ],
        environment: Vec::new(),
        command: Vec::new(),
        health: Health::Ssh,
        ssh: true,
        web_port: None,
    }
}
