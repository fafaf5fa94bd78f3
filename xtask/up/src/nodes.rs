//! The nodes of a run: engines are started or found, and get images and the node's rules.

use super::account::wharf;
use super::config::{self, Earlier, HOST, Tls, docker_settings};
use super::engines::Engines;
use super::existing::{self, Existing};
use super::footprint::Footprint;
use super::incus;
use super::machine::{self, Networks, Room};
use super::sockets;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::mem::take;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wharf_testkit::engine::{self, NodeRules, PrivateEngine, Running, short_hash};
use wharf_testkit::http::{Endpoint, HttpClient};
use wharf_testkit::incus::Project;
use wharf_testkit::process::{Shield, find, is_root};
use wharf_testkit::signals::Signals;
use wharf_testkit::{images, progress};

/// The time in which an engine may finish what it was creating when Wharf ended.
const CREATION_LIMIT: Duration = Duration::from_secs(5);
/// The interval between questions to engines of the user.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// The file with the name of the installation in engines.
const INSTALLATION: &str = "installation";

/// A node in the configuration.
pub(super) struct Node {
    pub name: String,
    pub driver: &'static str,
    pub endpoint: String,
    pub room: Room,
    pub lan_cidr: String,
    /// The addresses of virtual machines.
    pub public_ipv4: Option<String>,
    /// The content of the table for the driver.
    pub settings: String,
    pub tls: Option<Tls>,
    /// The host of logins and pages.
    pub host: Ipv4Addr,
}

/// Requirements on the nodes.
pub(super) struct Requirements {
    pub vms: bool,
    pub check: bool,
    pub allowed: engine::Allowed,
}

impl Requirements {
    fn images(&self, is_podman: bool) -> &'static [&'static str] {
        if self.vms && !is_podman {
            &["base", "vm-base"]
        } else {
            &["base"]
        }
    }
}

/// The nodes, and everything that was started or installed for them.
pub(super) struct Nodes {
    list: Vec<Node>,
    /// The engine that this run has started; else the engines are the user's, and go on running at the end.
    private: Option<Box<dyn Running>>,
    /// The sockets of the engines with Docker's API.
    endpoints: Vec<Endpoint>,
    /// The project of a private Incus, and a client that may list its instances.
    project: Option<(Project, HttpClient)>,
    rules: Vec<NodeRules>,
    /// The private networks of instances, reserved for this run.
    networks: Option<Networks>,
    dir: PathBuf,
    check: bool,
    /// The time of the last question to the engines of the user, and those that did not respond.
    asked: Instant,
    silent: Vec<Endpoint>,
}

impl Nodes {
    /// Starts or finds the engines, and makes their images.
    pub fn start(
        engines: &Engines,
        requirements: &Requirements,
        dir: &Path,
        signals: &Signals,
    ) -> Result<Self> {
        let mut nodes = Self {
            list: Vec::new(),
            private: None,
            endpoints: Vec::new(),
            project: None,
            rules: Vec::new(),
            networks: None,
            dir: dir.to_owned(),
            check: requirements.check,
            asked: Instant::now(),
            silent: Vec::new(),
        };
        match engines {
            Engines::Private => nodes.start_private(requirements, signals)?,
            Engines::Incus => nodes.start_incus(requirements, signals)?,
            Engines::Existing(endpoints) => nodes.use_existing(endpoints, requirements, signals)?,
            Engines::Simulated => {
                let network = "10.80.0.0/16";
                nodes.list.push(Node {
                    name: "simulated".to_owned(),
                    driver: "simulated",
                    // A file, so that the next run finds the instances.
                    endpoint: format!("simulated://{}", dir.join("engine.journal").display()),
                    room: Room::of_machine(machine::disk_gib(dir)?),
                    lan_cidr: network.to_owned(),
                    public_ipv4: Some(public_network(network)),
                    settings: String::new(),
                    tls: None,
                    host: HOST,
                });
            }
        }
        Ok(nodes)
    }

