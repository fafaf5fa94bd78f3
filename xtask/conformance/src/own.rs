//! Wharf on the simulated engine, set up for every check: two nodes, GPUs, both tiers, a few public
//! addresses, and names of instances that fail in a given way.

use super::context::Staged;
use super::session::Target;
use anyhow::{Result, bail};
use std::fs;
use std::net::TcpListener;
use std::process::Command;
use tempfile::TempDir;
use wharf_testkit::process::output;
use wharf_testkit::server::Server;
use wharf_testkit::workspace;

const FAILING: &str = "set-up-to-fail";
const UNREACHABLE: &str = "set-up-to-be-unreachable";
const DYING: &str = "set-up-to-die";
const UNSTARTABLE: &str = "set-up-not-to-start-again";
const SLOW: &str = "set-up-to-stop-slowly";
const GPU: &str = "H100";

const CONFIG: &str = "wharf.toml";
const LOG: &str = "wharf.log";

/// Ports below those of the tests' servers.
const FIRST_PORT: u16 = 10_000;
const BLOCKS: u16 = 20;
const BLOCK: u16 = 400;

/// A server of our own. Dropping it stops the server and removes its data.
pub struct OwnServer {
    // Declared before the directory, so that the server ends first.
    server: Server,
    dir: TempDir,
    target: Target,
}

impl OwnServer {
    /// Starts a server.
    pub fn start() -> Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix("wharf-conformance-")
            .tempdir()?;
        let config = dir.path().join(CONFIG);
        fs::write(&config, configuration(free_block()?))?;
        let server = Server::start(&config, &dir.path().join(LOG))?;
        let key = |email: &str| {
            let mut wharf = Command::new(workspace::wharf_binary());
            wharf.args(["key", "new", email, "--config"]).arg(&config);
            output(&mut wharf).map(|key| key.trim().to_owned())
        };
        let target = Target {
            base_url: server.url().to_owned(),
            key: key("ann@example.org")?,
            other_key: Some(key("bob@example.org")?),
            staged: Staged {
                failing_name: Some(FAILING.to_owned()),
                unreachable_name: Some(UNREACHABLE.to_owned()),
                dying_name: Some(DYING.to_owned()),
                unstartable_name: Some(UNSTARTABLE.to_owned()),
                slow_name: Some(SLOW.to_owned()),
                gpu_model: Some(GPU.to_owned()),
                few_addresses: true,
            },
        };
        Ok(Self {
            server,
            dir,
            target,
        })
    }

    /// The server as a target of checks.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Stops the server; fails if it had ended before, a thread panicked, or its database is corrupt.
    pub fn finish(self) -> Result<()> {
        let ended = self.server.ended();
        self.server.stop();
        let log = fs::read_to_string(self.dir.path().join(LOG))?;
        if let Some(status) = ended {
            bail!("Wharf had ended ({status}):\n{log}");
        }
        if let Some(line) = log.lines().find(|line| line.contains("panicked at")) {
            bail!("a thread of Wharf panicked: {line}");
        }
        let mut wharf = Command::new(workspace::wharf_binary());
        wharf
            .args(["fsck", "--config"])
            .arg(self.dir.path().join(CONFIG));
        output(&mut wharf).map(drop)
    }
}

/// Finds a block of ports whose first port is free.
fn free_block() -> Result<u16> {
    let start = u16::try_from(std::process::id() % u32::from(BLOCKS)).unwrap_or(0);
    for n in 0..BLOCKS {
        let from = FIRST_PORT + (start + n) % BLOCKS * BLOCK;
        if TcpListener::bind(("127.0.0.1", from)).is_ok() {
            return Ok(from);
        }
    }
    bail!("no block of ports from {FIRST_PORT} on is free")
}

fn configuration(port: u16) -> String {
    let (ssh_to, web_from, web_to) = (port + BLOCK / 2 - 1, port + BLOCK / 2, port + BLOCK - 1);
    // Long enough to observe `provisioning`.
    let settings = format!(
        "settings = {{ ready_after_ms = 250, late_attach = true, faults = [\
         {{ call = \"ensure\", hostname = \"{FAILING}\", error = \"failed\" }}, \
         {{ call = \"ensure\", hostname = \"{DYING}\", error = \"dies\", after_ms = 2000 }}, \
         {{ call = \"stats\", hostname = \"{UNREACHABLE}\", error = \"unreachable\" }}, \
         {{ call = \"resize\", hostname = \"{UNREACHABLE}\", error = \"unreachable\" }}, \
         {{ call = \"start\", hostname = \"{UNSTARTABLE}\", error = \"failed\" }}, \
         {{ call = \"stop\", hostname = \"{SLOW}\", error = \"late\", after_ms = 1500 }}] }}"
    );
    format!(
        "listen = \"127.0.0.1:0\"\ndata_dir = \"data\"\nssh_host = \"127.0.0.1\"\n\
         [limits]\nrequests_per_second = 0\nrequests_per_second_per_user = 0\n\
         [ssh_ports]\nfrom = {port}\nto = {ssh_to}\n\
         [web]\nfrom = {web_from}\nto = {web_to}\n\
         [pages]\ndomain = \"apps.localhost\"\nlisten = \"127.0.0.1:0\"\n\
         [[node]]\nname = \"east\"\ndriver = \"simulated\"\nendpoint = \"simulated:\"\n\
         capacity = {{ n_vcpus = 64, mem_gib = 128, disk_size_gib = 3000 }}\n\
         gpus = [{{ model = \"{GPU}\", count = 2 }}]\n\
         lan_cidr = \"10.80.0.0/16\"\npublic_ipv4 = [\"203.0.113.0/27\"]\n{settings}\n\
         [[node]]\nname = \"west\"\ndriver = \"simulated\"\nendpoint = \"simulated:\"\n\
         capacity = {{ n_vcpus = 48, mem_gib = 160, disk_size_gib = 1900 }}\n\
         gpus = [{{ model = \"L4\", count = 1 }}]\ncpu_tiers = [\"general-purpose\"]\n\
         lan_cidr = \"10.81.0.0/16\"\npublic_ipv4 = [\"203.0.113.128/28\"]\n{settings}\n"
    )
}
