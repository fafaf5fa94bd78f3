//! One member of a cluster.

use super::package::DAEMON;
use super::place::Place;
use super::remains;
use crate::http::{Client, Endpoint, Request};
use crate::process::{command, run, succeeds, wait_until};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// From the start to the first response.
const START_LIMIT: Duration = Duration::from_secs(90);
/// From TERM to the end; instances go on running.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// A request of the operator's, with the end of its operation.
const ASK_LIMIT: Duration = Duration::from_secs(120);
/// The members' port.
pub(super) const PORT: u16 = 8443;
/// In new namespaces: sysfs of the network namespace, with the machine's control groups.
const MOUNTS: &str = "mount -t sysfs sysfs /sys && mount --rbind \"$1\" /sys/fs/cgroup";

/// A member: its namespaces and, unless it is paused, its process.
#[derive(Debug)]
pub struct Member {
    place: Place,
    number: u8,
    child: Option<Child>,
}

impl Member {
    /// Makes the namespaces of a member and starts its process, without waiting for its first answer.
    pub(super) fn start(place: &Place, number: u8) -> Result<Self> {
        let mut member = Self {
            place: place.clone(),
            number,
            child: None,
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
        self.place.host(self.number)
    }

    /// The endpoint in the configuration of a node.
    pub fn endpoint(&self) -> String {
        format!("https://{}:{PORT}", self.address())
    }

    /// A client with all rights.
    pub fn admin(&self) -> Client {
        let socket = self.place.directory(self.number).join("unix.socket");
        Client::new(Endpoint::Unix(socket))
    }

    /// The directory of its state.
    pub fn directory(&self) -> PathBuf {
        self.place.directory(self.number)
    }

    /// Sends a request with all rights, which must succeed, waits for the end of its operation, and
    /// returns the content of the answer.
    pub fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value> {
        ask(&self.admin(), method, path, body)
    }

    /// A command that runs in the member's namespaces.
    pub fn inside(&self, program: &str) -> Command {
        let mut inside = command("nsenter");
        inside
            .arg(format!(
                "--net=/run/netns/{}",
                self.place.namespace(self.number)
            ))
            .arg(format!(
                "--mount={}",
                self.place.mounts(self.number).display()
            ))
            .arg(program)
            .env("INCUS_DIR", self.directory());
        inside
    }

    /// Ends the process; instances go on running.
    pub fn pause(&mut self) {
        if let Some(mut child) = self.child.take() {
            remains::end(child.id(), STOP_LIMIT);
            let _ = child.wait();
        }
    }

    /// Kills the process, as a crash would; instances go on running.
    pub fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Kills the process while others use this member. [`Self::kill`] then takes note of its end.
    pub fn crash(&self) -> Result<()> {
        let child = self.child.as_ref().context("the member is paused")?;
        remains::kill(child.id());
        Ok(())
    }

    /// The exit status of the process, if it has ended by itself.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.as_mut()?.try_wait().ok().flatten()
    }

    /// The first processes of the member's instances.
    pub fn processes(&self) -> Vec<u32> {
        remains::instances(&self.place.mounts(self.number))
    }

    /// Starts the process, unless it runs.
    pub fn resume(&mut self) -> Result<()> {
        self.launch()?;
        self.await_answer()
    }

