//! A private dockerd or Podman.

use crate::lab::{Act, Facts, Lab, Neighbours, Object, Once, end_neighbours, patient, text, uuid};
use crate::vms::Vms;
use crate::{limits, own_size};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use wharf_subnets::Ipv4Net;
use wharf_testkit::engine::{Allowed, DockerOptions, Kind, PrivateEngine, TlsListener};
use wharf_testkit::http::{Endpoint, HttpClient, Request};
use wharf_tests::{Authority, Ports, Server, docker_node, free_network_beside};

/// The deadline of a manual request to the engine, with many at once.
const BY_HAND: Duration = Duration::from_secs(300);

/// The name of the node.
pub const NODE: &str = "real";
/// The ports of many instances, outside those of other tests.
pub const MANY: Ports = Ports {
    from: 15_000,
    to: 15_199,
};

/// A private engine with the base image.
pub struct EngineContext {
    engine: PrivateEngine,
    remote: Option<Remote>,
    has_vm_image: Mutex<bool>,
    neighbours: Once<Neighbours>,
    vms: Once<Vms>,
    second: Once<Box<EngineContext>>,
}

/// The way to the engine over TLS.
struct Remote {
    endpoint: String,
    /// The setting `tls`.
    tls: String,
    _files: Authority,
}

impl Remote {
    fn make() -> Result<(Self, TlsListener)> {
        let authority = Authority::new()?;
        let engine = authority.issue("engine", &["127.0.0.1"])?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let listener = TlsListener {
            port,
            ca: authority.ca(),
            cert: engine.cert,
            key: engine.key,
        };
        let remote = Self {
            endpoint: format!("https://127.0.0.1:{port}"),
            tls: authority.issue("wharf", &[])?.node_tls(&authority.ca()),
            _files: authority,
        };
        Ok((remote, listener))
    }
}

/// Returns the data directory of the tests' engine. Concurrent runs need different directories.
fn directory(kind: Kind) -> PathBuf {
    let usual = || wharf_testkit::workspace::root().join("target/test-engine");
    let all = std::env::var_os("WHARF_TEST_ENGINE_DIR").map_or_else(usual, PathBuf::from);
    all.join(kind.name())
}

impl EngineContext {
    /// Starts an engine of this kind.
    pub fn start(kind: Kind) -> Result<Self> {
        wharf_tests::install_ssh()?;
        Self::at(kind, directory(kind))
    }

    /// Starts another engine, for tests that restart it.
    pub fn another(&self, name: &str) -> Result<Self> {
        let kind = self.engine.kind();
        let mut path = directory(kind).into_os_string();
        path.push(format!("-{name}"));
        Self::at(kind, path.into())
    }

    fn at(kind: Kind, dir: PathBuf) -> Result<Self> {
        // Servers reach dockerd over TLS, and Podman, which has none, on its socket.
        let (remote, tls) = match kind {
            Kind::Dockerd => Some(Remote::make()?).unzip(),
            Kind::Podman4 | Kind::Podman5 => (None, None),
        };
        let engine = PrivateEngine::start(DockerOptions {
            kind,
            dir,
            disk_gib: Some(40),
            disposable: true,
            allowed: Allowed::new(&[])?,
            tls,
        })?;
        wharf_testkit::images::ensure(&engine.client(), &["base"])?;
        Ok(Self {
            engine,
            remote,
            has_vm_image: Mutex::new(false),
            neighbours: Once::new(),
            vms: Once::new(),
            second: Once::new(),
        })
    }

    /// Builds the image of virtual machines, for the first test that needs it.
    pub fn with_vm_image(&self) -> Result<()> {
        let mut has = self
            .has_vm_image
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !*has {
            wharf_testkit::images::ensure(&self.engine.client(), &["vm-base"])?;
            *has = true;
        }
        Ok(())
    }

    /// Stops the engine, calls `meanwhile`, and starts the engine again.
    pub fn restart(&mut self, meanwhile: impl FnOnce() -> Result<()>) -> Result<()> {
        self.engine.pause();
        let done = meanwhile();
        self.engine.resume()?;
        done
    }

    /// Kills the engine, calls `meanwhile`, and starts the engine again.
    pub fn crash(&mut self, meanwhile: impl FnOnce() -> Result<()>) -> Result<()> {
        self.engine.kill()?;
        let done = meanwhile();
        self.engine.resume()?;
        done
    }

    /// The free space of the engine's storage, MiB.
    pub fn free_mib(&self) -> Result<u64> {
        let free = rustix::fs::statvfs(self.store())?;
        Ok((free.f_bavail * free.f_frsize) >> 20)
    }

    /// Enables quotas of the engine's storage that are off.
    pub fn enable_quotas(&self) -> Result<()> {
        self.engine.enable_quotas()
    }

