//! The engine that all tests of this binary share.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use wharf_testkit::engine::{Allowed, Kind, Options, PrivateEngine, TlsListener};
use wharf_testkit::http::{Client, Endpoint, Request};
use wharf_tests::{Authority, Ports, Server, docker_node, free_network};

/// The deadline of a manual request to the engine, with many at once.
const BY_HAND: Duration = Duration::from_secs(300);

/// A private engine with the base image.
pub struct Context {
    engine: PrivateEngine,
    remote: Option<Remote>,
    has_vm_image: Mutex<bool>,
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

impl Context {
    /// Starts an engine of this kind.
    pub fn start(kind: Kind) -> Result<Self> {
        wharf_tests::install_ssh()?;
        Self::at(kind, directory(kind))
    }

    /// Starts a second engine, for a test that restarts it.
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
        let engine = PrivateEngine::start(Options {
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

    /// Returns the directory of the engine's store.
    pub fn store(&self) -> PathBuf {
        self.engine.store()
    }

    /// Stops the engine and checks that nothing is left.
    pub fn stop(self) -> Result<()> {
        self.engine.stop()
    }

    /// Returns a client of the engine itself.
    pub fn client(&self) -> Client {
        self.engine.client()
    }

    /// Returns whether the engine enforces disk sizes.
    pub fn enforces_disk_size(&self) -> bool {
        self.engine.enforces_disk_size()
    }

    /// Returns whether the disk of a stopped container can grow.
    pub fn grows_disks(&self) -> bool {
        self.enforces_disk_size() && self.engine.kind() == Kind::Dockerd
    }

    /// Returns whether root in a container is an unprivileged user on the node.
    pub fn remaps_root(&self) -> bool {
        self.engine.kind().remaps_root()
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
        Server::start(&self.settings(Ports::take(), "")?)
    }

    /// Starts a server that reaches the engine through another socket.
    pub fn server_on(&self, socket: &Path) -> Result<Server> {
        let endpoint = format!("unix://{}", socket.display());
        Server::start(&self.settings_on(&endpoint, "", Ports::take(), "")?)
    }

    /// Returns the settings of a server with this engine as its only node, with additional
    /// settings.
    pub fn settings(&self, ports: Ports, more: &str) -> Result<String> {
        match &self.remote {
            Some(Remote { endpoint, tls, .. }) => self.settings_on(endpoint, tls, ports, more),
            None => {
                let endpoint = format!("unix://{}", self.socket()?.display());
                self.settings_on(&endpoint, "", ports, more)
            }
        }
    }

    fn settings_on(&self, endpoint: &str, tls: &str, ports: Ports, more: &str) -> Result<String> {
        let n = free_network()?;
        let (lan, public) = (format!("10.{n}.0.0/16"), format!("198.18.{n}.0/28"));
        let node = docker_node("real", endpoint, [&lan, &public], &self.engine.settings());
        Ok(format!("{more}{}{node}{tls}", ports.settings()))
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
    pub fn by_hand(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value> {
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
        let uuid = instance["uuid"].as_str().context("uuid")?;
        let filter = format!("%7B%22label%22%3A%5B%22io.wharf.instance%3D{uuid}%22%5D%7D");
        let path = format!("/containers/json?all=true&filters={filter}");
        let list = self.by_hand("GET", &path, None)?;
        Ok(list.as_array().cloned().unwrap_or_default())
    }

    /// Lists the names of Wharf's networks on the engine.
    pub fn networks(&self) -> Result<Vec<String>> {
        let list = self.client().get("/networks")?;
        Ok(names(&list, "Name")
            .into_iter()
            .filter(|name| name.starts_with("wharf-"))
            .collect())
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

fn names(list: &Value, key: &str) -> Vec<String> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item[key].as_str().map(str::to_owned))
        .collect()
}
