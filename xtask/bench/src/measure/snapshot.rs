//! Snapshots, and clones until they accept SSH. The baselines on dockerd are its copy of that container, and a container
//! that it creates from the snapshot; on a private Incus, its snapshot of that instance.

use super::engine::{LOCALHOST, Ours, Theirs, is_possible, private, remove_network};
use crate::Options;
use crate::pairs::Pairs;
use crate::table::{Table, Target};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};
use wharf_testkit::engine::{Kind, kernel_has_btrfs};
use wharf_testkit::http::{HttpClient, Request};
use wharf_testkit::images;
use wharf_testkit::incus::{self, Cluster, ClusterOptions, GATEWAY, NETWORK, Project, ask};
use wharf_testkit::process::is_root;
use wharf_testkit::ssh::has_banner;

/// Pairs of runs. dockerd copies for seconds each time.
const PAIRS: usize = 5;
/// Bytes in the home directory: dockerd copies them, and Incus does not.
const COPIED: u64 = 1_000_000_000;
const SHARED: u64 = 10_000_000_000;
const PART: u64 = 1_000_000_000;
/// The targets, beside the engine.
const SNAPSHOT: f64 = 1.1;
const CLONE: f64 = 1.15;
/// The target of a snapshot on Incus, s.
const AT_ONCE: f64 = 0.3;
const DEADLINE: Duration = Duration::from_secs(600);
const PROJECT: &str = "wharf";

/// Measures snapshots and clones.
pub fn run(options: &Options, table: &mut Table) -> Result<()> {
    const WHAT: &str = "snapshots and clones";
    if is_possible(options, table, WHAT) {
        let dir = tempfile::Builder::new().prefix("wharf-bench-").tempdir()?;
        let engine = private(Kind::Dockerd, dir.path())?;
        images::ensure(&engine.client(), &["base"])?;
        let measured = Ours::start(&engine, dir.path()).and_then(|ours| {
            let client = engine.client();
            let source = Source::fill(&ours, 20, COPIED, |name, fill| inside(&client, name, fill))?;
            source.beside_commit(&ours, &client, table)?;
            let snapshot = source.take(&ours, "kept")?;
            let image = format!("localhost/wharf-snapshot/{}:1", text(&snapshot["id"])?);
            let theirs = Theirs::of(&engine, &image)?;
            theirs.make_network()?;
            let beside = || {
                let begin = Instant::now();
                theirs.one(0)?;
                let took = begin.elapsed();
                theirs.remove(0)?;
                Ok(took)
            };
            let remove = |id: &str| ours.remove(id, DEADLINE);
            let pairs = source.clones(&ours, &snapshot, LOCALHOST, remove, beside);
            let cloned =
                pairs.and_then(|pairs| clones_row(table, "clone → SSH, of 1 GB", "dockerd", pairs));
            remove_network(&client)?;
            cloned
        });
        engine.stop()?;
        measured?;
    }
    if options.quick || !is_root() || !incus::can_install() || !kernel_has_btrfs() {
        table.leave_out("snapshots on Incus", "needs Debian, btrfs and root");
        return Ok(());
    }
    on_incus(table)
}

