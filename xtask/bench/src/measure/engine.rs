//! Containers on dockerd, from the request until they accept SSH. The baseline is dockerd alone, asked
//! for the same: a network, and for each container its creation, an archive and its start.

use crate::Options;
use crate::pairs::Pairs;
use crate::server::Wharf;
use crate::table::{Table, Target};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use wharf_testkit::engine::{self, Kind, PrivateEngine, installed};
use wharf_testkit::http::{Body, Endpoint, HttpClient, Request};
use wharf_testkit::process::{is_root, output};
use wharf_testkit::ssh::has_banner;
use wharf_testkit::{images, progress, workspace};

/// The image of all containers.
pub const IMAGE: &str = "localhost/wharf/base:1";
/// The address of published ports.
pub const LOCALHOST: &str = "127.0.0.1";
/// The network of dockerd's own containers.
pub const NETWORK: &str = "bench";
/// The first SSH port of dockerd's own containers; Wharf's ports are below.
const PORT: u16 = 18_500;
/// Numbers of containers that are created at the same time.
const COUNTS: [u16; 2] = [1, 32];
/// Pairs of runs.
const PAIRS: usize = 5;
const CREATION: f64 = 1.05;
/// A deletion also looks for other objects of the instance, and whether its network is still in use.
const DELETION: f64 = 1.25;
const DEADLINE: Duration = Duration::from_secs(300);
/// A password hash; only its length matters.
const HASH: &str = "$6$rounds=1000$0123456789abcdef$\
    ................................................................................/.....";

/// Measures creations and deletions.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    const WHAT: &str = "create → running beside dockerd";
    if !is_possible(options, table, WHAT) {
        return Ok(());
    }
    let dir = tempfile::Builder::new().prefix("wharf-bench-").tempdir()?;
    let engine = private(Kind::Dockerd, dir.path())?;
    images::ensure(&engine.client(), &["base"])?;
    let measured = on(&engine, dir.path(), table);
    engine.stop()?;
    measured
}

/// Whether dockerd can be measured. If not, the table says why.
pub fn is_possible(options: &Options, table: &mut Table, what: &str) -> bool {
    let why = if options.quick {
        "--quick"
    } else if !is_root() || !installed().contains(&Kind::Dockerd) {
        "needs dockerd and root"
    } else {
        return true;
    };
    table.leave_out(what, why);
    false
}

/// Starts a private engine on the file system of `dir`, as most engines are. Where the kernel does not
/// support overlays there, it is on btrfs with quotas, which cleans up for minutes.
pub fn private(kind: Kind, dir: &Path) -> Result<PrivateEngine> {
    let start = |disk_gib| {
        PrivateEngine::start(engine::DockerOptions {
            kind,
            dir: dir.join("engine"),
            disk_gib,
            disposable: true,
            allowed: engine::Allowed::new(&[])?,
            tls: None,
        })
    };
    start(None).or_else(|why| {
        progress::note(&format!("No overlays here ({why:#}): using btrfs."));
        start(Some(40))
    })
}

fn on(engine: &PrivateEngine, dir: &Path, table: &mut Table) -> Result<()> {
    let ours = Ours::start(engine, dir)?;
    let theirs = Theirs::of(engine, IMAGE)?;
    // To warm up.
    ours.run(1, Times::default())?;
    theirs.run(1)?;
    for count in COUNTS {
        let mut shortest: Option<Times> = None;
        let runs = Pairs::measure(
            PAIRS,
            || {
                engine.settle()?;
                let times = ours.run(count, quiet(shortest))?;
                shortest = Some(shortest.map_or(times, |before| before.min(times)));
                Ok(times)
            },
            || {
                engine.settle()?;
                theirs.run(count)
            },
        )?;
        let figures: [(&str, Figure, f64); 3] = [
            ("create → running", |t| t.running.as_secs_f64(), CREATION),
            ("create → SSH", |t| t.ssh.as_secs_f64(), CREATION),
            ("delete → gone", |t| t.gone.as_secs_f64(), DELETION),
        ];
        for (what, figure, target) in figures {
            let (ours, theirs, ratio) = runs.median(figure)?;
            let (ours, theirs) = (figure(ours), figure(theirs));
            table.row(
                format!("{what}, {count} at once"),
                (format!("{ours:.2} s"), format!("{theirs:.2} s, dockerd")),
                ratio,
                Target::AtMost(target),
            );
        }
    }
    Ok(())
}

