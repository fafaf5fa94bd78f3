//! Machines with a dockerd each: network namespaces on a bridge.

use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wharf_testkit::http::{Endpoint, HttpClient};
use wharf_testkit::process::{output, run};
use wharf_tests::{Authority, Certificate, free_network, until};

/// The port of every dockerd.
const PORT: u16 = 2376;
/// The prefix of switches and of links.
const PREFIX: &str = "wht-";
/// The prefix of directories of machines, below `/run`.
const DIRECTORY: &str = "wharf-machine-";
/// A lock that every switch shares.
const LOCK: &str = "/run/wharf-machines.lock";

/// A bridge of this machine.
pub struct Switch {
    name: String,
    prefix: String,
    _lock: File,
}

/// One machine. Dropping it stops its dockerd and its containers.
pub struct Machine {
    namespace: String,
    link: String,
    address: String,
    dir: PathBuf,
    daemon: Option<Child>,
}

fn ip(words: &str) -> Result<()> {
    run(Command::new("ip").args(words.split(' ')))
}

impl Switch {
    /// Makes a bridge with an address that nothing else has.
    pub fn new() -> Result<Self> {
        let lock = File::create(LOCK)?;
        lock.lock_shared()?;
        let n = free_network()?;
        let (name, prefix) = (format!("{PREFIX}{n}"), format!("10.{n}.0"));
        ip(&format!("link add {name} type bridge"))?;
        let switch = Self {
            name,
            prefix,
            _lock: lock,
        };
        ip(&format!(
            "addr add {}.1/24 dev {}",
            switch.prefix, switch.name
        ))?;
        ip(&format!("link set {} up", switch.name))?;
        Ok(switch)
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        if let Err(error) = ip(&format!("link delete {}", self.name)) {
            eprintln!("{error:#}");
        }
    }
}

impl Machine {
    /// Makes a machine without a dockerd. `number` is from 2 to 254.
    pub fn on(switch: &Switch, number: u8) -> Result<Self> {
        let namespace = format!("{}-{number}", switch.name);
        let machine = Self {
            link: format!("{namespace}o"),
            address: format!("{}.{number}", switch.prefix),
            dir: format!("/run/{DIRECTORY}{namespace}").into(),
            namespace,
            daemon: None,
        };
        let Self {
            namespace,
            link,
            address,
            ..
        } = &machine;
        ip(&format!("netns add {namespace}"))?;
        ip(&format!(
            "link add {link} type veth peer name eth0 netns {namespace}"
        ))?;
        ip(&format!("link set {link} master {} up", switch.name))?;
        ip(&format!("-n {namespace} addr add {address}/24 dev eth0"))?;
        ip(&format!("-n {namespace} link set eth0 up"))?;
        ip(&format!("-n {namespace} link set lo up"))?;
        fs::create_dir_all(&machine.dir)?;
        Ok(machine)
    }

    /// The address of the machine, which is also the login host of its instances.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The endpoint of its dockerd.
    pub fn endpoint(&self) -> String {
        format!("https://{}:{PORT}", self.address)
    }

    /// A client of its dockerd on a unix socket.
    pub fn client(&self) -> HttpClient {
        HttpClient::new(Endpoint::Unix(self.dir.join("engine.sock")))
    }

    /// Starts dockerd with this certificate. It accepts clients with certificates of `authority`.
    pub fn start(&mut self, authority: &Authority, certificate: &Certificate) -> Result<()> {
        let at = |name: &str| self.dir.join(name).display().to_string();
        let log = File::create(self.dir.join("log"))?;
        // `ip netns exec` would hide the control groups behind a new /sys.
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", self.namespace))
            .args(["dockerd", "--bridge=none", "--iptables=false"])
            .arg(format!("--data-root={}", at("data")))
            .arg(format!("--exec-root={}", at("exec")))
            .arg(format!("--pidfile={}", at("pid")))
            .arg(format!("--host=unix://{}", at("engine.sock")))
            .arg(format!("--host=tcp://{}:{PORT}", self.address))
            .args(["--group=root", "--tlsverify"])
            .arg(format!("--tlscacert={}", authority.ca().display()))
            .arg(format!("--tlscert={}", certificate.cert.display()))
            .arg(format!("--tlskey={}", certificate.key.display()))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let daemon = command.spawn().context("cannot start dockerd")?;
        let daemon = self.daemon.insert(daemon);
        let client = HttpClient::new(Endpoint::Unix(self.dir.join("engine.sock")));
        let log = self.dir.join("log");
        until("dockerd responds", || {
            if let Some(status) = daemon.try_wait()? {
                bail!("dockerd ended ({status}): {}", fs::read_to_string(&log)?);
            }
            Ok(client.get("/version").is_ok().then_some(()))
        })
    }

    /// Takes over the images of another machine. Neither has a dockerd now.
    pub fn take_images_of(&self, other: &Self) -> Result<()> {
        let (from, to) = (other.dir.join("data"), self.dir.join("data"));
        run(Command::new("cp").arg("-a").arg(from).arg(to))
    }

    /// Stops dockerd and its containers.
    pub fn stop(&mut self) -> Result<()> {
        let Some(mut daemon) = self.daemon.take() else {
            return Ok(());
        };
        run(Command::new("kill").arg(daemon.id().to_string()))?;
        wharf_testkit::process::wait_until(Duration::from_secs(30), || {
            matches!(daemon.try_wait(), Ok(Some(_)))
        });
        let _ = daemon.kill();
        daemon.wait()?;
        Ok(())
    }

    /// Takes the machine off the network, or puts it back.
    pub fn plug(&self, is_in: bool) -> Result<()> {
        let state = if is_in { "up" } else { "down" };
        ip(&format!("link set {} {state}", self.link))
    }

    fn remove(&mut self) -> Result<()> {
        self.stop()?;
        wharf_testkit::engine::end_all(&self.dir, &self.dir.join("exec"));
        let deleted = ip(&format!("netns delete {}", self.namespace));
        for mount in output(Command::new("findmnt").args(["-rno", "TARGET"]))?
            .lines()
            .rev()
            .filter(|mount| mount.starts_with(&*self.dir.to_string_lossy()))
        {
            run(Command::new("umount").args(["--lazy", mount]))?;
        }
        fs::remove_dir_all(&self.dir)?;
        deleted
    }
}

/// Removes the machines and switches of killed runs, unless another run has some.
pub fn end_abandoned() -> Result<()> {
    let lock = File::create(LOCK)?;
    if lock.try_lock().is_err() {
        return Ok(());
    }
    for entry in fs::read_dir("/run")?.flatten() {
        if let Some(namespace) = entry.file_name().to_string_lossy().strip_prefix(DIRECTORY) {
            drop(Machine {
                namespace: namespace.to_owned(),
                link: String::new(),
                address: String::new(),
                dir: entry.path(),
                daemon: None,
            });
        }
    }
    let links = output(Command::new("ip").args(["-oneline", "link"]))?;
    let names = links
        .lines()
        .filter_map(|line| line.split([' ', ':', '@']).nth(2));
    for name in names.filter(|name| name.starts_with(PREFIX)) {
        // The other end of a pair goes with the first.
        let _ = ip(&format!("link delete {name}"));
    }
    Ok(())
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            eprintln!("machine {}: {error:#}", self.namespace);
        }
    }
}