    /// Returns the directory of the engine's store.
    pub fn store(&self) -> PathBuf {
        self.engine.store()
    }

    /// The machines that the tests of virtual machines share.
    pub fn vms(&self) -> &Once<Vms> {
        &self.vms
    }

    /// The second engine.
    pub fn second(&self) -> &Once<Box<Self>> {
        &self.second
    }

    /// Stops the engine and checks that nothing is left.
    pub fn stop(self) -> Result<()> {
        let ended = end_neighbours(&self);
        let vms = self.vms.take().map_or(Ok(()), Vms::end);
        let second = self.second.take().map_or(Ok(()), |second| second.stop());
        self.engine.stop()?;
        ended.and(vms).and(second)
    }

    /// Returns a client of the engine itself.
    pub fn client(&self) -> HttpClient {
        self.engine.client()
    }

    /// Returns whether the engine enforces disk sizes.
    pub fn enforces_disk_size(&self) -> bool {
        self.engine.enforces_disk_size()
    }

    /// Returns the names of the engine in the tables of snapshots and of volumes.
    pub fn rows(&self) -> [&'static str; 2] {
        match self.engine.kind() {
            Kind::Dockerd => ["dockerd on btrfs", "dockerd on btrfs with quotas"],
            Kind::Podman4 => ["Podman", "Podman on btrfs with quotas, without `userns`"],
            Kind::Podman5 => ["Podman", "Podman with `userns`"],
        }
    }

    /// Returns whether instances cannot make subvolumes of btrfs. The profile of Podman is the operator's.
    pub fn refuses_subvolumes(&self) -> bool {
        self.engine.kind() == Kind::Dockerd
    }

    /// Returns whether the engine tells the state of a container that it copies.
    pub fn tells_of_copies(&self) -> bool {
        self.engine.kind() == Kind::Dockerd
    }

    /// Returns whether the disk of a stopped container can grow.
    pub fn grows_disks(&self) -> bool {
        self.enforces_disk_size() && self.engine.kind() == Kind::Dockerd
    }

    /// Returns the directory of CDI files for this engine, if it supports devices.
    pub fn device_files(&self) -> Option<PathBuf> {
        self.engine.device_files()
    }

    /// Returns the engine's socket.
    pub fn socket(&self) -> Result<PathBuf> {
        match self.engine.endpoint() {
            Endpoint::Unix(path) => Ok(path),
            Endpoint::Tcp(_) | Endpoint::Tls { .. } => {
                anyhow::bail!("a private engine listens on a socket")
            }
        }
    }

    /// Starts a server with this engine as its only node.
    pub fn server(&self) -> Result<Server> {
        Server::start(&self.settings("")?)
    }

    /// Starts a server that reaches the engine through another socket.
    pub fn server_on(&self, socket: &Path) -> Result<Server> {
        let endpoint = format!("unix://{}", socket.display());
        let node = self.node_on(NODE, &endpoint, "")?;
        let ports = Ports::take().settings();
        Server::start(&format!("{}{ports}{node}", patient("")))
    }

    /// Returns the settings of a server with these ports.
    pub fn settings_with(&self, ports: Ports, more: &str) -> Result<String> {
        let node = self.node(NODE)?;
        Ok(format!("{}{}{node}", patient(more), ports.settings()))
    }

    /// Returns a `[[node]]` of this name.
    pub fn node(&self, name: &str) -> Result<String> {
        match &self.remote {
            Some(Remote { endpoint, tls, .. }) => self.node_on(name, endpoint, tls),
            None => {
                let endpoint = format!("unix://{}", self.socket()?.display());
                self.node_on(name, &endpoint, "")
            }
        }
    }

    fn node_on(&self, name: &str, endpoint: &str, tls: &str) -> Result<String> {
        let n = free_network_beside(self.ranges()?)?;
        let (lan, public) = (format!("10.{n}.0.0/16"), format!("198.18.{n}.0/28"));
        let node = docker_node(name, endpoint, [&lan, &public], &self.engine.settings());
        Ok(format!("{node}{tls}"))
    }

    /// The address ranges of the engine's networks. One without containers may outlive its instances.
    fn ranges(&self) -> Result<Vec<Ipv4Net>> {
        let networks = self.client().get("/networks")?;
        let networks = networks.as_array().context("a list of networks")?.iter();
        let ranges = networks.filter_map(|network| network["IPAM"]["Config"].as_array());
        let subnets = ranges
            .flatten()
            .filter_map(|range| range["Subnet"].as_str());
        Ok(subnets.filter_map(|subnet| subnet.parse().ok()).collect())
    }