/// A figure of a run, s.
type Figure = fn(&Times) -> f64;

/// The times until all containers had reached a state.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    /// From the requests until Wharf shows `running`; for dockerd alone, until SSH banners.
    running: Duration,
    /// From the requests until SSH banners.
    ssh: Duration,
    /// From the deletions until the engine has no container.
    gone: Duration,
}

impl Times {
    fn min(self, other: Self) -> Self {
        Self {
            running: self.running.min(other.running),
            ssh: self.ssh.min(other.ssh),
            gone: self.gone.min(other.gone),
        }
    }
}

/// The time without polling: three quarters of the shortest run so far. Polling takes CPU time from the
/// instances, and dockerd alone is not polled: 200 requests per second cost 3 %.
fn quiet(shortest: Option<Times>) -> Times {
    let Times { running, ssh, gone } = shortest.unwrap_or_default();
    Times {
        running: running * 3 / 4,
        ssh: ssh * 3 / 4,
        gone: gone * 3 / 4,
    }
}

/// The settings of a node with the engine.
pub fn node_of(engine: &PrivateEngine) -> Result<String> {
    let Endpoint::Unix(socket) = engine.endpoint() else {
        bail!("a private engine listens on a socket");
    };
    Ok(format!(
        "driver = \"docker\"\nendpoint = \"unix://{}\"\nlan_cidr = \"10.213.0.0/16\"\n\
         public_ipv4 = [\"198.18.213.0/28\"]\nsettings = {{ publish_address = \"127.0.0.1\" }}\n",
        socket.display()
    ))
}

/// Wharf in front of the engine.
pub struct Ours {
    pub wharf: Wharf,
    user: User,
    engine: HttpClient,
}

/// A user of Wharf.
struct User {
    client: HttpClient,
    key: String,
}

impl User {
    fn send(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value> {
        let request = Request::new(method, path).key(&self.key).timeout(DEADLINE);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let response = self.client.send(request)?.ok()?;
        Ok(serde_json::from_slice(&response.body).unwrap_or(Value::Null))
    }
}

impl Ours {
    /// Starts a server with the engine as its only node.
    pub fn start(engine: &PrivateEngine, dir: &Path) -> Result<Self> {
        Self::start_on(&node_of(engine)?, engine.client(), dir)
    }

    /// Starts a server with these settings of its only node, and a client of the node's engine.
    pub fn start_on(node: &str, engine: HttpClient, dir: &Path) -> Result<Self> {
        let config = dir.join("wharf.toml");
        let text = format!(
            "listen = \"127.0.0.1:0\"\ndata_dir = \"data\"\n\
             [ssh_ports]\nfrom = 18000\nto = 18199\n[web]\nfrom = 18200\nto = 18299\n\
             [[node]]\nname = \"real\"\n\
             capacity = {{ n_vcpus = 64, mem_gib = 64, disk_size_gib = 2000 }}\n{node}"
        );
        fs::write(&config, text)?;
        let wharf = Wharf::start(&config, &dir.join("log"))?;
        let mut command = Command::new(workspace::wharf_binary());
        command.args(["key", "new", "bench@example.org", "--config"]);
        let key = output(command.arg(&config))?.trim().to_owned();
        let client = HttpClient::new(Endpoint::parse(&format!("http://{}", wharf.address()?))?);
        Ok(Self {
            wharf,
            user: User { client, key },
            engine,
        })
    }

    /// The URL of the server and the key of its user.
    pub fn access(&self) -> Result<(String, String)> {
        let url = format!("http://{}", self.wharf.address()?);
        Ok((url, self.user.key.clone()))
    }

