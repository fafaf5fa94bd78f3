//! A container with the settings that Wharf uses, removed when dropped.

use crate::ssh::KeyPair;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::time::Duration;
use wharf_testkit::http::{Body, Client, Request};
use wharf_testkit::process::output;

pub const USER: &str = "wharf";
pub const PASSWORD: &str = "correct horse";

pub struct Container {
    client: Client,
    pub name: String,
    pub address: String,
    pub port: u16,
}

/// A network called `whfxtask<n>`, 10.83.n.0/24, removed when dropped.
pub struct Network {
    client: Client,
    number: u8,
}

impl Network {
    pub fn make(client: &Client, number: u8) -> Result<Self> {
        let body = json!({
            "Name": format!("wharf-t{number}"),
            "Driver": "bridge",
            "IPAM": {"Config": [{
                "Subnet": format!("10.83.{number}.0/24"), "Gateway": format!("10.83.{number}.1"),
            }]},
            "Options": {"com.docker.network.bridge.name": format!("whfxtask{number}")},
        });
        client
            .send(Request::new("POST", "/networks/create").json(body))?
            .ok()?;
        Ok(Self {
            client: client.clone(),
            number,
        })
    }

    pub fn gateway(&self) -> String {
        format!("10.83.{}.1", self.number)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let path = format!("/networks/wharf-t{}", self.number);
        let _ = self.client.send(Request::new("DELETE", &path));
    }
}

impl Container {
    /// Creates a container with its first-start files, without starting it.
    pub fn create(network: &Network, host: u8, key: &KeyPair, size: Option<&str>) -> Result<Self> {
        let client = network.client.clone();
        let address = format!("10.83.{}.{host}", network.number);
        let name = format!("wharf-test-{}-{host}", network.number);
        let port = 29_900 + u16::from(network.number) * 10 + u16::from(host);
        let mut body = json!({
            "Image": "localhost/wharf/base:1",
            "Hostname": "test",
            "ExposedPorts": {"22/tcp": {}},
            "HostConfig": {
                "CpuPeriod": 100_000, "CpuQuota": 100_000,
                "Memory": 512 << 20, "MemorySwap": 512 << 20, "PidsLimit": 512,
                "CapDrop": ["NET_RAW"],
                "NetworkMode": format!("wharf-t{}", network.number),
                "PortBindings": {"22/tcp": [{"HostIp": "127.0.0.1", "HostPort": port.to_string()}]},
            },
            "NetworkingConfig": {"EndpointsConfig": {
                format!("wharf-t{}", network.number): {"IPAMConfig": {"IPv4Address": address}},
            }},
        });
        if let (Some(size), Some(config)) = (size, body.get_mut("HostConfig")) {
            config["StorageOpt"] = json!({"size": size});
        }
        let path = format!("/containers/create?name={name}");
        client.send(Request::new("POST", &path).json(body))?.ok()?;
        let container = Self {
            client,
            name,
            address,
            port,
        };
        container.inject(key)?;
        Ok(container)
    }

    /// Creates and starts a container, and waits for SSH.
    pub fn run(network: &Network, host: u8, key: &KeyPair) -> Result<Self> {
        let container = Self::create(network, host, key, None)?;
        container.start()?;
        Ok(container)
    }

    fn inject(&self, key: &KeyPair) -> Result<()> {
        let directory = key.directory.join("first-boot");
        let below = directory.join("etc/wharf/first-boot");
        std::fs::create_dir_all(&below)?;
        let hash = output(std::process::Command::new("openssl").args(["passwd", "-6", PASSWORD]))?;
        std::fs::write(below.join("user"), USER)?;
        std::fs::write(below.join("password"), hash.trim())?;
        std::fs::write(below.join("authorized_keys"), &key.public)?;
        let tar = std::process::Command::new("tar")
            .args([
                "--create",
                "--owner=0",
                "--group=0",
                "--mode=go-rwx,u+rwX",
                "--directory",
            ])
            .arg(&directory)
            .arg("etc/wharf")
            .output()?;
        let path = format!("/containers/{}/archive?path=/", self.name);
        self.client
            .send(Request::new("PUT", &path).body(Body::Tar(tar.stdout)))?
            .ok()?;
        Ok(())
    }

    pub fn start(&self) -> Result<()> {
        self.post("start")?;
        crate::ssh::wait_for_banner(self.port)
    }

    pub fn post(&self, action: &str) -> Result<()> {
        let path = format!("/containers/{}/{action}", self.name);
        let request = Request::new("POST", &path).timeout(Duration::from_secs(30));
        self.client.send(request)?.ok().map(drop)
    }

    fn state(&self) -> Result<Value> {
        let value = self
            .client
            .get(&format!("/containers/{}/json", self.name))?;
        value.get("State").cloned().context("no State")
    }

    /// The id of its first process on the node.
    pub fn pid(&self) -> Result<u64> {
        self.state()?
            .get("Pid")
            .and_then(Value::as_u64)
            .context("no Pid")
    }

    pub fn wait_for_end(&self) -> Result<()> {
        let ended = || {
            self.state()
                .is_ok_and(|state| state.get("Status") == Some(&json!("exited")))
        };
        ensure!(
            wharf_testkit::process::wait_until(Duration::from_secs(10), ended),
            "it still runs"
        );
        Ok(())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let path = format!("/containers/{}?force=true&v=true", self.name);
        let _ = self.client.send(Request::new("DELETE", &path));
    }
}
