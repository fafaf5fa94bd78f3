//! The cluster that all tests of this binary share.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;
use wharf_testkit::http::Client;
use wharf_testkit::incus::{self, Cluster, GATEWAY, NETWORK, Options, Project};
use wharf_tests::{Api, Authority, Certificate, Login, Ports, Server, small, until};

/// The name of the base image in blueprints.
pub const IMAGE: &str = "localhost/wharf/base:1";
/// The project of all instances.
const PROJECT: &str = "wharf";
/// Seconds between two looks at a node, so that tests need not wait.
const OFTEN: &str = "[limits]\nobserve_every_ms = 500\n";

/// A private cluster with a project and the base image.
pub struct Context {
    cluster: Mutex<Cluster>,
    members: Vec<Member>,
    admin: Client,
    tls: String,
    next_lan: AtomicU8,
    certificates: Authority,
    _files: TempDir,
}

/// A member, as a node needs it.
pub struct Member {
    pub name: String,
    pub address: String,
    pub endpoint: String,
}

impl Context {
    pub fn start() -> Result<Self> {
        wharf_tests::install_ssh()?;
        let cluster = Cluster::start(&Options {
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
        incus::image::ensure(&admin, PROJECT, &["base"])?;
        Ok(Self {
            tls: pinned(&own, &of_cluster),
            cluster: Mutex::new(cluster),
            members,
            admin,
            next_lan: AtomicU8::new(1),
            certificates,
            _files: files,
        })
    }

    /// Ends the cluster, and checks that nothing is left on the machine.
    pub fn stop(self) -> Result<()> {
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
        Ok(())
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
        Server::start(&self.settings(members))
    }

    /// The settings of such a server.
    pub fn settings(&self, members: &[usize]) -> String {
        let nodes = members.iter().map(|at| self.node(self.member(*at)));
        format!(
            "{OFTEN}{}{}",
            Ports::take().settings(),
            nodes.collect::<String>()
        )
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
    pub fn by_hand(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value> {
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
        let name = self.object(instance)?["name"].clone();
        let name = name.as_str().unwrap_or_default();
        let (path, query) = part.split_once('?').unwrap_or((part, ""));
        let path = format!("/1.0/instances/{name}{path}?project={PROJECT}&{query}");
        self.by_hand(method, &path, body)
    }

    /// The engine's objects of an instance.
    pub fn objects(&self, instance: &Value) -> Result<Vec<Value>> {
        let path = format!("/1.0/instances?project={PROJECT}&recursion=1");
        let all = self.by_hand("GET", &path, None)?;
        let is_own = |one: &&Value| {
            one["name"]
                .as_str()
                .is_some_and(|n| n.contains(uuid(instance)))
        };
        Ok(all
            .as_array()
            .into_iter()
            .flatten()
            .filter(is_own)
            .cloned()
            .collect())
    }

    /// The engine's only object of an instance.
    pub fn object(&self, instance: &Value) -> Result<Value> {
        let mut all = self.objects(instance)?;
        ensure!(all.len() == 1, "{} objects: {all:?}", all.len());
        all.pop().context("no object")
    }

    /// Waits until the engine has no object of an instance.
    pub fn gone(&self, instance: &Value) -> Result<()> {
        until("the engine has no object of the instance", || {
            Ok(self.objects(instance)?.is_empty().then_some(()))
        })
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
        self.by_hand("POST", &path, Some(body)).map(drop)
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

pub fn uuid(instance: &Value) -> &str {
    instance["uuid"].as_str().unwrap_or_default()
}

/// A login with the password that the interface shows.
pub fn user(instance: &Value) -> Login<'_> {
    let password = instance["original_service_password"].as_str();
    Login::Password(password.unwrap_or_default())
}

/// Runs a command in an instance, as its user.
pub fn inside(instance: &Value, command: &str) -> Result<String> {
    user(instance).output(instance, command)
}

/// Creates the smallest container and waits until it runs.
pub fn running(api: &Api) -> Result<Value> {
    named(api, None)
}

/// Creates the smallest container of this name and waits until it runs.
pub fn named(api: &Api, name: Option<&str>) -> Result<Value> {
    let mut body = small("container");
    if let Some(name) = name {
        body["name"] = json!(name);
    }
    let created = api.create(&body)?.expect(201)?;
    api.wait_for(uuid(&created), "running")
}

/// Deletes an instance; the engine must have no object of it then.
pub fn remove(context: &Context, api: &Api, instance: &Value) -> Result<()> {
    api.delete(uuid(instance))?.expect(204)?;
    context.gone(instance)
}
