//! The engine that all tests of this binary share.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use wharf_testkit::engine::{Kind, Options, PrivateEngine};
use wharf_testkit::http::{Client, Endpoint, Request};
use wharf_tests::{Ports, Server, docker_node, free_network};

/// What an engine may take for one thing that is done to it by hand, many at once.
const BY_HAND: Duration = Duration::from_secs(300);

/// A private engine with the base image.
pub struct Context {
    engine: PrivateEngine,
    has_vm_image: Mutex<bool>,
}

/// Where the engine of these tests keeps its data; another directory lets two runs go side by side.
fn directory(kind: Kind) -> PathBuf {
    let usual = || wharf_testkit::workspace::root().join("target/test-engine");
    let all = std::env::var_os("WHARF_TEST_ENGINE_DIR").map_or_else(usual, PathBuf::from);
    all.join(kind.name())
}

impl Context {
    /// Starts an engine of this kind.
    pub fn start(kind: Kind) -> Result<Self> {
        wharf_testkit::packages::ensure(&[
            wharf_testkit::packages::Need {
                program: "ssh",
                package: "openssh-client",
                why: "the tests log in with it",
            },
            wharf_testkit::packages::Need {
                program: "sshpass",
                package: "sshpass",
                why: "the tests log in with passwords",
            },
        ])?;
        Self::at(kind, directory(kind))
    }

    /// A second engine, for a test that ends and restarts it.
    pub fn another(&self, name: &str) -> Result<Self> {
        let kind = self.engine.kind();
        let mut path = directory(kind).into_os_string();
        path.push(format!("-{name}"));
        Self::at(kind, path.into())
    }

    fn at(kind: Kind, dir: PathBuf) -> Result<Self> {
        let engine = PrivateEngine::start(Options {
            kind,
            dir,
            disk_gib: Some(40),
            disposable: true,
        })?;
        wharf_testkit::images::ensure(&engine.client(), &["base"])?;
        Ok(Self {
            engine,
            has_vm_image: Mutex::new(false),
        })
    }

    /// Has the image of virtual machines made, for the first test that needs it.
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

    /// Ends the engine, lets something happen without it, and starts it again.
    pub fn restart(&mut self, meanwhile: impl FnOnce() -> Result<()>) -> Result<()> {
        self.engine.pause();
        let done = meanwhile();
        self.engine.resume()?;
        done
    }

    /// Ends the engine and checks that nothing stays.
    pub fn stop(self) -> Result<()> {
        self.engine.stop()
    }

    /// Speaks to the engine directly.
    pub fn client(&self) -> Client {
        self.engine.client()
    }

    /// Whether disk sizes are enforced here.
    pub fn enforces_disk_size(&self) -> bool {
        self.engine.enforces_disk_size()
    }

    /// Whether the disk of a stopped container can grow here.
    pub fn grows_disks(&self) -> bool {
        self.enforces_disk_size() && self.engine.kind() == Kind::Dockerd
    }

    /// Whether root inside is nobody on the node.
    pub fn remaps_root(&self) -> bool {
        self.engine.kind().remaps_root()
    }

    /// Where files on devices for this engine go, if it hands out devices.
    pub fn device_files(&self) -> Option<PathBuf> {
        self.engine.device_files()
    }

    /// The engine's socket.
    pub fn socket(&self) -> Result<PathBuf> {
        match self.engine.endpoint() {
            Endpoint::Unix(path) => Ok(path),
            Endpoint::Tcp(_) => anyhow::bail!("a private engine listens on a socket"),
        }
    }

    /// A server with this engine as its only node.
    pub fn server(&self) -> Result<Server> {
        self.server_on(&self.socket()?)
    }

    /// The same through another socket.
    pub fn server_on(&self, socket: &Path) -> Result<Server> {
        Server::start(&self.settings_on(socket, Ports::take(), "")?)
    }

    /// The settings of a server with this engine as its only node, and some more.
    pub fn settings(&self, ports: Ports, more: &str) -> Result<String> {
        self.settings_on(&self.socket()?, ports, more)
    }

    fn settings_on(&self, socket: &Path, ports: Ports, more: &str) -> Result<String> {
        let socket = socket.to_str().context("socket path")?;
        let n = free_network()?;
        let (lan, public) = (format!("10.{n}.0.0/16"), format!("198.18.{n}.0/28"));
        let node = docker_node(
            "real",
            socket,
            [&lan, &public],
            self.engine.kind().settings(),
        );
        Ok(format!("{more}{}{node}", ports.settings()))
    }

    /// Whether each new container costs a copy of its image's top layer.
    pub fn copies_layers(&self) -> bool {
        self.engine.kind() == Kind::Podman5
    }

    /// The `HostConfig` of a container that is made beside Wharf, under the same conditions: with
    /// the user namespace that Wharf's have.
    pub fn host_config(&self, mut config: Value) -> Value {
        if self.engine.kind() == Kind::Podman5 {
            config["UsernsMode"] = "auto".into();
        }
        config
    }

    /// Does something to the engine by hand; the answer, which must be a success.
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

    /// The one container of an instance.
    pub fn container_of(&self, instance: &Value) -> Result<Value> {
        let mut all = self.containers_of(instance)?;
        ensure!(all.len() == 1, "{} containers: {all:?}", all.len());
        all.pop().context("no container")
    }

    /// The engine's containers of an instance.
    pub fn containers_of(&self, instance: &Value) -> Result<Vec<Value>> {
        let uuid = instance["uuid"].as_str().context("uuid")?;
        let filter = format!("%7B%22label%22%3A%5B%22io.wharf.instance%3D{uuid}%22%5D%7D");
        let path = format!("/containers/json?all=true&filters={filter}");
        let list = self.by_hand("GET", &path, None)?;
        Ok(list.as_array().cloned().unwrap_or_default())
    }

    /// Names of the engine's networks that Wharf made.
    pub fn networks(&self) -> Result<Vec<String>> {
        let list = self.client().get("/networks")?;
        Ok(names(&list, "Name")
            .into_iter()
            .filter(|name| name.starts_with("wharf-"))
            .collect())
    }

    /// Names of the engine's volumes.
    pub fn volumes(&self) -> Result<Vec<String>> {
        let list = self.client().get("/volumes")?;
        Ok(names(&list["Volumes"], "Name"))
    }
}

fn names(list: &Value, key: &str) -> Vec<String> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item[key].as_str().map(str::to_owned))
        .collect()
}
