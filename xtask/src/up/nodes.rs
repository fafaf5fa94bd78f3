//! The engines that instances run on: a dockerd of our own, those of the user, or a simulated one.

use super::{machine, sockets, traces};
use crate::engine::{self, NodeRules, PrivateEngine};
use crate::http::{Client, Endpoint};
use crate::process::{find, is_root};
use crate::signals::Signals;
use crate::{images, say};
use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::path::Path;

/// What the configuration says about a node.
pub(super) struct Node {
    pub name: String,
    pub driver: &'static str,
    pub endpoint: String,
    pub disk_gib: u64,
    pub lan_cidr: String,
    /// For virtual machines.
    pub public_ipv4: Option<String>,
}

/// What was asked for.
pub(super) struct Wanted<'a> {
    /// Engines of the user's; none: one of our own.
    pub engines: &'a [String],
    pub vms: bool,
    pub check: bool,
}

impl Wanted<'_> {
    fn images(&self) -> &'static [&'static str] {
        if self.vms {
            &["base", "vm-base"]
        } else {
            &["base"]
        }
    }
}

/// The engines in use, and what was started or installed for them.
pub(super) struct Nodes {
    list: Vec<Node>,
    private: Option<PrivateEngine>,
    rules: Vec<NodeRules>,
}

impl Nodes {
    /// Finds or starts them, with the images in them.
    pub fn start(wanted: &Wanted<'_>, dir: &Path, signals: &Signals) -> Result<Self> {
        if !wanted.engines.is_empty() {
            return Self::given(wanted.engines, dir, wanted);
        }
        if is_root() && cfg!(target_os = "linux") {
            return Self::private(dir, wanted, signals);
        }
        if let Some(endpoint) = sockets::find() {
            say::step(&format!(
                "Not root; found an engine of yours at {endpoint}."
            ));
            return Self::given(&[endpoint.to_string()], dir, wanted);
        }
        say::step("Not root, no --engine, and none found: instances will be SIMULATED.");
        say::note(
            "The interface is the real one, but there is nothing to log in to. For real instances \
             run it as root,\nor start an engine of your own (systemctl --user start podman.socket), \
             or name one:\n--engine unix:///var/run/docker.sock",
        );
        Ok(Self {
            list: vec![simulated(dir)?],
            private: None,
            rules: Vec::new(),
        })
    }

    fn private(dir: &Path, wanted: &Wanted<'_>, signals: &Signals) -> Result<Self> {
        let options = engine_options(dir, wanted.check)?;
        engine::install(options.kind)?;
        let lan_cidr = network(dir)?;
        let public_ipv4 = wanted.vms.then(|| public_network(&lan_cidr));
        let disk = options.disk_gib;
        let private = say::timed("Starting a private dockerd", || {
            PrivateEngine::start(options)
        })?;
        say::note(&format!("It listens on {}.", private.endpoint()));
        if private.enforces_disk_size() {
            say::note(&format!(
                "Its storage is btrfs in a sparse file of {disk} GiB."
            ));
        }
        signals.check()?;
        images::ensure(&private.client(), wanted.images())?;
        let node = Node {
            name: "local".to_owned(),
            driver: "docker",
            endpoint: private.endpoint().to_string(),
            disk_gib: disk.saturating_sub(machine::IMAGES_GIB),
            lan_cidr,
            public_ipv4,
        };
        Ok(Self {
            list: vec![node],
            private: Some(private),
            rules: Vec::new(),
        })
    }

