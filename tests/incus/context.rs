//! The cluster.

use crate::lab::{
    Act, Facts, IMAGE, Lab, Neighbours, Object, Once, end_neighbours, inside, patient, text, uuid,
};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use wharf_testkit::engine::Running as _;
use wharf_testkit::http::HttpClient;
use wharf_testkit::images;
use wharf_testkit::incus::{self, Cluster, ClusterOptions, GATEWAY, NETWORK, Project};
use wharf_tests::{Authority, Certificate, Ports, Server, eventually, until};

/// The project of all instances.
const PROJECT: &str = "wharf";
/// The time in which an idle engine gives an instance its number of CPUs.
const SOON: Duration = Duration::from_secs(10);
/// The member of tests that need one. Others disturb the first, or have the third for themselves.
const MEMBER: usize = 1;

/// The facts about Incus, apart from the host.
pub const FACTS: Facts = Facts {
    host: String::new(),
    has_owners_networks: false,
    remaps_root: true,
    maps_each_alone: true,
    drops_raw_sockets: false,
    enforces_disk_size: true,
    // Its own copy of the image counts.
    usable_disk_mib: 9_500,
    grows_running: true,
    knows_usage_at_once: false,
    sizes: &[(2, 3)],
    many: 8,
};

/// A private cluster with a project and the base image.
pub struct IncusContext {
    cluster: Mutex<Cluster>,
    members: Vec<Member>,
    admin: HttpClient,
    tls: String,
    next_lan: AtomicU8,
    certificates: Authority,
    neighbours: Once<Neighbours>,
    _files: TempDir,
}

/// A member, as a node needs it.
pub struct Member {
    pub name: String,
    pub address: String,
    pub endpoint: String,
}

impl IncusContext {
    pub fn start() -> Result<Self> {
        wharf_tests::install_ssh()?;
        let cluster = Cluster::start(&ClusterOptions {
            dir: directory(),
            members: 3,
            disk_gib: 40,
            offline_after_s: 11,
            disposable: true,
            outside: None,
        })?;
        let certificates = Authority::new()?;
        let own = certificates.issue("wharf", &[])?;
        Project::make(&cluster, PROJECT, &fs::read_to_string(&own.cert)?)?;
        let files = tempfile::tempdir()?;
        let of_cluster = files.path().join("cluster.crt");
        fs::write(&of_cluster, cluster.certificate()?)?;
        let members: Vec<_> = cluster
            .members()
            .iter()
            .map(|member| Member {
                name: member.name(),
                address: member.address().to_string(),
                endpoint: member.endpoint(),
            })
            .collect();
        let first = cluster.members().first().context("no member")?;
        let admin = first.admin();
        images::ensure_on_incus(&admin, PROJECT, &["base"], None)?;
        Ok(Self {
            tls: pinned(&own, &of_cluster),
            cluster: Mutex::new(cluster),
            members,
            admin,
            next_lan: AtomicU8::new(1),
            certificates,
            neighbours: Once::new(),
            _files: files,
        })
    }

    /// Ends the cluster, and checks that nothing is left on the machine.
    pub fn stop(self) -> Result<()> {
        let ended = end_neighbours(&self);
        let cluster = self
            .cluster
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        // `/run/wharf-incus-ID`; namespaces, links and storage have the id or the directory in their names.
        let run = cluster.first()?.directory();
        let run = run.parent().context("no directory")?.to_owned();
        let name = run.file_name().unwrap_or_default().to_string_lossy();
        let id = name.rsplit('-').next().context("no id")?.to_owned();
        cluster.stop()?;
        ensure!(!run.exists(), "{} is left", run.display());
        for (program, arguments, text) in [
            ("ip", &["netns", "list"][..], id.as_str()),
            ("ip", &["-brief", "link"], &id),
            ("losetup", &["--all"], "test-engine/incus"),
        ] {
            let output = Command::new(program).args(arguments).output()?;
            let output = String::from_utf8(output.stdout)?;
            ensure!(!output.contains(text), "{program}: {output}");
        }
        ended
    }

