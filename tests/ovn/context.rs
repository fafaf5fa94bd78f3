//! The cluster, and logins to its instances.

use super::lab::{self, PROJECT};
use crate::lab::{Act, Facts, Lab, Neighbours, Object, Once, patient, text, user, uuid};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use wharf_testkit::http::HttpClient;
use wharf_testkit::incus;
use wharf_tests::{Server, until};

/// Ports of one server; the lab has [`lab::N_PORTS`].
const N_PORTS: u16 = 6;
/// Servers of one test.
const SERVERS: u16 = 2;

/// The cluster, from the inside of the lab.
pub struct OvnContext {
    admin: HttpClient,
    next_port: AtomicU16,
    neighbours: Once<Neighbours>,
}

impl OvnContext {
    /// The cluster for a test of this number.
    pub fn new(test: u16) -> Result<Self> {
        let admin = lab::admin(1);
        incus::ask(&admin, "GET", "/1.0", None).context("the cluster does not answer")?;
        Ok(Self {
            admin,
            next_port: AtomicU16::new(test * SERVERS * N_PORTS),
            neighbours: Once::new(),
        })
    }

    /// Starts a server with these members as its nodes; members count from 1.
    pub fn server(&self, members: &[usize]) -> Result<Server> {
        Server::start(&self.settings_of(members))
    }

    /// The settings of such a server, with ports of its own.
    pub fn settings_of(&self, members: &[usize]) -> String {
        let number = self.next_port.fetch_add(N_PORTS, Ordering::Relaxed);
        let from = lab::FIRST_PORT + number;
        let web = from + N_PORTS - 2;
        assert!(
            number + N_PORTS <= lab::N_PORTS,
            "the lab has no ports left"
        );
        let ports = format!(
            "[ssh_ports]\nfrom = {from}\nto = {}\n[web]\nfrom = {web}\nto = {}\n",
            web - 1,
            web + 1
        );
        let nodes = members.iter().map(|member| node(*member));
        let more = patient("");
        format!("{more}{ports}{}", nodes.collect::<String>())
    }

    /// Sends a request with all rights, which must succeed, and waits for the end of its operation.
    pub fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value> {
        incus::ask(&self.admin, method, path, body)
    }

    /// The objects of a kind in the project.
    fn all(&self, kind: &str) -> Result<Vec<Value>> {
        let path = format!("/1.0/{kind}?project={PROJECT}&recursion=1");
        let all = self.ask("GET", &path, None)?;
        Ok(all.as_array().into_iter().flatten().cloned().collect())
    }

    /// The engine's objects of an instance, in its words.
    fn raw_objects(&self, instance: &Value) -> Result<Vec<Value>> {
        let mut all = self.all("instances")?;
        all.retain(|one| text(&one["name"]).contains(uuid(instance)));
        Ok(all)
    }

    /// The only one.
    pub fn raw_object(&self, instance: &Value) -> Result<Value> {
        let mut all = self.raw_objects(instance)?;
        ensure!(all.len() == 1, "{} objects: {all:?}", all.len());
        all.pop().context("no object")
    }

    /// The network of an instance.
    pub fn network(&self, instance: &Value) -> Result<String> {
        Ok(network_of(&self.raw_object(instance)?))
    }

    /// The forwards of a network; none without the network.
    pub fn forwards(&self, network: &str) -> Result<Vec<Value>> {
        let mut networks = self.all("networks")?;
        networks.retain(|one| one["name"] == network);
        if networks.is_empty() {
            Ok(Vec::new())
        } else {
            self.all(&format!("networks/{network}/forwards"))
        }
    }

    /// Waits until the engine has neither an instance nor a network of a server, whose objects have names
    /// that begin like this one.
    pub fn nothing_left(&self, like: &str) -> Result<()> {
        // `wh-` and the end of the installation's id.
        let prefix = like.get(..11).context("a short name")?;
        until(&format!("nothing is left of {prefix}"), || {
            let mut left = self.all("instances")?;
            left.extend(self.all("networks")?);
            let is_own = |one: &Value| text(&one["name"]).starts_with(prefix);
            Ok((!left.iter().any(is_own)).then_some(()))
        })
    }
}

