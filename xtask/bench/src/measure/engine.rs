//! Containers on a real engine, from the request until they answer over SSH; beside the same done at
//! the engine itself: a network, create, an archive, start.

use crate::Options;
use crate::pairs::Pairs;
use crate::server::Wharf;
use crate::table::{Reach, Table};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use xtask::engine::{Kind, PrivateEngine};
use xtask::http::{Body, Client, Endpoint, Request};
use xtask::process::output;
use xtask::say;

const IMAGE: &str = "localhost/wharf/base:1";
const NETWORK: &str = "bench";
/// The engine's own containers listen from here on; Wharf's below.
const PORT: u16 = 18_500;
/// A deletion also looks for what else an instance may have left, and whether its network is still used.
const DELETION: f64 = 1.25;
const PATIENCE: Duration = Duration::from_secs(300);
/// The hash of some password, of the length that such a hash has.
const HASH: &str = "$6$rounds=1000$0123456789abcdef$\
    ................................................................................/.....";

/// Measures.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    if !options.engine {
        table.leave_out("create → running on a real engine", "--engine asks for it");
        return Ok(());
    }
    let dir = tempfile::Builder::new().prefix("wharf-bench-").tempdir()?;
    let engine = private(&dir)?;
    xtask::images::ensure(&engine.client(), &["base"])?;
    let measured = on(&engine, &dir, options, table);
    engine.stop()?;
    measured
}

/// A dockerd of our own, on overlay2, as most are. Where the kernel cannot do that here, on btrfs with
/// quotas, which clean up for minutes.
pub fn private(dir: &TempDir) -> Result<PrivateEngine> {
    let start = |disk_gib| {
        PrivateEngine::start(xtask::engine::Options {
            kind: Kind::Dockerd,
            dir: dir.path().join("engine"),
            disk_gib,
            disposable: true,
        })
    };
    start(None).or_else(|why| {
        say::note(&format!("No overlay2 here ({why:#}): btrfs instead."));
        start(Some(40))
    })
}

fn on(engine: &PrivateEngine, dir: &TempDir, options: &Options, table: &mut Table) -> Result<()> {
    let ours = Ours::start(engine, dir)?;
    let theirs = Theirs {
        client: engine.client(),
        limited: engine.enforces_disk_size(),
        first_boot: first_boot()?,
    };
    // To warm up.
    ours.up_and_down(1, &Times::default())?;
    theirs.up_and_down(1)?;
    for (many, turns) in if options.quick {
        [(1, 2), (4, 1)]
    } else {
        [(1, 40), (32, 5)]
    } {
        let mut shortest = None;
        let runs = Pairs::measure(
            turns,
            || {
                engine.settle()?;
                let times = ours.up_and_down(many, &not_before(shortest))?;
                shortest = Some(shortest.map_or(times, |before: Times| before.min(times)));
                Ok(times)
            },
            || {
                engine.settle()?;
                theirs.up_and_down(many)
            },
        )?;
        for (what, took, reach) in [
            (
                "created → running",
                (|times| times.up.as_secs_f64()) as fn(&Times) -> f64,
                1.05,
            ),
            ("deleted → gone", |times| times.down.as_secs_f64(), DELETION),
        ] {
            let (wharf, alone, ratio) = runs.middle(took)?;
            let (wharf, alone) = (took(wharf), took(alone));
            table.row(
                format!("{many} {what}, dockerd"),
                (format!("{wharf:.2} s"), format!("{alone:.2} s, the engine")),
                ratio,
                Reach::AtMost(reach),
            );
        }
    }
    Ok(())
}

/// How long it took until all were there, and then until all were gone.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    up: Duration,
    down: Duration,
}

impl Times {
    fn min(self, other: Self) -> Self {
        Self {
            up: self.up.min(other.up),
            down: self.down.min(other.down),
        }
    }
}

/// Before three quarters of the shortest turn so far nothing is asked. Asking whether it is done takes
/// processor time from what is waited for, and the engine by itself is not asked: 200 questions a second
/// were 3 % of it.
fn not_before(shortest: Option<Times>) -> Times {
    let Times { up, down } = shortest.unwrap_or_default();
    Times {
        up: up * 3 / 4,
        down: down * 3 / 4,
    }
}