    fn start_private(&mut self, requirements: &Requirements, signals: &Signals) -> Result<()> {
        const NAME: &str = "local";
        let disk = disk_gib(&self.dir)?;
        let options = options(&self.dir, disk, requirements.check, &requirements.allowed);
        engine::install(options.kind)?;
        engine::end_abandoned(Some(&options.dir));
        let earlier = Earlier::read(&self.dir);
        let private = progress::timed("Starting a private dockerd", || {
            PrivateEngine::start(options)
        })?;
        progress::note(&format!("The engine listens on {}.", private.endpoint()));
        if private.enforces_disk_size() {
            progress::note(&format!(
                "Its storage is btrfs in a sparse file of {disk} GiB."
            ));
        }
        self.endpoints = vec![private.endpoint()];
        let (client, endpoint) = (private.client(), private.endpoint().to_string());
        let settings = private.settings() + &docker_settings(&requirements.allowed);
        self.private = Some(Box::new(private));
        // All networks of a private engine are the installation's own.
        let (_, own) = existing::subnets(&client.get("/networks")?, "");
        let own: Vec<_> = own.into_iter().map(|network| network.subnet).collect();
        let networks = Networks::read(&own, &[], &self.dir.join(config::DATA));
        let lan_cidr = self
            .networks
            .insert(networks)
            .for_node(&earlier, NAME, &self.dir)?;
        signals.check()?;
        images::ensure(&client, requirements.images(false))?;
        self.list.push(Node {
            name: NAME.to_owned(),
            driver: "docker",
            endpoint,
            room: Room::of_machine(disk.saturating_sub(machine::IMAGES_GIB)),
            public_ipv4: public_ipv4(&earlier, NAME, &lan_cidr, requirements),
            lan_cidr,
            settings,
            tls: None,
            host: HOST,
        });
        Ok(())
    }

    fn start_incus(&mut self, requirements: &Requirements, signals: &Signals) -> Result<()> {
        engine::end_abandoned(None);
        let (cluster, project, node) = incus::start(&self.dir, disk_gib(&self.dir)?, requirements)?;
        let admin = cluster.first()?.admin();
        self.private = Some(Box::new(cluster));
        signals.check()?;
        images::ensure_on_incus(&admin, &project.name, requirements.images(false), None)?;
        self.project = Some((project, admin));
        self.list.push(node);
        Ok(())
    }

    fn use_existing(
        &mut self,
        endpoints: &[Endpoint],
        requirements: &Requirements,
        signals: &Signals,
    ) -> Result<()> {
        let installation = fs::read_to_string(self.dir.join(INSTALLATION)).unwrap_or_default();
        let engines = endpoints
            .iter()
            .map(|at| Existing::ask(at, &installation, &self.dir));
        let engines: Vec<_> = engines.collect::<Result<_>>()?;
        if requirements.vms && engines.iter().all(|engine| engine.is_podman) {
            bail!("--vms needs a dockerd: virtual machines are untested on Podman");
        }
        self.endpoints = endpoints.to_vec();
        let own: Vec<_> = engines
            .iter()
            .flat_map(|engine| engine.own.clone())
            .collect();
        let others: Vec<_> = engines
            .iter()
            .flat_map(|engine| engine.others.clone())
            .collect();
        self.networks = Some(Networks::read(&own, &others, &self.dir.join(config::DATA)));
        let earlier = Earlier::read(&self.dir);
        for (number, (endpoint, engine)) in endpoints.iter().zip(&engines).enumerate() {
            let name = format!("node{}", number + 1);
            let networks = self.networks.as_mut().context("networks")?;
            let lan_cidr = networks.for_node(&earlier, &name, &self.dir)?;
            progress::step(&format!(
                "Using the engine at {endpoint} (version {})",
                engine.version
            ));
            self.guard(endpoint, engine.is_podman, &requirements.allowed)?;
            images::ensure(&engine.client, requirements.images(engine.is_podman))?;
            signals.check()?;
            self.list.push(Node {
                driver: "docker",
                endpoint: endpoint.to_string(),
                // The engines may share one machine.
                room: engine.room.share(endpoints.len() as u64),
                public_ipv4: public_ipv4(&earlier, &name, &lan_cidr, requirements),
                lan_cidr,
                name,
                settings: docker_settings(&requirements.allowed),
                tls: None,
                host: HOST,
            });
        }
        Ok(())
    }