fn on_incus(table: &mut Table) -> Result<()> {
    let dir = tempfile::Builder::new().prefix("wharf-bench-").tempdir()?;
    let cluster = Cluster::start(&ClusterOptions {
        dir: dir.path().join("incus"),
        members: 1,
        disk_gib: 40,
        offline_after_s: 11,
        disposable: true,
        outside: None,
    })?;
    let measured = ours_on(&cluster, dir.path()).and_then(|server| {
        let admin = cluster.first()?.admin();
        let source = Source::fill(&server, 20, SHARED, |_, fill| {
            let command = json!({ "command": ["sh", "-c", fill], "wait-for-websocket": false });
            let done = ask(
                &admin,
                "POST",
                &of_project(&format!("/{}/exec", only(&admin)?)),
                Some(command),
            )?;
            ensure!(done["return"] == 0, "{done}");
            Ok(())
        })?;
        let name = only(&admin)?;
        let pairs = Pairs::measure(
            PAIRS,
            || source.timed(&server),
            || {
                let begin = Instant::now();
                let body = json!({ "name": "bench", "stateful": false });
                ask(
                    &admin,
                    "POST",
                    &of_project(&format!("/{name}/snapshots")),
                    Some(body),
                )?;
                let took = begin.elapsed();
                ask(
                    &admin,
                    "DELETE",
                    &of_project(&format!("/{name}/snapshots/bench")),
                    None,
                )?;
                Ok(took)
            },
        )?;
        let (ours, theirs, ratio) = pairs.median(Duration::as_secs_f64)?;
        let figures = (seconds(*ours), format!("{}, Incus", seconds(*theirs)));
        table.row(
            "a snapshot of 10 GB on Incus",
            figures,
            ratio,
            Target::AtMost(SNAPSHOT),
        );
        let figures = (seconds(*ours), String::new());
        let took = ours.as_secs_f64();
        table.row(
            "a snapshot of 10 GB on Incus, s",
            figures,
            took,
            Target::AtMost(AT_ONCE),
        );
        let host = cluster.first()?.address().to_string();
        let snapshot = source.take(&server, "kept")?;
        let remove = |id: &str| {
            let begin = Instant::now();
            server.send("DELETE", &format!("/api/instance/{id}/"), None)?;
            while ask(&admin, "GET", &of_project(""), None)?
                .to_string()
                .contains(id)
            {
                ensure!(begin.elapsed() < DEADLINE, "the instance is not removed");
                std::thread::sleep(Duration::from_millis(20));
            }
            Ok(())
        };
        let beside = || {
            let begin = Instant::now();
            let created = Source::create(&server, source.disk_gib)?;
            let instance = server.send("GET", &format!("/api/instance/{}/", created.id), None)?;
            has_ssh(&instance, &host)?;
            let took = begin.elapsed();
            remove(&created.id)?;
            Ok(took)
        };
        let pairs = source.clones(&server, &snapshot, &host, remove, beside)?;
        clones_row(
            table,
            "clone → SSH on Incus, of 10 GB",
            "a plain create",
            pairs,
        )
    });
    cluster.stop()?;
    measured
}

/// A server with the cluster's member as its node.
fn ours_on(cluster: &Cluster, dir: &Path) -> Result<Ours> {
    let [cert, key, pinned] = ["wharf.crt", "wharf.key", "incus.crt"].map(|name| dir.join(name));
    let made = rcgen::generate_simple_self_signed(vec![PROJECT.to_owned()])?;
    fs::write(&cert, made.cert.pem())?;
    fs::write(&key, made.signing_key.serialize_pem())?;
    fs::set_permissions(&key, Permissions::from_mode(0o600))?;
    fs::write(&pinned, cluster.certificate()?)?;
    Project::make(cluster, PROJECT, &made.cert.pem())?;
    let member = cluster.first()?;
    images::ensure_on_incus(&member.admin(), PROJECT, &["base"], None)?;
    let (name, address) = (member.name(), member.address());
    let node = format!(
        "driver = \"incus\"\nendpoint = \"{}\"\nssh_host = \"{address}\"\nlan_cidr = \"10.79.4.0/22\"\n\
         settings = {{ member = \"{name}\", project = \"{PROJECT}\", network = \"{NETWORK}\", \
         gateway = \"{GATEWAY}\", publish_address = \"{address}\" }}\n\
         tls = {{ cert = \"{}\", key = \"{}\", server_cert = \"{}\" }}\n",
        member.endpoint(),
        cert.display(),
        key.display(),
        pinned.display()
    );
    Ours::start_on(&node, member.admin(), dir)
}

fn of_project(part: &str) -> String {
    format!("/1.0/instances{part}?project={PROJECT}")
}

/// The name of the only instance. A proof of limits has one of its own for a moment.
fn only(admin: &HttpClient) -> Result<String> {
    let list = ask(admin, "GET", &of_project(""), None)?;
    let paths = list
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let mut names = paths.filter_map(|path| path.split('?').next()?.rsplit('/').next());
    let name = names.find(|name| name.starts_with("wh-"));
    name.map(str::to_owned).context("no instance")
}

/// Runs a command of the shell in a container of dockerd, to its end.
pub fn inside(client: &HttpClient, container: &str, command: &str) -> Result<()> {
    let send = |path: &str, body: Value| {
        let request = Request::new("POST", path).timeout(DEADLINE).json(body);
        client.send(request)?.ok()
    };
    let words = json!({ "Cmd": ["sh", "-c", command], "AttachStdout": true });
    let exec: Value = send(&format!("/containers/{container}/exec"), words)?.json()?;
    let id = text(&exec["Id"])?;
    send(&format!("/exec/{id}/start"), json!({ "Detach": false }))?;
    let ended = client.get(&format!("/exec/{id}/json"))?;
    ensure!(ended["ExitCode"] == 0, "{command}: {ended}");
    Ok(())
}

/// A running instance with data.
pub struct Source {
    pub id: String,
    disk_gib: u32,
}