/// Wharf in front of the engine.
struct Ours {
    wharf: Wharf,
    user: User,
    engine: Client,
}

/// Of Wharf.
struct User {
    client: Client,
    key: String,
}

impl User {
    fn send(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value> {
        let request = Request::new(method, path).key(&self.key).timeout(PATIENCE);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let answer = self.client.send(request)?.ok()?;
        Ok(serde_json::from_slice(&answer.body).unwrap_or(Value::Null))
    }
}

impl Ours {
    fn start(engine: &PrivateEngine, dir: &TempDir) -> Result<Self> {
        let Endpoint::Unix(socket) = engine.endpoint() else {
            bail!("a private engine listens on a socket");
        };
        let config = dir.path().join("wharf.toml");
        let text = format!(
            "listen = \"127.0.0.1:0\"\ndata_dir = \"data\"\n\
             [ssh_ports]\nfrom = 18000\nto = 18199\n[web]\nfrom = 18200\nto = 18299\n\
             [[node]]\nname = \"real\"\ndriver = \"docker\"\nendpoint = \"unix://{}\"\n\
             capacity = {{ n_vcpus = 64, mem_gib = 64, disk_size_gib = 2000 }}\n\
             lan_cidr = \"10.213.0.0/16\"\nsettings = {{ publish_address = \"127.0.0.1\" }}\n",
            socket.display()
        );
        fs::write(&config, text)?;
        let wharf = Wharf::start(&config, &dir.path().join("log"))?;
        let mut command = Command::new(xtask::workspace::wharf_binary());
        command.args(["key", "new", "bench@example.org", "--config"]);
        let key = output(command.arg(&config))?.trim().to_owned();
        let client = Client::new(Endpoint::parse(&format!("http://{}", wharf.address()?))?);
        Ok(Self {
            wharf,
            user: User { client, key },
            engine: engine.client(),
        })
    }

    fn list(&self) -> Result<Vec<Value>> {
        let list = self.wharf.body("/api/instance/", &self.user.key)?;
        Ok(serde_json::from_slice(&list)?)
    }

    fn up_and_down(&self, many: u16, not_before: &Times) -> Result<Times> {
        let small = json!({
            "resource_type": "container", "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": 10,
        });
        let user = &self.user;
        let begin = Instant::now();
        side_by_side(many, |_| {
            user.send("POST", "/api/instance/", Some(small.clone()))
                .map(drop)
        })?;
        std::thread::sleep(not_before.up.saturating_sub(begin.elapsed()));
        let up = loop {
            let list = self.list()?;
            let in_state = |state: &str| list.iter().filter(|i| i["state"] == state).count();
            ensure!(in_state("error") == 0, "an instance is in error");
            if in_state("running") == usize::from(many) {
                break begin.elapsed();
            }
            ensure!(begin.elapsed() < PATIENCE, "not all are running");
            pause(begin);
        };
        let instances = self.list()?;
        let begin = Instant::now();
        side_by_side(many, |n| {
            let instance = instances.get(usize::from(n)).context("no such instance")?;
            let id = instance["uuid"].as_str().context("uuid")?;
            user.send("DELETE", &format!("/api/instance/{id}/"), None)
                .map(drop)
        })?;
        std::thread::sleep(not_before.down.saturating_sub(begin.elapsed()));
        while self.engine.get("/containers/json?all=true")? != json!([]) {
            ensure!(begin.elapsed() < PATIENCE, "not all are removed");
            pause(begin);
        }
        let down = begin.elapsed();
        // The network goes right after the last of them, and would slow the next turn down.
        std::thread::sleep(Duration::from_millis(200));
        Ok(Times { up, down })
    }
}

/// The engine by itself.
struct Theirs {
    client: Client,
    limited: bool,
    first_boot: Vec<u8>,
}

/// What Wharf puts into each container too; without it there is no account to make at the start.
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
    fn send(&self, method: &str, path: &str, body: Body) -> Result<()> {
        let request = Request::new(method, path).timeout(PATIENCE).body(body);
        let answer = self.client.send(request)?.ok();
        answer.map(drop).with_context(|| format!("{method} {path}"))
    }