    fn given(endpoints: &[String], dir: &Path, wanted: &Wanted<'_>) -> Result<Self> {
        let mut subnets = Vec::new();
        for endpoint in endpoints {
            let client = Client::new(Endpoint::parse(endpoint)?);
            subnets.extend(traces::subnets(&client).context("this engine does not answer")?);
        }
        let networks = machine::free_networks(endpoints.len(), &subnets);
        let mut nodes = Self {
            list: Vec::new(),
            private: None,
            rules: Vec::new(),
        };
        for (number, (endpoint, lan_cidr)) in endpoints.iter().zip(networks).enumerate() {
            let client = Client::new(Endpoint::parse(endpoint)?);
            let version = client
                .get("/version")
                .context("this engine does not answer")?;
            let version = version
                .get("Version")
                .and_then(|text| text.as_str())
                .unwrap_or("?");
            say::step(&format!(
                "Using the engine at {endpoint} (version {version})"
            ));
            nodes.guard(endpoint)?;
            images::ensure(&client, wanted.images())?;
            nodes.list.push(Node {
                name: format!("node{}", number + 1),
                driver: "docker",
                endpoint: endpoint.clone(),
                disk_gib: machine::disk_gib(dir)?,
                public_ipv4: wanted.vms.then(|| public_network(&lan_cidr)),
                lan_cidr,
            });
        }
        Ok(nodes)
    }

    /// The node's rules for an engine that we did not start, where we may set them.
    fn guard(&mut self, endpoint: &str) -> Result<()> {
        if !is_root() || find("nft").is_none() {
            say::note(
                "The node's rules are NOT set (that needs root and nftables): instances may reach \
                 services of this machine.\nThe README lists them.",
            );
            return Ok(());
        }
        let hash = Sha256::digest(endpoint.as_bytes());
        let id: String = hash
            .iter()
            .take(4)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        self.rules.push(NodeRules::for_engine_of_the_machine(&id)?);
        Ok(())
    }

    /// For the configuration.
    pub fn list(&self) -> &[Node] {
        &self.list
    }

    /// Whether there is something to log in to.
    pub fn are_real(&self) -> bool {
        self.list.iter().all(|node| node.driver != "simulated")
    }

    /// Takes down what was started and the rules that were set.
    pub fn stop(mut self) -> Result<()> {
        self.remove_rules();
        self.private.take().map_or(Ok(()), PrivateEngine::stop)
    }

    fn remove_rules(&mut self) {
        for rules in self.rules.drain(..) {
            if let Err(error) = rules.remove() {
                say::note(&format!("The node's rules are still there: {error:#}"));
            }
        }
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.remove_rules();
    }
}

/// The private engine below `dir`.
pub(super) fn engine_options(dir: &Path, disposable: bool) -> Result<engine::Options> {
    let engine = dir.join("engine");
    let disk_gib = match engine::disk_gib(&engine) {
        Some(gib) => gib,
        None => machine::disk_gib(dir.ancestors().find(|dir| dir.exists()).unwrap_or(dir))?,
    };
    Ok(engine::Options {
        kind: engine::Kind::Dockerd,
        dir: engine,
        disk_gib,
        disposable,
    })
}

fn simulated(dir: &Path) -> Result<Node> {
    Ok(Node {
        name: "simulated".to_owned(),
        driver: "simulated",
        endpoint: "simulated:".to_owned(),
        disk_gib: machine::disk_gib(dir)?,
        lan_cidr: "10.80.0.0/16".to_owned(),
        public_ipv4: Some(public_network("10.80.0.0/16")),
    })
}

/// That of the earlier run, whose instances have addresses in it; else one that is free.
fn network(dir: &Path) -> Result<String> {
    let earlier = std::fs::read_to_string(dir.join("wharf.toml")).unwrap_or_default();
    let line = earlier
        .lines()
        .find_map(|line| line.strip_prefix("lan_cidr = "));
    if let Some(network) = line {
        return Ok(network.trim_matches('"').to_owned());
    }
    let network = machine::free_networks(1, &[]).into_iter().next();
    network.context("the machine has routes to all of 10.80.0.0 to 10.127.255.255")
}

/// Addresses that stand for public ones, of the range that is set apart for measuring networks; as
/// free as the private ones (10.N.0.0/16) that they go with.
fn public_network(lan_cidr: &str) -> String {
    let n = lan_cidr.split('.').nth(1).unwrap_or("80");
    format!("198.18.{n}.0/26")
}