    /// Sets the node's rules for an existing engine, where this user may.
    fn guard(
        &mut self,
        endpoint: &Endpoint,
        is_podman: bool,
        allowed: &engine::Allowed,
    ) -> Result<()> {
        if !is_root() || find("nft").is_none() {
            progress::note(
                "The node's rules are NOT set (that needs root and nftables): instances may reach \
                 services of this machine.\nThe documentation lists the rules.",
            );
            return Ok(());
        }
        // The id of this run: another run on the same engine has its own rules.
        let id = short_hash(format!("{} {endpoint}", self.dir.display()).as_bytes());
        let rules = NodeRules::for_engine_of_the_machine(&id, is_podman, allowed)?;
        self.rules.push(rules);
        Ok(())
    }

    /// The nodes, for the configuration.
    pub fn list(&self) -> &[Node] {
        &self.list
    }

    /// The host of logins and pages.
    pub fn host(&self) -> Ipv4Addr {
        self.list.first().map_or(HOST, |node| node.host)
    }

    /// The footprint of an installation in the engines.
    pub fn footprint(&self, installation: &str) -> Footprint {
        match &self.project {
            Some((project, client)) => Footprint::in_incus(project.clone(), client.clone()),
            None => Footprint::of(&self.endpoints, installation),
        }
    }

    /// Whether instances can be logged in to.
    pub fn are_real(&self) -> bool {
        self.list.iter().all(|node| node.driver != "simulated")
    }

    /// Records the name of the installation, for the removal after a run that fails early.
    pub fn belong_to(&self, installation: &str) -> Result<()> {
        match self.private {
            Some(_) => Ok(()),
            None => Ok(fs::write(self.dir.join(INSTALLATION), installation)?),
        }
    }

    /// Starts the private engine again if it has ended. Tells of an engine of the user that does not
    /// respond, and of its return.
    pub fn watch(&mut self) {
        if let Some(private) = &mut self.private {
            if let Some(status) = private.ended() {
                progress::step(&format!(
                    "The engine has ended ({status}). Starting it again"
                ));
                match private.revive() {
                    Ok(()) => progress::note("It runs again; its instances went on."),
                    Err(error) => progress::note(&format!("It does not start: {error:#}")),
                }
            }
            return;
        }
        if self.asked.elapsed() < ASK_EVERY {
            return;
        }
        self.asked = Instant::now();
        for endpoint in &self.endpoints {
            let is_silent = !sockets::responds(endpoint);
            let was_silent = self.silent.contains(endpoint);
            if is_silent && !was_silent {
                self.silent.push(endpoint.clone());
                progress::step(&format!(
                    "The engine at {endpoint} does not respond. Start it again: its instances wait for it."
                ));
            } else if was_silent && !is_silent {
                self.silent.retain(|silent| silent != endpoint);
                progress::step(&format!("The engine at {endpoint} responds again."));
            }
        }
    }

    /// Stops the private engine or the instances, and removes the rules. Wharf must have ended.
    pub fn stop(mut self) -> Result<()> {
        self.end(Duration::ZERO)
    }

    /// Stops the installation's containers in engines of the user; a check removes them.
    fn leave(&self, deadline: Duration) -> Result<()> {
        let installation = fs::read_to_string(self.dir.join(INSTALLATION)).unwrap_or_default();
        if self.endpoints.is_empty() || installation.is_empty() {
            return Ok(());
        }
        let footprint = Footprint::of(&self.endpoints, &installation);
        if self.check {
            return footprint.remove(deadline);
        }
        progress::step("Stopping the instances");
        footprint.stop()
    }