impl Source {
    /// Creates an instance, and waits until it runs.
    pub fn create(ours: &Ours, disk_gib: u32) -> Result<Self> {
        let wanted = json!({
            "resource_type": "container", "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": disk_gib,
        });
        let instance = ours.create(wanted, DEADLINE)?;
        let id = text(&instance["uuid"])?;
        Ok(Self { id, disk_gib })
    }

    /// Creates it with data. `inside` runs a command in the engine's object, whose name on dockerd it gets.
    fn fill(
        ours: &Ours,
        disk_gib: u32,
        bytes: u64,
        inside: impl Fn(&str, &str) -> Result<()>,
    ) -> Result<Self> {
        let source = Self::create(ours, disk_gib)?;
        // Incus gives one command 100 seconds.
        let part = format!("head -c {PART} /dev/zero >> /home/user/data && sync");
        for _ in 0..bytes / PART {
            inside(&format!("wharf-{}", source.id), &part)?;
        }
        Ok(source)
    }

    /// Takes a snapshot, and waits until it is ready.
    pub fn take(&self, ours: &Ours, name: &str) -> Result<Value> {
        let path = format!("/api/instance/{}/snapshot/", self.id);
        let taken = ours.send("POST", &path, Some(json!({ "name": name })))?;
        ours.until("/api/snapshot/", &taken["id"], "ready", DEADLINE)
    }

    /// The time of a snapshot, which is removed then.
    fn timed(&self, ours: &Ours) -> Result<Duration> {
        let begin = Instant::now();
        let taken = self.take(ours, "measured")?;
        let took = begin.elapsed();
        let path = format!("/api/snapshot/{}/", text(&taken["id"])?);
        ours.send("DELETE", &path, None)?;
        while ours.send("GET", "/api/quota/", None)?["n_snapshots"]["used"] != 0 {
            ensure!(begin.elapsed() < DEADLINE, "the snapshot is not removed");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(took)
    }

    fn beside_commit(&self, ours: &Ours, client: &HttpClient, table: &mut Table) -> Result<()> {
        let copy = format!(
            "/commit?container=wharf-{}&repo=bench&tag=1&pause=true",
            self.id
        );
        let send = |method: &str, path: &str| {
            let request = Request::new(method, path).timeout(DEADLINE);
            client.send(request)?.ok()
        };
        let pairs = Pairs::measure(
            PAIRS,
            || self.timed(ours),
            || {
                let begin = Instant::now();
                send("POST", &copy)?;
                let took = begin.elapsed();
                send("DELETE", "/images/bench:1?force=true")?;
                Ok(took)
            },
        )?;
        let (ours, theirs, ratio) = pairs.median(Duration::as_secs_f64)?;
        table.row(
            "a snapshot of 1 GB",
            (seconds(*ours), format!("{}, dockerd", seconds(*theirs))),
            ratio,
            Target::AtMost(SNAPSHOT),
        );
        Ok(())
    }

    /// Pairs of a clone until it accepts SSH on this host, and of the baseline.
    fn clones(
        &self,
        ours: &Ours,
        snapshot: &Value,
        host: &str,
        remove: impl Fn(&str) -> Result<()>,
        beside: impl FnMut() -> Result<Duration>,
    ) -> Result<Pairs<Duration>> {
        let path = format!("/api/snapshot/{}/clone/", text(&snapshot["id"])?);
        let wanted = json!({ "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": self.disk_gib });
        Pairs::measure(
            PAIRS,
            || {
                let begin = Instant::now();
                let clone = ours.send("POST", &path, Some(wanted.clone()))?;
                let clone = ours.until("/api/instance/", &clone["uuid"], "running", DEADLINE)?;
                has_ssh(&clone, host)?;
                let took = begin.elapsed();
                remove(&text(&clone["uuid"])?)?;
                Ok(took)
            },
            beside,
        )
    }
}

fn clones_row(table: &mut Table, name: &str, by: &str, pairs: Pairs<Duration>) -> Result<()> {
    let (ours, theirs, ratio) = pairs.median(Duration::as_secs_f64)?;
    let figures = (seconds(*ours), format!("{}, {by}", seconds(*theirs)));
    table.row(name, figures, ratio, Target::AtMost(CLONE));
    Ok(())
}

/// Fails unless a running instance accepts SSH.
fn has_ssh(instance: &Value, host: &str) -> Result<()> {
    let port = u16::try_from(instance["wan_ssh_port"].as_u64().context("no port")?)?;
    ensure!(has_banner(host, port), "{host}:{port} has no SSH");
    Ok(())
}

pub fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

pub fn text(value: &Value) -> Result<String> {
    value.as_str().map(str::to_owned).context("no text")
}
