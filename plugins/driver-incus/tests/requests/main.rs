//! The requests of the file are those of the builders, byte by byte.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use driver_incus::bodies::{Action, Change, Creation, Isolation, Move, StartDone};
use driver_incus::context::Context;
use driver_incus::settings::Mode;
use driver_incus::{digest, forward::Forward, names, owner_network};
use serde::Serialize;
use serde_json::json;
use wharf_guest::fake::{Host, Http, Sent};
use wharf_guest::named::Call;
use wharf_guest::{
    Blueprint, Content, Engine, EngineError, File, Image, JobState, Network, Node, PublishedPort,
    Readiness, Request, ResourceType, Response, Size, Spec, Tag, Target,
};

const FILE: &str = include_str!("../../requests.toml");
const INSTALLATION: &str = "11111111-2222-4333-8444-555555555555";
const SETTINGS: [&str; 5] = [
    r#"{"member":"m1","gateway":"10.79.0.1","publish_address":"192.0.2.1","dns":"9.9.9.9"}"#,
    r#"{"member":"m1","gateway":"10.79.0.1","publish_address":"192.0.2.1"}"#,
    r#"{"member":"rack-1.x","gateway":"10.79.0.1","publish_address":"192.0.2.1","dns":"9.9.9.9 1.1.1.1","network":"br7","pool":"fast","project":"p","port_isolation":"false","pids_limit":77}"#,
    r#"{"member":"m1","uplink":"up0","acl":"rules","dns":"9.9.9.9","publish_cidr":"198.18.40.128/26","publish_from":20000}"#,
    r#"{"member":"m1","uplink":"up0","acl":"rules","dns":"9.9.9.9","publish_cidr":"198.18.0.0/16","publish_from":1,"gateway":"10.79.0.1","pids_limit":9}"#,
];

struct Silent;

impl Http for Silent {
    fn send(&self, _: &Sent) -> Result<Response, EngineError> {
        Err(EngineError::Timeout)
    }
}

struct Old;

impl Engine for Old {
    fn send(&self, _: &Request) -> Result<Response, EngineError> {
        Err(EngineError::Timeout)
    }

    fn job(&self, _: &str, _: &Request) -> Result<JobState, EngineError> {
        Err(EngineError::Timeout)
    }
}

fn node(settings: &str) -> Node {
    Node {
        name: "n1".into(),
        installation: INSTALLATION.into(),
        settings: settings.into(),
        hint: String::new(),
    }
}

fn specs() -> Vec<Spec> {
    let mut all = Vec::new();
    let ports = [&[][..], &[(20_001, 22)], &[(20_003, 22), (20_002, 8080)]];
    let gpus = [
        &[][..],
        &["0000:01:00.0"],
        &["0000:01:00.0", "0000:0a:1f.7"],
    ];
    let variables = [
        &[][..],
        &[("WHARF_FLAVOR", "base")],
        &[("A", ""), ("Z_9", "{size}\n\"ü\""), ("LC_ALL", "C")],
    ];
    for size in [(1, 1, 10), (2, 4, 20), (64, 512, 2000)] {
        for address in [
            ("10.79.5.0/24", "10.79.5.1", "10.79.5.2"),
            ("10.80.0.0/22", "10.80.0.1", "10.80.3.254"),
        ] {
            for published in ports {
                for gpus in gpus {
                    for variables in variables {
                        all.push(spec(size, address, published, gpus, variables));
                    }
                }
            }
        }
    }
    all
}

fn spec(
    (n_vcpus, mem_gib, disk_size_gib): (u32, u32, u32),
    (subnet, gateway, address): (&str, &str, &str),
    published: &[(u16, u16)],
    gpus: &[&str],
    variables: &[(&str, &str)],
) -> Spec {
    let file = |path: &str, mode, uid| File {
        path: path.into(),
        mode,
        uid,
        gid: 7,
        content: Content::Bytes(b"u\n".to_vec()),
    };
    Spec {
        tag: Tag {
            instance: "00000000-0000-4000-8000-000000000001".into(),
            incarnation: 12,
        },
        generation: 3,
        resource_type: ResourceType::Container,
        hostname: "calm-river-1".into(),
        size: Size {
            n_vcpus,
            mem_gib,
            disk_size_gib,
        },
        network: Network {
            id: "owner1".into(),
            subnet: subnet.into(),
            gateway: gateway.into(),
            address: address.into(),
        },
        published: published
            .iter()
            .map(|(node_port, instance_port)| PublishedPort {
                node_port: *node_port,
                instance_port: *instance_port,
            })
            .collect(),
        public_network: None,
        wan_ports: Vec::new(),
        gpu_devices: gpus.iter().map(|gpu| (*gpu).to_owned()).collect(),
        may_exist: false,
        blueprint: Blueprint {
            images: vec![
                Image {
                    engine_kind: "docker".into(),
                    reference: "other".into(),
                },
                Image {
                    engine_kind: "incus".into(),
                    reference: "localhost/wharf/base:1".into(),
                },
            ],
            files: vec![
                file("/etc/wharf/first-boot/user", 0o600, 0),
                file("/etc/wharf/x", 0o4755, 1000),
            ],
            environment: variables
                .iter()
                .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
                .collect(),
            command: Vec::new(),
            health: Readiness::Ssh,
            ssh: true,
            web_port: None,
        },
    }
}

