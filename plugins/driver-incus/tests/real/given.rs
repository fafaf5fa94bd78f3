//! The cluster and the inputs of the driver.

use crate::https::Https;
use driver_incus::context::Context;
use driver_incus::{ensure, inspect};
use serde_json::json;
use std::io::Read as _;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use wharf_guest::{
    Blueprint, Content, Error, File, Image, Network, Node, Phase, PublishedPort, Readiness, Report,
    ResourceType, Secret, Size, Spec, Tag, Target,
};
use wharf_testkit::incus::{self, Cluster, GATEWAY, LAN, Options, Project};
use wharf_testkit::packages::{self, Need};

pub const INSTALLATION: &str = "11111111-2222-4333-8444-555555555555";
/// The name of the base image in its blueprint.
pub const IMAGE: &str = "localhost/wharf/base:1";

/// From a call to its result, with many instances on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);

/// A cluster with a project.
pub struct Rig {
    pub cluster: Cluster,
    pub project: Project,
    dir: tempfile::TempDir,
}

impl Rig {
    pub fn start() -> Self {
        packages::ensure(&[Need {
            program: "curl",
            package: "curl",
            why: "the test asks Incus with it",
        }])
        .unwrap();
        let cluster = Cluster::start(&Options {
            dir: wharf_testkit::workspace::target().join("test-engine/incus-driver"),
            members: 3,
            disk_gib: 12,
            offline_after_s: 11,
            disposable: true,
            outside: None,
        })
        .unwrap();
        let dir = tempfile::tempdir().unwrap();
        let (cert, key) = (dir.path().join("wharf.crt"), dir.path().join("wharf.key"));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt"])
            .args(["ec_paramgen_curve:secp384r1", "-days", "30", "-nodes"])
            .args(["-subj", "/CN=wharf", "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&cert)
            .output()
            .unwrap();
        assert!(made.status.success());
        let pem = std::fs::read_to_string(&cert).unwrap();
        let project = Project::make(&cluster, "wharf", &pem).unwrap();
        Self {
            cluster,
            project,
            dir,
        }
    }

    /// Ends the cluster, and checks that nothing is left on the machine.
    pub fn stop(self) {
        let directories: Vec<PathBuf> = self
            .cluster
            .members()
            .iter()
            .map(incus::Member::directory)
            .collect();
        self.cluster.stop().unwrap();
        for directory in directories {
            assert!(!directory.exists(), "{}", directory.display());
        }
        let left = |program: &str, arguments: &[&str], text: &str| {
            let output = Command::new(program).args(arguments).output().unwrap();
            let output = String::from_utf8(output.stdout).unwrap();
            assert!(!output.contains(text), "{output}");
        };
        left("ip", &["netns", "list"], "wharf-incus-");
        left("ip", &["-brief", "link"], "whfi");
        left("losetup", &["--all"], "incus-driver");
    }

    /// The engine of a member, counted from 0.
    pub fn engine(&self, member: usize) -> Https {
        Https {
            endpoint: self.cluster.members()[member].endpoint(),
            cert: self.dir.path().join("wharf.crt"),
            key: self.dir.path().join("wharf.key"),
        }
    }

    /// The node of a member.
    pub fn node(&self, member: usize) -> Node {
        let member = &self.cluster.members()[member];
        let settings = json!({
            "member": member.name(),
            "project": self.project.name,
            "network": incus::NETWORK,
            "gateway": GATEWAY,
            "publish_address": member.address(),
        });
        Node {
            name: member.name(),
            installation: INSTALLATION.into(),
            settings: settings.to_string(),
            hint: String::new(),
        }
    }

    /// Calls the driver for a member.
    pub fn call<T>(
        &self,
        member: usize,
        call: impl FnOnce(&Context) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (node, engine) = (self.node(member), self.engine(member));
        call(&Context::new(&node, &engine)?)
    }

    /// Calls `ensure` until the instance is ready, and waits for its SSH server.
    pub fn make(&self, member: usize, spec: &Spec) {
        let mut spec = spec.clone();
        self.wait_for(
            member,
            &spec.tag.clone(),
            |phase| matches!(phase, Phase::Ready),
            |ctx| {
                let report = ensure::ensure(ctx, &spec);
                spec.may_exist = true;
                report
            },
        );
        self.await_banner(member, &spec);
    }

    /// Repeats a call until the phase is the wanted one.
    pub fn wait_for(
        &self,
        member: usize,
        tag: &Tag,
        wanted: impl Fn(&Phase) -> bool,
        mut call: impl FnMut(&Context) -> Result<Report, Error>,
    ) {
        let start = Instant::now();
        loop {
            let report = match self.call(member, &mut call) {
                Ok(report) => report,
                Err(Error::RetryLater(ms)) => {
                    std::thread::sleep(Duration::from_millis(ms.into()));
                    continue;
                }
                // The host tries again too: a busy machine exceeds the engine's own limits.
                Err(Error::Other(why)) if start.elapsed() < LIMIT => {
                    eprintln!("  {why}");
                    std::thread::sleep(Duration::from_secs(1));
                    continue;
                }
                Err(error) => panic!("{tag:?}: {error:?}"),
            };
            if wanted(&report.phase) {
                return;
            }
            assert!(start.elapsed() < LIMIT, "{report:?}");
            std::thread::sleep(Duration::from_millis(u64::from(
                report.again_ms.unwrap_or(200),
            )));
        }
    }

    /// Waits until the published port sends the banner of an SSH server.
    pub fn await_banner(&self, member: usize, spec: &Spec) {
        let address = (
            self.cluster.members()[member].address(),
            spec.published[0].node_port,
        );
        let start = Instant::now();
        while banner(address.into()).is_none() {
            assert!(start.elapsed() < Duration::from_secs(60), "{address:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The phase of an instance.
    pub fn phase(&self, member: usize, spec: &Spec) -> Phase {
        let report = self.call(member, |ctx| inspect::inspect(ctx, &spec.tag));
        report.unwrap().phase
    }

    /// Runs a shell command as root in an instance, and returns its output.
    pub fn run(&self, spec: &Spec, command: &str) -> String {
        let name = driver_incus::names::instance(INSTALLATION, &spec.tag);
        let output = self.cluster.members()[0]
            .inside("incus")
            .args([
                "exec",
                "--project",
                &self.project.name,
                &name,
                "--",
                "bash",
                "-c",
            ])
            .arg(command)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn banner(address: std::net::SocketAddr) -> Option<()> {
    let limit = Duration::from_millis(500);
    let mut stream = TcpStream::connect_timeout(&address, limit).ok()?;
    stream.set_read_timeout(Some(limit)).ok()?;
    let mut start = [0; 4];
    stream.read_exact(&mut start).ok()?;
    (&start == b"SSH-").then_some(())
}

/// The `n`th instance.
pub fn spec(n: u8) -> Spec {
    let file = |name: &str, mode, content| File {
        path: format!("/etc/wharf/first-boot/{name}"),
        mode,
        uid: 0,
        gid: 0,
        content,
    };
    assert!(LAN.starts_with("10.79."));
    Spec {
        tag: Tag {
            instance: format!("00000000-0000-4000-8000-0000000000{n:02}"),
            incarnation: 1,
        },
        generation: 3,
        resource_type: ResourceType::Container,
        hostname: format!("calm-river-{n}"),
        size: Size {
            n_vcpus: 1,
            mem_gib: 1,
            disk_size_gib: 2,
        },
        network: Network {
            id: "owner1".into(),
            subnet: "10.79.5.0/24".into(),
            gateway: "10.79.5.1".into(),
            address: format!("10.79.5.{}", n + 1),
        },
        published: vec![PublishedPort {
            node_port: 20_000 + u16::from(n),
            instance_port: 22,
        }],
        public_network: None,
        wan_ports: Vec::new(),
        gpu_devices: Vec::new(),
        may_exist: false,
        blueprint: Blueprint {
            images: vec![Image {
                engine_kind: "incus".into(),
                reference: IMAGE.into(),
            }],
            files: vec![
                file("user", 0o644, Content::Bytes(b"river\n".to_vec())),
                file("password", 0o600, Content::SecretCrypt(Secret::Password)),
            ],
            environment: vec![("WHARF_FLAVOR".into(), "base".into())],
            command: Vec::new(),
            health: Readiness::Ssh,
            ssh: true,
            web_port: None,
        },
    }
}

pub fn target(spec: &Spec) -> Target {
    Target {
        tag: spec.tag.clone(),
        generation: spec.generation + 1,
        resource_type: spec.resource_type,
        size: spec.size,
        network: spec.network.clone(),
        public_network: None,
        wan_ports: Vec::new(),
    }
}