    /// Sends a request of the user.
    pub fn send(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value> {
        self.user.send(method, path, body)
    }

    /// Creates an instance and waits until it runs.
    pub fn create(&self, wanted: Value, deadline: Duration) -> Result<Value> {
        let created = self.send("POST", "/api/instance/", Some(wanted))?;
        self.until("/api/instance/", &created["uuid"], "running", deadline)
    }

    /// Waits until what a path has under an id is in a state.
    pub fn until(&self, at: &str, id: &Value, state: &str, deadline: Duration) -> Result<Value> {
        let begin = Instant::now();
        let path = format!("{at}{}/", id.as_str().context("no id")?);
        loop {
            let now = self.send("GET", &path, None)?;
            if now["state"] == state {
                return Ok(now);
            }
            ensure!(begin.elapsed() < deadline, "{path} is not {state}: {now}");
            pause(begin);
        }
    }

    /// The time from the request for an instance until it runs, without polling at first. The instance
    /// is removed then.
    pub fn one(&self, wanted: Value, quiet: Duration, deadline: Duration) -> Result<Duration> {
        let begin = Instant::now();
        let created = self.user.send("POST", "/api/instance/", Some(wanted))?;
        let id = created["uuid"].as_str().context("uuid")?;
        let path = format!("/api/instance/{id}/");
        std::thread::sleep(quiet.saturating_sub(begin.elapsed()));
        while self.user.send("GET", &path, None)?["state"] != "running" {
            ensure!(begin.elapsed() < deadline, "the instance does not run");
            pause(begin);
        }
        let running = begin.elapsed();
        self.remove(id, deadline)?;
        Ok(running)
    }

    /// Deletes an instance, and waits until the engine has no container of it.
    pub fn remove(&self, id: &str, deadline: Duration) -> Result<()> {
        let begin = Instant::now();
        self.send("DELETE", &format!("/api/instance/{id}/"), None)?;
        let its = format!("%7B%22label%22%3A%5B%22io.wharf.instance%3D{id}%22%5D%7D");
        let its = format!("/containers/json?all=true&filters={its}");
        while self.engine.get(&its)? != json!([]) {
            ensure!(begin.elapsed() < deadline, "the instance is not removed");
            pause(begin);
        }
        Ok(())
    }

    fn list(&self) -> Result<Vec<Value>> {
        let list = self.wharf.body("/api/instance/", &self.user.key)?;
        Ok(serde_json::from_slice(&list)?)
    }

    fn run(&self, count: u16, quiet: Times) -> Result<Times> {
        let small = json!({
            "resource_type": "container", "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": 10,
        });
        let user = &self.user;
        let begin = Instant::now();
        concurrently(count, |_| {
            user.send("POST", "/api/instance/", Some(small.clone()))
                .map(drop)
        })?;
        std::thread::sleep(quiet.running.saturating_sub(begin.elapsed()));
        let running = loop {
            let list = self.list()?;
            let in_state = |state: &str| list.iter().filter(|i| i["state"] == state).count();
            ensure!(in_state("error") == 0, "an instance is in error");
            if in_state("running") == usize::from(count) {
                break begin.elapsed();
            }
            ensure!(begin.elapsed() < DEADLINE, "not all are running");
            pause(begin);
        };
        let instances = self.list()?;
        for instance in &instances {
            let port = instance["wan_ssh_port"].as_u64();
            let port = u16::try_from(port.context("wan_ssh_port")?)?;
            ensure!(has_banner(LOCALHOST, port), "an instance without SSH runs");
        }
        let ssh = begin.elapsed();
        let begin = Instant::now();
        concurrently(count, |n| {
            let instance = instances.get(usize::from(n)).context("no such instance")?;
            let id = instance["uuid"].as_str().context("uuid")?;
            user.send("DELETE", &format!("/api/instance/{id}/"), None)
                .map(drop)
        })?;
        std::thread::sleep(quiet.gone.saturating_sub(begin.elapsed()));
        while self.engine.get("/containers/json?all=true")? != json!([]) {
            ensure!(begin.elapsed() < DEADLINE, "not all are removed");
            pause(begin);
        }
        let gone = begin.elapsed();
        // The network is removed just after the last container, which would slow the next run down.
        std::thread::sleep(Duration::from_millis(200));
        Ok(Times { running, ssh, gone })
    }
}

/// dockerd alone.
pub struct Theirs {
    client: HttpClient,
    image: String,
    limits_disks: bool,
    first_boot: Vec<u8>,
}

/// The files that Wharf puts into a container too; without them its start creates no account.
fn first_boot() -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in [("user", "user\n"), ("password", HASH)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        let path = format!("etc/wharf/first-boot/{name}");
        archive.append_data(&mut header, path, content.as_bytes())?;
    }
    Ok(archive.into_inner()?)
}

impl Theirs {
    /// Containers of an image.
    pub fn of(engine: &PrivateEngine, image: &str) -> Result<Self> {
        Ok(Self {
            client: engine.client(),
            image: image.to_owned(),
            limits_disks: engine.enforces_disk_size(),
            first_boot: first_boot()?,
        })
    }