fn target(spec: &Spec) -> Target {
    Target {
        tag: spec.tag.clone(),
        generation: 4,
        resource_type: ResourceType::Container,
        size: spec.size,
        network: spec.network.clone(),
        public_network: None,
        wan_ports: Vec::new(),
    }
}

fn is(host: &Host<'_>, call: &Call, method: &str, path: &str, body: Option<&dyn any::Json>) {
    let written = call
        .show(host)
        .unwrap_or_else(|error| panic!("{call:?}: {error:?}"));
    assert_eq!(
        (written.method.as_str(), written.target.as_str()),
        (method, path)
    );
    let expected = body.map(|body| body.json().to_string());
    assert_eq!(written.body, expected, "{call:?}");
}

mod any {
    pub trait Json {
        fn json(&self) -> serde_json::Value;
    }
    impl<T: super::Serialize> Json for T {
        fn json(&self) -> serde_json::Value {
            serde_json::to_value(self).unwrap()
        }
    }
}

#[test]
fn bodies_are_those_of_the_builders() {
    for settings in SETTINGS {
        let node = node(settings);
        let ctx = Context::new(&node, &Old).unwrap();
        let (p, m, pool) = (
            &ctx.settings.project,
            &ctx.settings.member,
            &ctx.settings.pool,
        );
        for spec in specs() {
            let name = names::instance(INSTALLATION, &spec.tag);
            let network = names::network(INSTALLATION, &spec.network.gateway);
            let own = format!("/1.0/instances/{name}?project={p}");
            let state = format!("/1.0/instances/{name}/state?project={p}");
            let digest = digest::of(&spec);
            let host = Host::create(FILE, &node, &spec, &Silent);
            let named = Call::named;
            let body = Creation::new(&ctx, &spec, "localhost/wharf/base:1");
            is(
                &host,
                &named("create").with("digest", &digest),
                "POST",
                &format!("/1.0/instances?project={p}&target={m}"),
                Some(&body),
            );
            let size = Change::of(&ctx, &spec.size);
            is(&host, &named("change"), "PATCH", &own, Some(&size));
            let target = target(&spec);
            let change = Host::change(FILE, &node, &target, &Silent);
            is(
                &change,
                &named("change").flag("before-start", false),
                "PATCH",
                &own,
                Some(&size),
            );
            is(
                &change,
                &named("change").flag("before-start", true),
                "PATCH",
                &own,
                Some(&Change::before_start(&ctx, &spec.size)),
            );
            is(
                &change,
                &named("choose-ids").with("isolated", "1"),
                "PATCH",
                &own,
                Some(&Isolation::new("1")),
            );
            is(
                &change,
                &named("note-start"),
                "PATCH",
                &own,
                Some(&StartDone::default()),
            );
            is(
                &change,
                &named("start"),
                "PUT",
                &state,
                Some(&Action::start()),
            );
            is(
                &change,
                &named("stop").with("grace", 30),
                "PUT",
                &state,
                Some(&Action::stop(30)),
            );
            is(
                &change,
                &named("kill"),
                "PUT",
                &state,
                Some(&Action::kill()),
            );
            is(&change, &named("delete"), "DELETE", &own, None);
            is(&change, &named("read"), "GET", &own, None);
            is(&change, &named("usage"), "GET", &state, None);
            is(
                &change,
                &named("read-network"),
                "GET",
                &format!("/1.0/networks/{network}?project={p}"),
                None,
            );
            is(
                &change,
                &named("delete-network"),
                "DELETE",
                &format!("/1.0/networks/{network}?project={p}"),
                None,
            );
            is(
                &change,
                &named("forwards"),
                "GET",
                &format!("/1.0/networks/{network}/forwards?project={p}&recursion=1"),
                None,
            );
            is(
                &change,
                &named("operations"),
                "GET",
                &format!("/1.0/operations?project={p}&recursion=1"),
                None,
            );
            is(
                &change,
                &named("disks"),
                "GET",
                &format!("/1.0/storage-pools/{pool}/volumes/container?project={p}&target={m}"),
                None,
            );
            is(
                &change,
                &named("metrics"),
                "GET",
                &format!("/1.0/metrics?project={p}"),
                None,
            );
            let moved = Host::move_here(FILE, &node, &spec, &Silent);
            is(
                &moved,
                &named("move-here"),
                "POST",
                &format!("{own}&target={m}"),
                Some(&Move { migration: true }),
            );
            is(
                &moved,
                &named("readdress").with("digest", &digest),
                "PATCH",
                &own,
                Some(&Change::of_place(&ctx, &spec)),
            );
            let ovn = match &ctx.settings.mode {
                Mode::Ovn(ovn) => ovn,
                Mode::Bridge(_) => {
                    assert!(named("create-network").show(&host).is_err());
                    for port in &spec.published {
                        assert!(
                            named("create-forward")
                                .with("port", port.node_port)
                                .show(&host)
                                .is_err()
                        );
                    }
                    continue;
                }
            };
            is(
                &host,
                &named("create-network"),
                "POST",
                &format!("/1.0/networks?project={p}"),
                Some(&owner_network::Creation::new(&ctx, ovn, &spec.network)),
            );
            for port in &spec.published {
                let forward = Forward::new(&ctx, ovn, &spec, port).unwrap();
                let address = serde_json::to_value(&forward).unwrap()["listen_address"]
                    .as_str()
                    .unwrap()
                    .to_owned();
                let at = format!("/1.0/networks/{network}/forwards");
                for host in [&host, &moved] {
                    is(
                        host,
                        &named("create-forward").with("port", port.node_port),
                        "POST",
                        &format!("{at}?project={p}"),
                        Some(&forward),
                    );
                    is(
                        host,
                        &named("replace-forward").with("port", port.node_port),
                        "PUT",
                        &format!("{at}/{address}?project={p}"),
                        Some(&forward),
                    );
                }
            }
        }
    }
}

