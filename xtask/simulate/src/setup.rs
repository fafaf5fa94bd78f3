//! The configuration of the simulated service: its nodes, users and flavors. It is small, so that users meet the
//! bounds of nodes, ports, addresses and quotas.

use crate::world::NodeSetup;
use anyhow::{Context, Result};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use tempfile::TempDir;
use wharf_config::Config;
use wharf_domain::capacity::{GpuDevice, Size};
use wharf_domain::flavor::{Flavor, WebAuth};
use wharf_domain::ids::NodeId;
use wharf_domain::instance::ResourceType;
use wharf_plugin::{CacheUse, CallLimits, OwnFlavor, Plugins, PluginsConfig};

/// The users of the service.
pub const USERS: [&str; 3] = ["alice@example.org", "bob@example.org", "carol@example.org"];

/// The settings of all configurations.
const COMMON: &str = r#"
listen = "127.0.0.1:9"
data_dir = "data"
base_url = "https://192.0.2.1"
provisioning_deadline_s = 60
ssh_ports = { from = 20000, to = 20011 }
web = { from = 30000, to = 30005 }

[pages]
domain = "wharf-pages.example"
listen = "127.0.0.1:10"
public = true

[limits]
disk_reserve_mib = 0
records_per_user_per_day = 0
answer_wait_ms = 3000
observe_every_ms = 5000

[rates.general-purpose]
vcpu = 0.012
ram = 0.004
storage = 0.00014
"#;

/// The configurations, of which one is in use: the first one at the begin. Another one is one without a setting
/// that a reload may change, or without the last node.
const VARIANTS: [(&str, usize); 4] = [
    ("[quota]\nn_instances = 6\nn_vcpus = 12\n", 4),
    ("[quota]\nn_instances = 3\nn_ports = 4\n", 4),
    ("[retention]\nevents_days = 1\n", 4),
    ("", 3),
];

struct NodeText {
    name: &'static str,
    cluster: &'static str,
    gpus: u32,
    public: &'static str,
}

const NODES: [NodeText; 4] = [
    NodeText {
        name: "n1",
        cluster: "c",
        gpus: 2,
        public: "198.51.100.0/29",
    },
    NodeText {
        name: "n2",
        cluster: "c",
        gpus: 0,
        public: "198.51.100.8/29",
    },
    NodeText {
        name: "n3",
        cluster: "",
        gpus: 1,
        public: "198.51.100.16/29",
    },
    NodeText {
        name: "n4",
        cluster: "",
        gpus: 0,
        public: "",
    },
];

/// The capacity of each node.
const CAPACITY: Size = Size {
    n_vcpus: 8,
    mem_gib: 16,
    disk_size_gib: 120,
};

/// The model of all GPUs.
pub const GPU: &str = "H100";

/// The configuration of the service and the parts that all runs share.
pub struct Setup {
    pub configs: Vec<Arc<Config>>,
    pub plugins: Plugins,
    pub flavors: Vec<Arc<Flavor>>,
    /// Has the key file and the configurations.
    directory: TempDir,
}

impl Setup {
    /// The setup of this process.
    pub fn shared() -> Result<&'static Self> {
        static SETUP: OnceLock<Setup> = OnceLock::new();
        static MAKING: parking_lot::Mutex<()> = parking_lot::Mutex::new(());
        let _one = MAKING.lock();
        if let Some(setup) = SETUP.get() {
            return Ok(setup);
        }
        let made = Self::make()?;
        Ok(SETUP.get_or_init(|| made))
    }

    fn make() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        make_key(&directory.path().join("secret.key"))?;
        let mut configs = Vec::new();
        for (n, (settings, nodes)) in VARIANTS.iter().enumerate() {
            let path = directory.path().join(format!("wharf-{n}.toml"));
            let nodes = NODES.iter().take(*nodes).map(node_text);
            let text = format!("{COMMON}\n{settings}\n{}", nodes.collect::<String>());
            std::fs::write(&path, &text)?;
            let config = Config::load(&path).with_context(|| text)?;
            configs.push(Arc::new(config));
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let plugins = runtime.block_on(Plugins::of_flavors(PluginsConfig {
            cache: CacheUse::Read(directory.path().join("none")),
            shipped: None,
            plugins_dir: None,
            pins: Default::default(),
            flavors: vec![flavor("shell", None), flavor("page", Some(8000))],
            limits: CallLimits::default(),
        }))?;
        Ok(Self {
            configs,
            flavors: plugins.flavors().to_vec(),
            plugins,
            directory,
        })
    }

    /// The directory of the key file.
    pub fn data_dir(&self) -> &Path {
        self.directory.path()
    }

    /// The nodes of the world: those of all configurations.
    pub fn nodes(&self) -> Vec<NodeSetup> {
        let gpus = |node: &NodeText| (0..node.gpus).map(device).collect();
        let setup = |node: &NodeText| NodeSetup {
            name: NodeId(node.name.to_owned()),
            cluster: (!node.cluster.is_empty()).then(|| node.cluster.to_owned()),
            capacity: CAPACITY,
            gpus: gpus(node),
        };
        NODES.iter().map(setup).collect()
    }
}

/// Makes a key file, so that no run has to.
fn make_key(path: &Path) -> Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    Ok(file.write_all(&[7; 32])?)
}

fn device(n: u32) -> GpuDevice {
    GpuDevice {
        model: GPU.to_owned(),
        device: format!("{GPU}#{n}"),
    }
}

fn node_text(node: &NodeText) -> String {
    let Size {
        n_vcpus,
        mem_gib,
        disk_size_gib,
    } = CAPACITY;
    let mut text = format!(
        "\n[[node]]\nname = {:?}\ndriver = \"simulated\"\nendpoint = \"simulated:\"\n\
         lan_cidr = \"10.80.0.0/24\"\nlan_subnet_prefix = 28\n\
         capacity = {{ n_vcpus = {n_vcpus}, mem_gib = {mem_gib}, disk_size_gib = {disk_size_gib} }}\n",
        node.name
    );
    if !node.cluster.is_empty() {
        text += &format!("cluster = {:?}\n", node.cluster);
    }
    if !node.public.is_empty() {
        text += &format!("public_ipv4 = [{:?}]\n", node.public);
    }
    if node.gpus > 0 {
        text += &format!("gpus = [{{ model = {GPU:?}, count = {} }}]\n", node.gpus);
    }
    text
}

fn flavor(name: &str, web: Option<u16>) -> OwnFlavor {
    OwnFlavor {
        flavor: Flavor {
            name: name.to_owned(),
            description: format!("The flavor {name}."),
            resource_types: vec![ResourceType::Container, ResourceType::Vm],
            ssh: web.is_none(),
            web: web.is_some(),
            web_auth: WebAuth::None,
            s3_prefill: false,
            ai: false,
            gpu_aware: false,
            minimum: Size {
                n_vcpus: 1,
                mem_gib: 1,
                disk_size_gib: 5,
            },
        },
        image: format!("{name}:1"),
        ssh: true,
        web: web.map(|port| (port, "/".to_owned())),
        command: Vec::new(),
    }
}