    fn end(&mut self, deadline: Duration) -> Result<()> {
        let _shield = Shield::raise();
        if let Some(private) = self.private.take() {
            self.endpoints.clear();
            return private.stop();
        }
        let left = self.leave(deadline);
        self.endpoints.clear();
        left.context("instances may still run, so the node's rules stay")?;
        take(&mut self.rules).iter().try_for_each(NodeRules::remove)
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        if let Err(error) = self.end(CREATION_LIMIT) {
            progress::note(&format!("Not everything is removed: {error:#}"));
        }
    }
}

/// The private engine below `dir`, whose data stays.
pub(super) fn engine_options(dir: &Path) -> Result<engine::DockerOptions> {
    let allowed = engine::Allowed::new(&[])?;
    Ok(options(dir, disk_gib(dir)?, false, &allowed))
}

fn options(
    dir: &Path,
    disk_gib: u64,
    disposable: bool,
    allowed: &engine::Allowed,
) -> engine::DockerOptions {
    engine::DockerOptions {
        kind: engine::Kind::Dockerd,
        dir: dir.join("engine"),
        disk_gib: Some(disk_gib),
        disposable,
        allowed: allowed.clone(),
        tls: None,
    }
}

/// The size of the private engine's storage.
fn disk_gib(dir: &Path) -> Result<u64> {
    match engine::disk_gib(&dir.join("engine")) {
        Some(gib) => Ok(gib),
        None => machine::disk_gib(dir.ancestors().find(|dir| dir.exists()).unwrap_or(dir)),
    }
}

impl Networks {
    /// The network of an earlier run, if it is free or has instances; else a new one.
    fn for_node(&mut self, earlier: &Earlier, node: &str, dir: &Path) -> Result<String> {
        let Some(network) = earlier.lan_cidr(node) else {
            return self.pick();
        };
        let owner = self.owner(&network).map(|found| found.owner.clone());
        match owner {
            None => {}
            Some(owner) if has_instances(dir, node) => progress::note(&format!(
                "The private network {network} of instances overlaps with {owner}. It stays, because \
                 instances have its addresses; they may be out of reach."
            )),
            Some(owner) => {
                let other = self.pick()?;
                progress::note(&format!(
                    "The private network of instances is {other}: {network} overlaps with {owner}."
                ));
                return Ok(other);
            }
        }
        self.reserve(&network)?;
        Ok(network)
    }
}

/// Whether an earlier run has instances on a node.
fn has_instances(dir: &Path, node: &str) -> bool {
    let nodes = wharf(&["node", "list", "-o", "json"], &dir.join(config::FILE));
    is_used(&nodes.unwrap_or_default(), node)
}

/// Whether a node has instances, by the JSON of `wharf node list`.
fn is_used(nodes: &str, name: &str) -> bool {
    let nodes: Vec<Value> = serde_json::from_str(nodes).unwrap_or_default();
    let is = |node: &Value, field, value: Value| node.get(field) == Some(&value);
    let mut named = nodes.iter().filter(|node| is(node, "name", name.into()));
    named.any(|node| !is(node, "instances", 0.into()))
}

/// The addresses of an earlier run, which its virtual machines have; else new ones where required.
fn public_ipv4(
    earlier: &Earlier,
    node: &str,
    lan_cidr: &str,
    requirements: &Requirements,
) -> Option<String> {
    let earlier = earlier.public_ipv4(node);
    earlier.or_else(|| requirements.vms.then(|| public_network(lan_cidr)))
}

/// Addresses in place of public ones, from the range for benchmarks of networks (RFC 2544). They are
/// free if the private network 10.N.0.0/16 is.
fn public_network(lan_cidr: &str) -> String {
    let n = lan_cidr.split('.').nth(1).unwrap_or("80");
    format!("198.18.{n}.0/26")
}

#[cfg(test)]
mod tests {
    use super::is_used;

    #[test]
    fn a_node_with_instances_is_found_in_the_list() {
        let list =
            r#"[{ "name": "docker", "instances": 3 }, { "name": "podman", "instances": 0 }]"#;
        assert!(is_used(list, "docker") && !is_used(list, "podman"));
    }
}