#[test]
fn targets_are_those_of_the_driver() {
    for settings in SETTINGS {
        let node = node(settings);
        let ctx = Context::new(&node, &Old).unwrap();
        let (p, m, pool) = (
            &ctx.settings.project,
            &ctx.settings.member,
            &ctx.settings.pool,
        );
        let host = Host::node(FILE, &node, &Silent);
        let volume = format!("/1.0/storage-pools/{pool}/volumes/custom");
        let mark = names::mark_volume(INSTALLATION);
        for (name, path) in [
            ("server", "/1.0".to_owned()),
            ("member", format!("/1.0/cluster/members/{m}")),
            ("resources", format!("/1.0/resources?target={m}")),
            ("project", format!("/1.0/projects/{p}")),
            ("pool", format!("/1.0/storage-pools/{pool}")),
            (
                "pool-resources",
                format!("/1.0/storage-pools/{pool}/resources?target={m}"),
            ),
            (
                "disks",
                format!("/1.0/storage-pools/{pool}/volumes/container?project={p}&target={m}"),
            ),
            ("metrics", format!("/1.0/metrics?project={p}")),
            (
                "read-mark",
                format!("{volume}/{mark}?project={p}&target={m}"),
            ),
            (
                "use-of-mark",
                format!("{volume}/{mark}/state?project={p}&target={m}"),
            ),
        ] {
            is(&host, &Call::named(name), "GET", &path, None);
        }
        match &ctx.settings.mode {
            Mode::Bridge(bridge) => is(
                &host,
                &Call::named("bridge"),
                "GET",
                &format!("/1.0/networks/{}?project={p}", bridge.network),
                None,
            ),
            Mode::Ovn(ovn) => {
                is(
                    &host,
                    &Call::named("uplink"),
                    "GET",
                    &format!("/1.0/networks/{}", ovn.uplink),
                    None,
                );
                is(
                    &host,
                    &Call::named("acl"),
                    "GET",
                    &format!("/1.0/network-acls/{}?project={p}", ovn.acl),
                    None,
                );
            }
        }
        let images = ["localhost/wharf/base:1".to_owned()];
        is(
            &Host::look(FILE, &node, &images, &Silent),
            &Call::named("images"),
            "GET",
            &format!("/1.0/images/aliases?project={p}"),
            None,
        );
        let body = json!({ "name": mark, "config": { "size": "16MiB", "user.wharf.mark": "m" } });
        is(
            &Host::mark(FILE, &node, "m", &Silent),
            &Call::named("write-mark"),
            "POST",
            &format!("{volume}?project={p}&target={m}"),
            Some(&body),
        );
        let spec = specs().pop().unwrap();
        let host = Host::create(FILE, &node, &spec, &Silent);
        let files = format!(
            "/1.0/instances/{}/files",
            names::instance(INSTALLATION, &spec.tag)
        );
        is(
            &host,
            &Call::named("make-directory").with("directory", "/etc/wharf"),
            "POST",
            &format!("{files}?path=%2Fetc%2Fwharf&project={p}"),
            None,
        );
        is(
            &host,
            &Call::named("write-file").with("file", "/etc/wharf/x"),
            "POST",
            &format!("{files}?path=%2Fetc%2Fwharf%2Fx&project={p}"),
            None,
        );
    }
}
