//! The engines that instances run on, ready for them: started where they are our own, with the images
//! in them and the node's rules around them.

use super::choice::Choice;
use super::config::Earlier;
use super::given::Given;
use super::machine::{self, Room};
use super::traces::Traces;
use crate::engine::{self, NodeRules, PrivateEngine, short_hash};
use crate::http::Endpoint;
use crate::process::{find, is_root};
use crate::signals::Signals;
use crate::{images, say};
use anyhow::{Context, Result, bail};
use std::fs;
use std::mem::take;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// For what an engine was making when Wharf ended.
const MAKING: Duration = Duration::from_secs(5);
/// In the node's directory: what its installation is called in engines.
const INSTALLATION: &str = "installation";

/// What the configuration says about a node.
pub(super) struct Node {
    pub name: String,
    pub driver: &'static str,
    pub endpoint: String,
    pub room: Room,
    pub lan_cidr: String,
    /// For virtual machines.
    pub public_ipv4: Option<String>,
}

/// How they are to be.
pub(super) struct Wanted {
    pub vms: bool,
    pub check: bool,
}

impl Wanted {
    fn images(&self, is_podman: bool) -> &'static [&'static str] {
        if self.vms && !is_podman {
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
    /// Engines of the user's, which go on when we end.
    given: Vec<Endpoint>,
    rules: Vec<NodeRules>,
    dir: PathBuf,
    check: bool,
}

impl Nodes {
    /// Finds or starts them, with the images in them.
    pub fn start(choice: &Choice, wanted: &Wanted, dir: &Path, signals: &Signals) -> Result<Self> {
        let mut nodes = Self {
            list: Vec::new(),
            private: None,
            given: Vec::new(),
            rules: Vec::new(),
            dir: dir.to_owned(),
            check: wanted.check,
        };
        match choice {
            Choice::Private => nodes.start_private(wanted, signals)?,
            Choice::Given(endpoints) => nodes.take(endpoints, wanted, signals)?,
            Choice::Simulated => {
                let network = "10.80.0.0/16";
                nodes.list.push(Node {
                    name: "simulated".to_owned(),
                    driver: "simulated",
                    // In a file, so that the next run finds its instances again.
                    endpoint: format!("simulated://{}", dir.join("engine.journal").display()),
                    room: Room::of_machine(machine::disk_gib(dir)?),
                    lan_cidr: network.to_owned(),
                    public_ipv4: Some(public_network(network)),
                });
            }
        }
        Ok(nodes)
    }

    fn start_private(&mut self, wanted: &Wanted, signals: &Signals) -> Result<()> {
        const NAME: &str = "local";
        let disk = disk_gib(&self.dir)?;
        let options = options(&self.dir, disk, wanted.check);
        engine::install(options.kind)?;
        let earlier = Earlier::read(&self.dir);
        let mut free = machine::free_networks(1, &[]).into_iter();
        let lan_cidr = earlier.lan_cidr(NAME).or_else(|| free.next());
        let lan_cidr = lan_cidr.context(NO_NETWORK)?;
        let private = say::timed("Starting a private dockerd", || {
            PrivateEngine::start(options)
        })?;
        say::note(&format!("It listens on {}.", private.endpoint()));
        if private.enforces_disk_size() {
            say::note(&format!(
                "Its storage is btrfs in a sparse file of {disk} GiB."
            ));
        }
        let (client, endpoint) = (private.client(), private.endpoint().to_string());
        self.private = Some(private);
        signals.check()?;
        images::ensure(&client, wanted.images(false))?;
        self.list.push(Node {
            name: NAME.to_owned(),
            driver: "docker",
            endpoint,
            room: Room::of_machine(disk.saturating_sub(machine::IMAGES_GIB)),
            public_ipv4: public_ipv4(&earlier, NAME, &lan_cidr, wanted),
            lan_cidr,
        });
        Ok(())
    }

    fn take(&mut self, endpoints: &[Endpoint], wanted: &Wanted, signals: &Signals) -> Result<()> {
        let engines = endpoints.iter().map(|at| Given::ask(at, &self.dir));
        let engines: Vec<_> = engines.collect::<Result<_>>()?;
        if wanted.vms && engines.iter().all(|engine| engine.is_podman) {
            bail!("--vms needs a dockerd: virtual machines have not been tried on Podman");
        }
        self.given = endpoints.to_vec();
        let taken: Vec<_> = engines
            .iter()
            .flat_map(|engine| engine.subnets.iter().cloned())
            .collect();
        let mut free = machine::free_networks(endpoints.len(), &taken).into_iter();
        let earlier = Earlier::read(&self.dir);
        for (number, (endpoint, engine)) in endpoints.iter().zip(&engines).enumerate() {
            let name = format!("node{}", number + 1);
            let lan_cidr = earlier.lan_cidr(&name).or_else(|| free.next());
            let lan_cidr = lan_cidr.context(NO_NETWORK)?;
            say::step(&format!(
                "Using the engine at {endpoint} (version {})",
                engine.version
            ));
            self.guard(endpoint, engine.is_podman)?;
            images::ensure(&engine.client, wanted.images(engine.is_podman))?;
            signals.check()?;
            self.list.push(Node {
                driver: "docker",
                endpoint: endpoint.to_string(),
                // They may all be on one machine.
                room: engine.room.share(endpoints.len() as u64),
                public_ipv4: public_ipv4(&earlier, &name, &lan_cidr, wanted),
                lan_cidr,
                name,
            });
        }
        Ok(())
    }

    /// The node's rules for an engine that we did not start, where we may set them.
    fn guard(&mut self, endpoint: &Endpoint, is_podman: bool) -> Result<()> {
        if !is_root() || find("nft").is_none() {
            say::note(
                "The node's rules are NOT set (that needs root and nftables): instances may reach \
                 services of this machine.\nThe README lists them.",
            );
            return Ok(());
        }
        // Of this run: another one on the same engine takes back its own.
        let id = short_hash(format!("{} {endpoint}", self.dir.display()).as_bytes());
        self.rules
            .push(NodeRules::for_engine_of_the_machine(&id, is_podman)?);
        Ok(())
    }

    /// For the configuration.
    pub fn list(&self) -> &[Node] {
        &self.list
    }

    /// What is in the real ones of this installation.
    pub fn traces(&self, installation: &str) -> Traces {
        let private = self.private.as_ref().map(PrivateEngine::endpoint);
        let engines: Vec<_> = self.given.iter().cloned().chain(private).collect();
        Traces::of(&engines, installation)
    }

    /// Whether there is something to log in to.
    pub fn are_real(&self) -> bool {
        self.list.iter().all(|node| node.driver != "simulated")
    }

    /// What the installation is called whose instances are on them. Kept for a run that fails before
    /// it can ask.
    pub fn belong_to(&self, installation: &str) -> Result<()> {
        match self.given.is_empty() {
            true => Ok(()),
            false => Ok(fs::write(self.dir.join(INSTALLATION), installation)?),
        }
    }

    /// Once Wharf has ended: takes down what was started, stops the instances (a check has none any
    /// more), and takes back the rules.
    pub fn stop(mut self) -> Result<()> {
        self.end(Duration::ZERO)
    }

    /// Nothing of ours runs in engines of the user's from here on.
    fn leave(&self, given: &[Endpoint], patience: Duration) -> Result<()> {
        let installation = fs::read_to_string(self.dir.join(INSTALLATION)).unwrap_or_default();
        if given.is_empty() || installation.is_empty() {
            return Ok(());
        }
        let traces = Traces::of(given, &installation);
        if self.check {
            return traces.remove(patience);
        }
        say::step("Stopping the instances");
        traces.stop()
    }

    fn end(&mut self, patience: Duration) -> Result<()> {
        let (rules, given) = (take(&mut self.rules), take(&mut self.given));
        if let Some(private) = self.private.take() {
            return private.stop();
        }
        self.leave(&given, patience)
            .context("instances may still run, so the node's rules stay")?;
        rules.iter().try_for_each(NodeRules::remove)
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        if let Err(error) = self.end(MAKING) {
            say::note(&format!("Not everything is taken down: {error:#}"));
        }
    }
}

/// The private engine below `dir`, which stays.
pub(super) fn engine_options(dir: &Path) -> Result<engine::Options> {
    Ok(options(dir, disk_gib(dir)?, false))
}

fn options(dir: &Path, disk_gib: u64, disposable: bool) -> engine::Options {
    engine::Options {
        kind: engine::Kind::Dockerd,
        dir: dir.join("engine"),
        disk_gib: Some(disk_gib),
        disposable,
    }
}

/// The size of that engine's storage.
fn disk_gib(dir: &Path) -> Result<u64> {
    match engine::disk_gib(&dir.join("engine")) {
        Some(gib) => Ok(gib),
        None => machine::disk_gib(dir.ancestors().find(|dir| dir.exists()).unwrap_or(dir)),
    }
}

const NO_NETWORK: &str =
    "the machine has routes to, or its engines networks in, all of 10.80.0.0 to 10.127.255.255";

/// Those of the earlier run, which its virtual machines have; else new ones where they are wanted.
fn public_ipv4(earlier: &Earlier, node: &str, lan_cidr: &str, wanted: &Wanted) -> Option<String> {
    let earlier = earlier.public_ipv4(node);
    earlier.or_else(|| wanted.vms.then(|| public_network(lan_cidr)))
}

/// Addresses that stand for public ones, of the range that is set apart for measuring networks; as
/// free as the private ones (10.N.0.0/16) that they go with.
fn public_network(lan_cidr: &str) -> String {
    let n = lan_cidr.split('.').nth(1).unwrap_or("80");
    format!("198.18.{n}.0/26")
}