    fn send(&self, method: &str, path: &str, body: Body) -> Result<()> {
        let request = Request::new(method, path).timeout(DEADLINE).body(body);
        let response = self.client.send(request)?.ok();
        response
            .map(drop)
            .with_context(|| format!("{method} {path}"))
    }

    /// Makes the network.
    pub fn make_network(&self) -> Result<()> {
        let network = json!({
            "Name": NETWORK, "Driver": "bridge",
            "IPAM": { "Config": [{ "Subnet": "10.212.0.0/24" }] },
        });
        self.send("POST", "/networks/create", Body::Json(network))
    }

    fn run(&self, count: u16) -> Result<Times> {
        let is_missing = !self.has_network()?;
        let begin = Instant::now();
        if is_missing {
            self.make_network()?;
        }
        concurrently(count, |n| self.one(n))?;
        let ssh = begin.elapsed();
        let begin = Instant::now();
        concurrently(count, |n| self.remove(n))?;
        let gone = begin.elapsed();
        remove_network(&self.client)?;
        Ok(Times {
            running: ssh,
            ssh,
            gone,
        })
    }

    fn has_network(&self) -> Result<bool> {
        let path = format!("/networks/{NETWORK}");
        Ok(self.client.send(Request::new("GET", &path))?.status == 200)
    }

    /// Creates a container as Wharf does, with limits and files, and waits for its SSH banner.
    pub fn one(&self, n: u16) -> Result<()> {
        let (name, port) = (format!("{NETWORK}-{n}"), PORT + n);
        let mut body = json!({
            "Image": self.image,
            "ExposedPorts": { "22/tcp": {} },
            "HostConfig": {
                "NetworkMode": NETWORK,
                "CpuPeriod": 100_000, "CpuQuota": 100_000,
                "Memory": 1_u64 << 30, "MemorySwap": 1_u64 << 30, "PidsLimit": 4096,
                "PortBindings": {
                    "22/tcp": [{ "HostIp": LOCALHOST, "HostPort": port.to_string() }],
                },
            },
        });
        if self.limits_disks {
            body["HostConfig"]["StorageOpt"] = json!({ "size": "10G" });
        }
        let create = format!("/containers/create?name={name}");
        self.send("POST", &create, Body::Json(body))?;
        let archive = format!("/containers/{name}/archive?path=/");
        self.send("PUT", &archive, Body::Tar(self.first_boot.clone()))?;
        self.send("POST", &format!("/containers/{name}/start"), Body::Empty)?;
        let begin = Instant::now();
        while !has_banner(LOCALHOST, port) {
            ensure!(begin.elapsed() < DEADLINE, "no SSH");
            // As often as Wharf polls: 32 busy loops would keep the containers from starting.
            std::thread::sleep((begin.elapsed() / 32).max(Duration::from_millis(5)));
        }
        Ok(())
    }

    /// Removes a container.
    pub fn remove(&self, n: u16) -> Result<()> {
        let path = format!("/containers/{NETWORK}-{n}?force=true&v=true");
        self.send("DELETE", &path, Body::Empty)
    }
}

/// Removes the network. dockerd at times takes an empty network for used, for a moment or for good.
pub fn remove_network(client: &HttpClient) -> Result<()> {
    for _ in 0..50 {
        let path = format!("/networks/{NETWORK}");
        let request = Request::new("DELETE", &path).timeout(DEADLINE);
        if client.send(request)?.status == 204 {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    progress::note(&format!("dockerd keeps the network {NETWORK:?}."));
    Ok(())
}

/// Sleeps between two polls: 5 ms, or less than 1 % of the time so far.
fn pause(begin: Instant) {
    std::thread::sleep((begin.elapsed() / 128).max(Duration::from_millis(5)));
}

/// Runs `each` in `count` threads.
pub fn concurrently(count: u16, each: impl Fn(u16) -> Result<()> + Sync) -> Result<()> {
    std::thread::scope(|scope| {
        let each = &each;
        let threads: Vec<_> = (0..count).map(|n| scope.spawn(move || each(n))).collect();
        threads.into_iter().try_for_each(|thread| {
            let joined = thread.join();
            joined.unwrap_or_else(|_| bail!("a thread panicked"))
        })
    })
}