    fn up_and_down(&self, many: u16) -> Result<Times> {
        let network = json!({
            "Name": NETWORK, "Driver": "bridge",
            "IPAM": { "Config": [{ "Subnet": "10.212.0.0/24" }] },
        });
        let is_missing = !self.has_network()?;
        let begin = Instant::now();
        if is_missing {
            self.send("POST", "/networks/create", Body::Json(network))?;
        }
        side_by_side(many, |n| self.one(n))?;
        let up = begin.elapsed();
        let begin = Instant::now();
        side_by_side(many, |n| {
            let path = format!("/containers/{NETWORK}-{n}?force=true&v=true");
            self.send("DELETE", &path, Body::Empty)
        })?;
        let down = begin.elapsed();
        self.end_network()?;
        Ok(Times { up, down })
    }

    /// The engine at times takes a network for used though nothing is on it, for a moment or for ever.
    fn end_network(&self) -> Result<()> {
        for _ in 0..50 {
            let path = format!("/networks/{NETWORK}");
            let request = Request::new("DELETE", &path).timeout(PATIENCE);
            if self.client.send(request)?.status == 204 {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        say::note(&format!("The engine keeps the network {NETWORK:?}."));
        Ok(())
    }

    fn has_network(&self) -> Result<bool> {
        let path = format!("/networks/{NETWORK}");
        Ok(self.client.send(Request::new("GET", &path))?.status == 200)
    }

    /// As Wharf makes one: the same limits, files put in place, and up once SSH answers.
    fn one(&self, n: u16) -> Result<()> {
        let (name, port) = (format!("{NETWORK}-{n}"), PORT + n);
        let mut body = json!({
            "Image": IMAGE,
            "ExposedPorts": { "22/tcp": {} },
            "HostConfig": {
                "NetworkMode": NETWORK,
                "CpuPeriod": 100_000, "CpuQuota": 100_000,
                "Memory": 1_u64 << 30, "MemorySwap": 1_u64 << 30, "PidsLimit": 4096,
                "PortBindings": {
                    "22/tcp": [{ "HostIp": "127.0.0.1", "HostPort": port.to_string() }],
                },
            },
        });
        if self.limited {
            body["HostConfig"]["StorageOpt"] = json!({ "size": "10G" });
        }
        let create = format!("/containers/create?name={name}");
        self.send("POST", &create, Body::Json(body))?;
        let archive = format!("/containers/{name}/archive?path=/");
        self.send("PUT", &archive, Body::Tar(self.first_boot.clone()))?;
        self.send("POST", &format!("/containers/{name}/start"), Body::Empty)?;
        let begin = Instant::now();
        while !banner(port) {
            ensure!(begin.elapsed() < PATIENCE, "no SSH");
            // No more often than Wharf asks: 32 that ask all the time keep each other from coming up.
            std::thread::sleep((begin.elapsed() / 32).max(Duration::from_millis(5)));
        }
        Ok(())
    }
}

/// Between two questions whether it is done. What is seen late by this is 5 ms, or less than 1 % of the
/// time.
fn pause(begin: Instant) {
    std::thread::sleep((begin.elapsed() / 128).max(Duration::from_millis(5)));
}

fn side_by_side(many: u16, each: impl Fn(u16) -> Result<()> + Sync) -> Result<()> {
    std::thread::scope(|scope| {
        let each = &each;
        let threads: Vec<_> = (0..many).map(|n| scope.spawn(move || each(n))).collect();
        threads.into_iter().try_for_each(|thread| {
            let joined = thread.join();
            joined.unwrap_or_else(|_| bail!("a thread broke"))
        })
    })
}

fn banner(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
        return false;
    };
    let mut banner = [0; 4];
    stream.read_exact(&mut banner).is_ok() && &banner == b"SSH-"
}