fn node(member: usize) -> String {
    let file = |name: &str| lab::file(name).display().to_string();
    format!(
        "[[node]]\nname = \"m{member}\"\ndriver = \"incus\"\ncluster = \"rack\"\n\
         endpoint = \"https://{}:8443\"\nssh_host = \"{}\"\n\
         capacity = {{ n_vcpus = 16, mem_gib = 64, disk_size_gib = 500 }}\n\
         lan_cidr = \"10.80.0.0/16\"\nlan_subnet_prefix = 24\n\
         settings = {{ member = \"m{member}\", project = \"{PROJECT}\", uplink = \"{}\", acl = \"{}\", \
         publish_cidr = \"{}\", publish_from = {}, dns = \"9.9.9.9\" }}\n\
         tls = {{ cert = \"{}\", key = \"{}\", server_cert = \"{}\" }}\n",
        lab::address(member),
        lab::LOGIN_HOST,
        lab::UPLINK,
        lab::ACL,
        lab::PUBLISH_CIDR,
        lab::FIRST_PORT,
        file("wharf/client.crt"),
        file("wharf/client.key"),
        file("m1/incus/cluster.crt"),
    )
}

fn network_of(raw: &Value) -> String {
    text(&raw["devices"]["eth0"]["network"]).to_owned()
}

impl Lab for OvnContext {
    fn facts(&self) -> Facts {
        Facts {
            host: lab::LOGIN_HOST.to_owned(),
            has_owners_networks: true,
            ..crate::incus::context::FACTS.clone()
        }
    }

    fn settings(&self, _: &str) -> Result<String> {
        Ok(self.settings_of(&[1]))
    }

    fn objects(&self, instance: &Value) -> Result<Vec<Object>> {
        let all = self.raw_objects(instance)?;
        let object = |raw: &Value| Object {
            runs: raw["status"] == "Running",
            networks: vec![network_of(raw)],
            place: text(&raw["location"]).to_owned(),
        };
        Ok(all.iter().map(object).collect())
    }

    fn by_hand(&self, _: &Value, act: Act) -> Result<()> {
        bail!("no test does {act:?} by hand here")
    }

    fn networks(&self) -> Result<Vec<String>> {
        let all = self.all("networks")?;
        Ok(all
            .iter()
            .map(|one| text(&one["name"]).to_owned())
            .collect())
    }

    fn neighbours(&self) -> &Once<Neighbours> {
        &self.neighbours
    }

    fn has_size(&self, instance: &Value, size: (u32, u32)) -> Result<()> {
        crate::incus::context::is_configured(&self.raw_object(instance)?["config"], size)
    }

    fn login(&self, instance: &Value, command: &str) -> Result<String> {
        login(instance, command)
    }

    /// Its port is forwarded.
    fn is_whole(&self, instance: &Value) -> Result<()> {
        let forwards = self.forwards(&self.network(instance)?)?;
        ensure!(forwards.len() == 1, "{forwards:?}");
        Ok(())
    }
}

/// Runs a command in an instance, as its user. A crash of the userspace conntrack may break a connection, so
/// only the command's own failure counts.
pub fn login(instance: &Value, command: &str) -> Result<String> {
    const BROKEN: i32 = 255;
    until("a login", || {
        let output = user(instance).run(instance, command)?;
        if output.status.code() == Some(BROKEN) {
            return Ok(None);
        }
        ensure!(
            output.status.success(),
            "`{command}`: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(Some(
            String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        ))
    })
}

/// The address of a user behind the router, as their instance sees it at a login.
pub fn seen_from_visitor(instance: &Value) -> Result<String> {
    let port = instance["wan_ssh_port"].to_string();
    let login = text(&instance["ssh_command"]).split_whitespace().last();
    until("a login of the visitor", || {
        let output = Command::new("ip")
            .args(["netns", "exec", lab::VISITOR, "sshpass", "-e", "ssh"])
            .args([
                "-o",
                "StrictHostKeyChecking=no",
                "-o",
                "UserKnownHostsFile=/dev/null",
            ])
            .args(["-o", "LogLevel=ERROR", "-o", "ConnectTimeout=5"])
            .args(["-p", &port, login.unwrap_or_default()])
            .arg("echo $SSH_CONNECTION")
            .env("SSHPASS", text(&instance["original_service_password"]))
            .output()?;
        let connection = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(connection.split_whitespace().next().map(str::to_owned))
    })
}
