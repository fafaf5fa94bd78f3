//! The engine that all tests of this binary share.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use wharf_tests::{Ports, Server, docker_node};
use xtask::engine::{Options, PrivateDockerd};
use xtask::http::{Client, Endpoint, Request};

/// What an engine may take for one thing that is done to it by hand, many at once.
const BY_HAND: Duration = Duration::from_secs(120);

/// A private dockerd with the base image.
pub struct Context {
    engine: PrivateDockerd,
}

/// Engines share the machine's routes, so servers need networks that do not overlap on any.
static NEXT_NETWORK: AtomicU8 = AtomicU8::new(0);

/// Where the engine of these tests keeps its data; another directory lets two runs go side by side.
fn directory() -> PathBuf {
    let usual = || xtask::workspace::root().join("target/test-engine");
    std::env::var_os("WHARF_TEST_ENGINE_DIR").map_or_else(usual, PathBuf::from)
}

impl Context {
    /// Nothing if this machine's user may not start one.
    pub fn start() -> Result<Option<Self>> {
        if !xtask::process::is_root() {
            return Ok(None);
        }
        xtask::packages::ensure(&[
            xtask::packages::Need {
                program: "ssh",
                package: "openssh-client",
                why: "the tests log in with it",
            },
            xtask::packages::Need {
                program: "sshpass",
                package: "sshpass",
                why: "the tests log in with passwords",
            },
        ])?;
        Self::at(directory()).map(Some)
    }

    /// A second engine, for a test that ends and restarts it.
    pub fn another(name: &str) -> Result<Self> {
        let mut path = directory().into_os_string();
        path.push(format!("-{name}"));
        Self::at(path.into())
    }

    fn at(dir: PathBuf) -> Result<Self> {
        let engine = PrivateDockerd::start(Options {
            dir,
            disk_gib: 40,
            disposable: true,
        })?;
        xtask::images::ensure(&engine.client(), &["base"])?;
        Ok(Self { engine })
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
        Server::start(&settings(socket, Ports::take(), "")?)
    }

    /// The settings of a server with this engine as its only node, and some more.
    pub fn settings(&self, ports: Ports, more: &str) -> Result<String> {
        settings(&self.socket()?, ports, more)
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
        let list = self
            .client()
            .get(&format!("/containers/json?all=true&filters={filter}"))?;
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

fn settings(socket: &Path, ports: Ports, more: &str) -> Result<String> {
    let n = 100 + NEXT_NETWORK.fetch_add(1, Ordering::Relaxed) % 100;
    let socket = socket.to_str().context("socket path")?;
    let node = docker_node("real", socket, &format!("10.{n}.0.0/16"));
    Ok(format!("{more}{}{node}", ports.settings()))
}

fn names(list: &Value, key: &str) -> Vec<String> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item[key].as_str().map(str::to_owned))
        .collect()
}