    /// Starts daemons again that have crashed. Tests go on: instances outlive a daemon.
    pub fn supervise(&self) {
        if let Err(error) = self.cluster().revive() {
            println!("a daemon that crashed does not start: {error:#}");
        }
    }

    /// The cluster itself, for a test that runs alone.
    pub fn cluster(&self) -> MutexGuard<'_, Cluster> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A member, counted from 0.
    pub fn member(&self, at: usize) -> &Member {
        &self.members[at]
    }

    /// Starts a server with these members as its nodes.
    pub fn server(&self, members: &[usize]) -> Result<Server> {
        Server::start(&self.settings_of(members, ""))
    }

    /// The settings of such a server, after settings that precede nodes.
    pub fn settings_of(&self, members: &[usize], more: &str) -> String {
        self.settings_with(members, Ports::take(), more)
    }

    /// Returns such settings with these ports.
    pub fn settings_with(&self, members: &[usize], ports: Ports, more: &str) -> String {
        // Without another interval: a look at a member makes its daemon read all of its instances.
        let more = patient(more);
        let nodes = members.iter().map(|at| self.node(self.member(*at)));
        format!("{more}{}{}", ports.settings(), nodes.collect::<String>())
    }

    /// A node with a part of the bridge's addresses that no other node has.
    fn node(&self, member: &Member) -> String {
        let Member {
            name,
            address,
            endpoint,
        } = member;
        let lan = 4 * self.next_lan.fetch_add(1, Ordering::Relaxed);
        format!(
            "[[node]]\nname = \"{name}\"\ndriver = \"incus\"\ncluster = \"rack\"\n\
             endpoint = \"{endpoint}\"\nssh_host = \"{address}\"\n\
             capacity = {{ n_vcpus = 16, mem_gib = 64, disk_size_gib = 500 }}\n\
             lan_cidr = \"10.79.{lan}.0/22\"\n\
             settings = {{ member = \"{name}\", project = \"{PROJECT}\", network = \"{NETWORK}\", \
             gateway = \"{GATEWAY}\", publish_address = \"{address}\" }}\n{}",
            self.tls
        )
    }

    /// A certificate that the cluster does not know.
    pub fn unknown_certificate(&self) -> Result<Certificate> {
        self.certificates.issue("unknown", &[])
    }

    /// Sends a request with all rights, which must succeed, and waits for the end of its operation.
    pub fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value> {
        incus::ask(&self.admin, method, path, body)
    }

    /// Sends a request about an instance; `part` follows its path.
    pub fn on(
        &self,
        instance: &Value,
        method: &str,
        part: &str,
        body: Option<Value>,
    ) -> Result<Value> {
        let object = self.raw_object(instance)?;
        let name = text(&object["name"]);
        let (path, query) = part.split_once('?').unwrap_or((part, ""));
        let path = format!("/1.0/instances/{name}{path}?project={PROJECT}&{query}");
        self.ask(method, &path, body)
    }

    /// The engine's objects of an instance, in its words.
    pub fn raw_objects(&self, instance: &Value) -> Result<Vec<Value>> {
        let path = format!("/1.0/instances?project={PROJECT}&recursion=1");
        let all = self.ask("GET", &path, None)?;
        let mut all = all.as_array().cloned().unwrap_or_default();
        all.retain(|one| text(&one["name"]).contains(uuid(instance)));
        Ok(all)
    }

    /// The only one.
    pub fn raw_object(&self, instance: &Value) -> Result<Value> {
        let mut all = self.raw_objects(instance)?;
        ensure!(all.len() == 1, "{} objects: {all:?}", all.len());
        all.pop().context("no object")
    }