    /// Starts the process without waiting for its first answer, which a member of a cluster gives only
    /// when a majority runs.
    pub fn launch(&mut self) -> Result<()> {
        if self.child.is_some() {
            return Ok(());
        }
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.place.log(self.number))?;
        let mut daemon = self.inside(DAEMON);
        daemon
            .args(["--group", "root"])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0);
        self.child = Some(daemon.spawn().context("cannot start incusd")?);
        Ok(())
    }

    /// Waits until the process answers.
    pub fn await_answer(&mut self) -> Result<()> {
        let admin = self.admin();
        let mut ended = None;
        let answers = wait_until(START_LIMIT, || {
            ended = self.child.as_mut().and_then(|child| child.try_wait().ok()?);
            let request = Request::new("GET", "/1.0").timeout(Duration::from_secs(2));
            ended.is_some() || admin.send(request).is_ok_and(|answer| answer.status == 200)
        });
        if answers && ended.is_none() {
            return Ok(());
        }
        let log = fs::read_to_string(self.place.log(self.number)).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        let end = lines
            .get(lines.len().saturating_sub(8)..)
            .unwrap_or_default();
        bail!(
            "incusd {} does not answer; its log ends with:\n{}",
            self.name(),
            end.join("\n")
        );
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
        let link = self.place.link(self.number);
        run(command("ip").args(["link", "set", &link, state]))
    }

    fn make_network(&self) -> Result<()> {
        let (name, link) = (
            self.place.namespace(self.number),
            self.place.link(self.number),
        );
        if Path::new("/run/netns").join(&name).exists() {
            return self.set_link("up");
        }
        let ip = |arguments: &str| run(command("ip").args(arguments.split_whitespace()));
        let (address, router) = (self.address(), self.place.host(254));
        ip(&format!("netns add {name}"))?;
        ip(&format!(
            "link add {link} type veth peer name eth0 netns {name}"
        ))?;
        ip(&format!(
            "link set {link} master {} up",
            self.place.bridge()
        ))?;
        ip(&format!("-n {name} address add {address}/24 dev eth0"))?;
        ip(&format!("-n {name} link set eth0 up"))?;
        ip(&format!("-n {name} link set lo up"))?;
        ip(&format!("-n {name} route add default via {router}"))
    }

    /// Makes the mount namespace, which outlives the process: a new process finds the storage mounted.
    fn make_mounts(&self) -> Result<()> {
        let (directory, content) = (self.directory(), self.place.content(self.number));
        fs::create_dir_all(&content)?;
        fs::create_dir_all(&directory)?;
        if !is_mounted(&directory)? {
            run(command("mount").arg("--bind").arg(&content).arg(&directory))?;
        }
        let file = self.place.mounts(self.number);
        if is_mounted(&file)? {
            return Ok(());
        }
        File::create(&file)?;
        run(command("nsenter")
            .arg(format!(
                "--net=/run/netns/{}",
                self.place.namespace(self.number)
            ))
            .arg("unshare")
            .arg(format!("--mount={}", file.display()))
            .args(["--propagation", "private", "bash", "-c", MOUNTS, "bash"])
            .arg(self.place.run.join("cgroup")))
    }

    /// Removes the namespaces, when no process is left in them.
    pub(super) fn remove(place: &Place, number: u8) {
        succeeds(command("umount").arg(place.mounts(number)));
        succeeds(command("umount").arg("--lazy").arg(place.directory(number)));
        succeeds(command("ip").args(["netns", "delete", &place.namespace(number)]));
        succeeds(command("ip").args(["link", "delete", &place.link(number)]));
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.pause();
    }
}

/// Sends a request, waits for the end of its operation, and returns the content of the answer.
pub fn ask(client: &Client, method: &str, path: &str, body: Option<Value>) -> Result<Value> {
    let request = Request::new(method, path).timeout(ASK_LIMIT);
    let request = match body {
        Some(body) => request.json(body),
        None => request,
    };
    complete(client, request).with_context(|| format!("{method} {path}"))
}

/// Like [`ask`], with any request.
pub(super) fn complete(client: &Client, request: Request<'_>) -> Result<Value> {
    let answer = client.send(request)?.ok()?.json()?;
    let operation = text(&answer, "/operation");
    if operation.is_empty() {
        return Ok(part(&answer, "/metadata"));
    }
    let (path, query) = operation.split_once('?').unwrap_or((operation, ""));
    let path = format!("{path}/wait?timeout=100&{query}");
    let wait = Request::new("GET", &path).timeout(ASK_LIMIT);
    let ended = client.send(wait)?.ok()?.json()?;
    if text(&ended, "/metadata/status") != "Success" {
        bail!(
            "{} {}",
            text(&ended, "/error"),
            text(&ended, "/metadata/err")
        );
    }
    Ok(part(&ended, "/metadata/metadata"))
}

/// The text at a JSON pointer; empty if there is none.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn part(value: &Value, pointer: &str) -> Value {
    value.pointer(pointer).cloned().unwrap_or_default()
}

fn is_mounted(path: &Path) -> Result<bool> {
    let table = fs::read_to_string("/proc/self/mountinfo").context("/proc/self/mountinfo")?;
    let mut points = table.lines().filter_map(|line| line.split(' ').nth(4));
    Ok(points.any(|point| Path::new(point) == path))
}
