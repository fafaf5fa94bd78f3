//! The engine that all tests of this binary share.

use anyhow::{Context as _, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use wharf_tests::{Ports, Server, docker_node};
use xtask::engine::{Options, PrivateDockerd};
use xtask::http::{Client, Endpoint};

/// A private dockerd with the base image.
pub struct Context {
    engine: PrivateDockerd,
    next_network: AtomicU8,
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
        let engine = PrivateDockerd::start(Options {
            dir: xtask::workspace::root().join("target/test-engine"),
            disk_gib: 40,
            disposable: true,
        })?;
        xtask::images::ensure(&engine.client(), &["base"])?;
        Ok(Some(Self {
            engine,
            next_network: AtomicU8::new(0),
        }))
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
        // Servers side by side on one engine need networks that do not overlap.
        let n = 100 + self.next_network.fetch_add(1, Ordering::Relaxed);
        let socket = socket.to_str().context("socket path")?;
        let settings = format!(
            "{}{}",
            Ports::take().settings(),
            docker_node("real", socket, &format!("10.{n}.0.0/16"))
        );
        Server::start(&settings)
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

fn names(list: &Value, key: &str) -> Vec<String> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item[key].as_str().map(str::to_owned))
        .collect()
}