    /// Runs a script of `sh` in the namespaces of a member, with the path of its pool, and returns the output.
    pub fn on_pool(&self, at: usize, script: &str) -> Result<String> {
        let cluster = self.cluster();
        let member = cluster.members().get(at).context("no such member")?;
        let pool = member.directory().join("storage-pools/default");
        let mut shell = member.inside("sh");
        drop(cluster);
        let output = shell.args(["-ec", script, "sh"]).arg(pool).output()?;
        ensure!(output.status.success(), "{script}: {output:?}");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Creates a container by hand, without Wharf, with this configuration.
    pub fn make(&self, member: usize, name: &str, config: Value) -> Result<()> {
        let path = format!(
            "/1.0/instances?project={PROJECT}&target={}",
            self.member(member).name
        );
        let root = json!({ "type": "disk", "path": "/", "pool": incus::POOL });
        let body = json!({
            "name": name, "type": "container", "profiles": [], "devices": { "root": root },
            "config": config,
            "source": { "type": "image", "alias": IMAGE },
        });
        self.ask("POST", &path, Some(body)).map(drop)
    }
}

/// The directory of the cluster. Concurrent runs need different directories.
fn directory() -> PathBuf {
    let usual = || wharf_testkit::workspace::target().join("test-engine");
    let all = std::env::var_os("WHARF_TEST_ENGINE_DIR").map_or_else(usual, PathBuf::from);
    all.join("incus")
}

/// The setting `tls` of a node that accepts one certificate of the engine.
pub fn pinned(own: &Certificate, of_cluster: &std::path::Path) -> String {
    own.node_tls(of_cluster).replace(" ca =", " server_cert =")
}

impl Lab for IncusContext {
    fn facts(&self) -> Facts {
        Facts {
            host: self.member(MEMBER).address.clone(),
            ..FACTS
        }
    }

    fn settings(&self, more: &str) -> Result<String> {
        Ok(self.settings_of(&[MEMBER], more))
    }

    fn objects(&self, instance: &Value) -> Result<Vec<Object>> {
        let all = self.raw_objects(instance)?;
        Ok(all.iter().map(object).collect())
    }

    fn by_hand(&self, instance: &Value, act: Act) -> Result<()> {
        let state = |action: &str| Some(json!({ "action": action, "timeout": 10, "force": true }));
        match act {
            Act::Stop => self.on(instance, "PUT", "/state", state("stop"))?,
            Act::Start => self.on(instance, "PUT", "/state", state("start"))?,
            Act::Remove => {
                if self.object(instance)?.runs {
                    self.by_hand(instance, Act::Stop)?;
                }
                self.on(instance, "DELETE", "", None)?
            }
        };
        Ok(())
    }

    /// All instances are on one bridge of the operator's.
    fn networks(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn neighbours(&self) -> &Once<Neighbours> {
        &self.neighbours
    }

    fn has_size(&self, instance: &Value, (n_vcpus, mem_gib): (u32, u32)) -> Result<()> {
        is_configured(&self.raw_object(instance)?["config"], (n_vcpus, mem_gib))?;
        let ram = inside(instance, "free --mebi | awk '/^Mem/ {print $2}'")?;
        ensure!(ram == (mem_gib * 1024).to_string(), "{ram}");
        let shown = || Ok::<_, anyhow::Error>(inside(instance, "nproc")? == n_vcpus.to_string());
        if eventually("its CPUs", SOON, || Ok(shown()?.then_some(()))).is_err() {
            // The engine moves instances to their CPUs in the background. On a busy machine it may read the
            // old number then, until the next instance starts or stops.
            println!("the engine has missed the new number of CPUs");
            let name = "wakes-the-engine";
            self.make(MEMBER, name, json!({}))?;
            let instance = json!({ "uuid": name });
            self.by_hand(&instance, Act::Start)?;
            self.by_hand(&instance, Act::Remove)?;
        }
        until("the instance has its CPUs", || Ok(shown()?.then_some(())))
    }
}

/// Checks the limits in the configuration of an instance.
pub fn is_configured(config: &Value, (n_vcpus, mem_gib): (u32, u32)) -> Result<()> {
    let cpus = text(&config["limits.cpu"]);
    ensure!(cpus == n_vcpus.to_string(), "{config}");
    ensure!(
        config["limits.memory"] == format!("{mem_gib}GiB"),
        "{config}"
    );
    ensure!(config["limits.processes"] == "4096", "{config}");
    Ok(())
}

fn object(raw: &Value) -> Object {
    Object {
        runs: raw["status"] == "Running",
        networks: Vec::new(),
        place: text(&raw["location"]).to_owned(),
    }
}
