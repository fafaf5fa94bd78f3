//! One member of a cluster.

use super::package::DAEMON;
use crate::engine::{Daemon, Layout, Namespace, bind, mounting};
use crate::http::{Endpoint, HttpClient};
use crate::process::{command, run};
use crate::progress;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use wharf_images::incus::ask;

/// Lines of the log after a crash: the trace of one goroutine.
const CRASH_LINES: usize = 40;
/// The members' port.
pub(super) const PORT: u16 = 8443;
/// In new namespaces: sysfs of the network namespace, with the machine's control groups.
const MOUNTS: &str = "mount -t sysfs sysfs /sys && mount --rbind \"$1\" /sys/fs/cgroup";

/// A member: its namespaces and, unless it is paused, its process.
#[derive(Debug)]
pub struct Member {
    layout: Layout,
    number: u8,
    daemon: Option<Daemon>,
}

impl Member {
    /// Makes the namespaces of a member and starts its process, without waiting for its first answer.
    pub(super) fn start(layout: &Layout, number: u8) -> Result<Self> {
        let mut member = Self {
            layout: layout.clone(),
            number,
            daemon: None,
        };
        member.make_network()?;
        member.make_mounts()?;
        member.launch()?;
        Ok(member)
    }

    /// The name in the cluster.
    pub fn name(&self) -> String {
        format!("m{}", self.number)
    }

    /// The address of its interface and its published ports.
    pub fn address(&self) -> Ipv4Addr {
        self.layout.host(self.number)
    }

    /// The endpoint in the configuration of a node.
    pub fn endpoint(&self) -> String {
        format!("https://{}:{PORT}", self.address())
    }

    /// A client with all rights.
    pub fn admin(&self) -> HttpClient {
        HttpClient::new(Endpoint::Unix(self.directory().join("unix.socket")))
    }

    /// The directory of its state.
    pub fn directory(&self) -> PathBuf {
        self.layout.member(self.number)
    }

    /// Sends a request with all rights, which must succeed, waits for the end of its operation, and
    /// returns the content of the answer.
    pub fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value> {
        ask(&self.admin(), method, path, body)
    }

    /// A command that runs in the member's namespaces.
    pub fn inside(&self, program: &str) -> Command {
        let mut inside = self
            .mount_namespace()
            .command(Some(&self.network_namespace()), program);
        inside.env("INCUS_DIR", self.directory());
        inside
    }

    /// Ends the process; instances go on running.
    pub fn pause(&mut self) {
        self.daemon = None;
    }

    /// Kills the process, as a crash would; instances go on running.
    pub fn kill(&mut self) -> Result<()> {
        self.daemon.take().map_or(Ok(()), Daemon::kill)
    }

    /// The exit status of the process, if it has ended by itself.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.daemon.as_mut()?.ended()
    }

    /// Starts the process again if it has ended by itself, and says how it ended.
    pub(super) fn revive(&mut self) -> Result<()> {
        let Some(status) = self.ended() else {
            return Ok(());
        };
        let log = self
            .daemon
            .take()
            .map(|daemon| daemon.last_lines(CRASH_LINES));
        let (name, log) = (self.name(), log.unwrap_or_default());
        progress::note(&format!("The daemon of {name} has ended ({status}); {log}"));
        self.resume()
    }

    /// Starts the process, unless it runs.
    pub fn resume(&mut self) -> Result<()> {
        self.launch()?;
        self.await_answer()
    }

    /// Starts the process without waiting for its first answer, which a member of a cluster gives only
    /// when a majority runs.
    pub fn launch(&mut self) -> Result<()> {
        if self.daemon.is_none() {
            let mut daemon = self.inside(DAEMON);
            daemon.args(["--group", "root"]);
            let log = self.layout.member_log(self.number);
            self.daemon = Some(Daemon::start(daemon, &log)?);
        }
        Ok(())
    }

    /// Waits until the process answers.
    pub fn await_answer(&mut self) -> Result<()> {
        let admin = self.admin();
        let daemon = self.daemon.as_mut().context("the member is paused")?;
        daemon.await_answer(&admin, "/1.0")
    }

    /// Cuts the member's link to the other members and to this machine.
    pub fn cut(&self) -> Result<()> {
        self.set_link("down")
    }

    /// Restores the link.
    pub fn reconnect(&self) -> Result<()> {
        self.set_link("up")
    }

    fn set_link(&self, state: &str) -> Result<()> {
        let link = self.layout.link(self.number);
        run(command("ip").args(["link", "set", &link, state]))
    }

    fn make_network(&self) -> Result<()> {
        let (name, link) = (
            self.layout.namespace(self.number),
            self.layout.link(self.number),
        );
        let ip = |arguments: &str| run(command("ip").args(arguments.split_whitespace()));
        let (address, router) = (self.address(), self.layout.host(254));
        ip(&format!("netns add {name}"))?;
        ip(&format!(
            "link add {link} type veth peer name eth0 netns {name}"
        ))?;
        ip(&format!(
            "link set {link} master {} up",
            self.layout.bridge()
        ))?;
        ip(&format!("-n {name} address add {address}/24 dev eth0"))?;
        ip(&format!("-n {name} link set eth0 up"))?;
        ip(&format!("-n {name} link set lo up"))?;
        ip(&format!("-n {name} route add default via {router}"))
    }

    /// Makes the mount namespace, which outlives the process: a new process finds the storage mounted.
    fn make_mounts(&self) -> Result<()> {
        let (directory, content) = (self.directory(), self.layout.content(self.number));
        fs::create_dir_all(&content)?;
        fs::create_dir_all(&directory)?;
        bind(&content, &directory)?;
        let (network, groups) = (self.network_namespace(), self.layout.run.join("cgroup"));
        self.mount_namespace()
            .make(Some(&network), MOUNTS, &[&groups])?;
        let (disk, pool) = (
            self.layout.pool_disk(self.number),
            self.layout.pool(self.number),
        );
        if disk.is_file() {
            fs::create_dir_all(&pool)?;
            run(mounting(&mut self.inside("mount"), &disk, &pool))?;
        }
        Ok(())
    }

    /// The key and the value of the configuration of its new storage pool. Simple quotas never lose count.
    pub(super) fn pool(&self, gib: u64) -> (&'static str, String) {
        if self.layout.pool_disk(self.number).is_file() {
            let source = self.layout.pool(self.number).join("incus");
            ("source", source.display().to_string())
        } else {
            ("size", format!("{gib}GiB"))
        }
    }

    fn mount_namespace(&self) -> Namespace {
        Namespace {
            anchor: self.layout.mounts(self.number),
        }
    }

    fn network_namespace(&self) -> PathBuf {
        Path::new("/run/netns").join(self.layout.namespace(self.number))
    }
}