    /// Returns whether each new container copies its image's top layer.
    pub fn copies_layers(&self) -> bool {
        self.engine.kind() == Kind::Podman5
    }

    /// Completes the `HostConfig` of a container without Wharf by the user namespace of Wharf's
    /// containers.
    pub fn host_config(&self, mut config: Value) -> Value {
        if self.engine.kind() == Kind::Podman5 {
            config["UsernsMode"] = "auto".into();
        }
        config
    }

    /// Sends a manual request to the engine, which must succeed, and returns the answer.
    pub fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value> {
        let request = Request::new(method, path).timeout(BY_HAND);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let answer = self.client().send(request)?;
        let answer = answer.ok().with_context(|| format!("{method} {path}"))?;
        Ok(serde_json::from_slice(&answer.body).unwrap_or(Value::Null))
    }

    /// Returns the only container of an instance.
    pub fn container_of(&self, instance: &Value) -> Result<Value> {
        let mut all = self.containers_of(instance)?;
        ensure!(all.len() == 1, "{} containers: {all:?}", all.len());
        all.pop().context("no container")
    }

    /// Lists the engine's containers of an instance.
    pub fn containers_of(&self, instance: &Value) -> Result<Vec<Value>> {
        let uuid = uuid(instance);
        let filter = format!("%7B%22label%22%3A%5B%22io.wharf.instance%3D{uuid}%22%5D%7D");
        let path = format!("/containers/json?all=true&filters={filter}");
        let list = self.ask("GET", &path, None)?;
        Ok(list.as_array().cloned().unwrap_or_default())
    }

    /// Lists the names of the engine's volumes, without those that mark its store.
    pub fn volumes(&self) -> Result<Vec<String>> {
        let list = self.client().get("/volumes")?;
        Ok(names(&list["Volumes"], "Name")
            .into_iter()
            .filter(|name| !name.starts_with("wharf-"))
            .collect())
    }
}

impl Lab for EngineContext {
    fn facts(&self) -> Facts {
        let kind = self.engine.kind();
        Facts {
            host: "127.0.0.1".to_owned(),
            has_owners_networks: true,
            remaps_root: kind.remaps_root(),
            maps_each_alone: kind == Kind::Podman5,
            drops_raw_sockets: true,
            enforces_disk_size: self.enforces_disk_size(),
            usable_disk_mib: 10 << 10,
            grows_running: false,
            knows_usage_at_once: true,
            sizes: &[(3, 4), (2, 2), (4, 2)],
            // Podman 5 copies the image's top layer for each user namespace, one copy at a time, 5 to 10 s
            // each, so 32 would exceed the deadline.
            many: if self.copies_layers() { 8 } else { 32 },
        }
    }

    fn settings(&self, more: &str) -> Result<String> {
        self.settings_with(Ports::take(), more)
    }

    fn objects(&self, instance: &Value) -> Result<Vec<Object>> {
        let all = self.containers_of(instance)?;
        let object = |one: &Value| Object {
            runs: one["State"] == "running",
            networks: networks_of(one),
            place: String::new(),
        };
        Ok(all.iter().map(object).collect())
    }

    fn by_hand(&self, instance: &Value, act: Act) -> Result<()> {
        let path = format!("/containers/wharf-{}", uuid(instance));
        let (method, part) = match act {
            Act::Stop => ("POST", "/stop?t=5"),
            Act::Start => ("POST", "/start"),
            Act::Remove => ("DELETE", "?force=true"),
        };
        self.ask(method, &format!("{path}{part}"), None).map(drop)
    }

    fn networks(&self) -> Result<Vec<String>> {
        let list = self.client().get("/networks")?;
        let mut names = names(&list, "Name");
        names.retain(|name| name.starts_with("wharf-"));
        Ok(names)
    }

    fn neighbours(&self) -> &Once<Neighbours> {
        &self.neighbours
    }

    fn has_size(&self, instance: &Value, size: (u32, u32)) -> Result<()> {
        limits::of_control_group(instance, size)?;
        own_size::is_shown(instance, size)
    }
}

/// The names of a container's networks.
pub fn networks_of(container: &Value) -> Vec<String> {
    let networks = container["NetworkSettings"]["Networks"].as_object();
    networks
        .into_iter()
        .flat_map(|all| all.keys().cloned())
        .collect()
}

/// The name of an instance's only network.
pub fn network_of(context: &EngineContext, instance: &Value) -> Result<String> {
    let mut all = networks_of(&context.container_of(instance)?);
    ensure!(all.len() == 1, "the container is on {all:?}");
    all.pop().context("no network")
}

fn names(list: &Value, key: &str) -> Vec<String> {
    list.as_array()
        .into_iter()
        .flatten()
        .map(|item| text(&item[key]).to_owned())
        .collect()
}
