//! Requests of the shipped driver, and of hostile or broken ones.

mod bodies;
mod gpus;
mod learned;
mod networks;
mod paths;
mod replacing;
mod required;
mod vms;
mod volumes;

use crate::policy::{CheckedRequest, Policy, PolicyFile, Refusal};
use crate::{Body, Request};
use http::Method;
use serde_json::{Value, json};
use wharf_domain::blueprint::{Content, File};
use wharf_domain::capacity::Size;
use wharf_domain::driver::{Network, PublishedPort, Tag};
use wharf_domain::ids::InstanceId;
use wharf_domain::secret::SecretKind;
use wharf_requests::{CallScope, CreateScope, Subject};

const ID: &str = "0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f";
const OTHER: &str = "11111111-3c1e-4f43-9d2b-2c1c1f8f8f8f";

fn scope() -> CallScope {
    CallScope {
        changes: true,
        subject: Some(Subject {
            tag: Tag {
                instance: InstanceId::parse(ID).unwrap(),
                incarnation: 3,
            },
            size: Some(Size {
                n_vcpus: 2,
                mem_gib: 1,
                disk_size_gib: 10,
            }),
            network: Some(Network {
                id: "o1".into(),
                subnet: "10.80.1.0/24".parse().unwrap(),
                gateway: "10.80.1.1".parse().unwrap(),
                address: "10.80.1.7".parse().unwrap(),
            }),
            creation: Some(CreateScope {
                hostname: "demo".into(),
                images: vec!["localhost/wharf/base:1".into()],
                environment: vec![("LANG".into(), "C.UTF-8".into())],
                command: Vec::new(),
                published: vec![PublishedPort {
                    node_port: 20001,
                    instance_port: 22,
                }],
                gpu_devices: vec!["a.example/gpu=1".into()],
                files: vec![password()],
            }),
            public_network: None,
            vm_ports: None,
            limits_before: None,
            image_bytes: 0,
            no_disk_limit: false,
        }),
        ..CallScope::node("home")
    }
}

fn password() -> File {
    File {
        path: "/etc/wharf/first-boot/password".into(),
        mode: 0o600,
        uid: 0,
        gid: 0,
        content: Content::SecretCrypt(SecretKind::Password),
    }
}

/// The policy of a node with these settings.
fn docker(settings: &Value) -> Result<Policy, String> {
    let text = include_str!("../../../../../../plugins/driver-docker/policy.toml");
    Policy::new(&PolicyFile::of_program(text).unwrap(), settings)
}

fn policy() -> Policy {
    docker(&json!({ "ulimits": { "nofile": 1024 }, "dns": ["10.0.0.53"] })).unwrap()
}

fn ask(scope: &CallScope, method: &str, path: &str, body: Body) -> Result<CheckedRequest, Refusal> {
    let request = Request {
        method: Method::from_bytes(method.as_bytes()).unwrap(),
        path: path.into(),
        headers: Vec::new(),
        body,
        timeout: None,
    };
    policy().check(scope, &request, false)
}

fn creation() -> Value {
    json!({
        "Image": "localhost/wharf/base:1",
        "Hostname": "demo",
        "Labels": {
            "io.wharf.installation": "home",
            "io.wharf.instance": ID,
            "io.wharf.incarnation": "3",
            "io.wharf.spec": "abc",
        },
        "Env": ["LANG=C.UTF-8"],
        "ExposedPorts": { "22/tcp": {} },
        "HostConfig": {
            "NetworkMode": "wharf-n0a500100ome",
            "CpuPeriod": 100_000, "CpuQuota": 200_000,
            "Memory": 1 << 30, "MemorySwap": 1 << 30,
            "PidsLimit": 4096,
            "CapDrop": ["NET_RAW"],
            "Sysctls": { "net.ipv4.ping_group_range": "0 65535" },
            "ShmSize": 1 << 29,
            "RestartPolicy": { "Name": "no" },
            "LogConfig": { "Type": "json-file", "Config": { "max-size": "10m" } },
            "PortBindings": { "22/tcp": [{ "HostIp": "0.0.0.0", "HostPort": "20001" }] },
            "StorageOpt": { "size": "10G" },
            "Dns": ["10.0.0.53"],
            "DeviceRequests": [{ "Driver": "cdi", "DeviceIDs": ["a.example/gpu=1"] }],
            "Ulimits": [{ "Name": "nofile", "Soft": 1024, "Hard": 1024 }],
        },
        "NetworkingConfig": {
            "EndpointsConfig": { "wharf-n0a500100ome": {
                "IPAMConfig": { "IPv4Address": "10.80.1.7" },
                "MacAddress": "02:42:0a:50:01:07",
            } },
        },
    })
}

fn create(body: &Value) -> Result<CheckedRequest, Refusal> {
    ask(
        &scope(),
        "POST",
        &format!("/containers/create?name=wharf-{ID}"),
        Body::Json(body.to_string()),
    )
}

#[test]
fn what_the_driver_needs_passes() {
    let own = format!("/v1.41/containers/wharf-{ID}");
    let filters = "%7B%22label%22%3A%5B%22io.wharf.installation%3Dhome%22%5D%7D";
    for (method, path) in [
        ("GET", "/version".to_owned()),
        ("GET", "/info".to_owned()),
        ("GET", "/_ping".to_owned()),
        (
            "GET",
            format!("/containers/json?all=true&filters={filters}"),
        ),
        ("GET", format!("{own}/json?size=true")),
        ("GET", format!("{own}/stats?stream=false&one-shot=true")),
        ("GET", format!("{own}/top?ps_args=rss")),
        ("POST", format!("{own}/start")),
        ("POST", format!("{own}/stop?t=10")),
        ("DELETE", format!("{own}?force=true&v=true")),
        ("GET", "/networks/wharf-n0a500100ome".to_owned()),
        ("DELETE", "/networks/wharf-n0a500100ome".to_owned()),
        ("GET", "/images/localhost/wharf/base:1/json".to_owned()),
        ("GET", "/images/localhost/wharf/base:1/history".to_owned()),
    ] {
        let checked = ask(&scope(), method, &path, Body::Empty);
        checked.unwrap_or_else(|why| panic!("{method} {path}: {why:?}"));
    }
    create(&creation()).unwrap();
    ask(
        &scope(),
        "PUT",
        &format!("{own}/archive?path=%2F"),
        Body::Archive(vec![password()]),
    )
    .unwrap();
    let update = json!({ "CpuPeriod": 100_000, "CpuQuota": 200_000, "Memory": 1 << 30, "MemorySwap": 1 << 30 });
    ask(
        &scope(),
        "POST",
        &format!("{own}/update"),
        Body::Json(update.to_string()),
    )
    .unwrap();
    let update = json!({ "cpu": { "quota": 200_000, "period": 100_000 }, "memory": { "limit": 1 << 30, "swap": 1 << 30 } });
    let podman = format!("/v4.3.1/libpod/containers/wharf-{ID}/update");
    ask(&scope(), "POST", &podman, Body::Json(update.to_string())).unwrap();
}

#[test]
fn a_call_reaches_no_further_than_its_function() {
    let own = format!("/containers/wharf-{ID}");
    let mut reading = scope();
    reading.changes = false;
    assert!(ask(&reading, "GET", &format!("{own}/json"), Body::Empty).is_ok());
    assert!(ask(&reading, "POST", &format!("{own}/start"), Body::Empty).is_err());
    assert!(ask(&reading, "DELETE", &own, Body::Empty).is_err());

    let mut starting = scope();
    starting.subject.as_mut().unwrap().creation = None;
    assert!(ask(&starting, "POST", &format!("{own}/start"), Body::Empty).is_ok());
    let archive = format!("{own}/archive?path=/");
    assert!(ask(&starting, "PUT", &archive, Body::Archive(Vec::new())).is_err());
    assert!(
        ask(
            &starting,
            "POST",
            "/images/create?fromImage=localhost/wharf/base:1",
            Body::Empty
        )
        .is_err()
    );

    let node = CallScope::node("home");
    assert!(ask(&node, "GET", "/info", Body::Empty).is_ok());
    assert!(ask(&node, "GET", &format!("{own}/json"), Body::Empty).is_err());
}

#[test]
fn headers_and_jobs() {
    let request = |headers: Vec<(String, String)>, path: &str| Request {
        method: Method::POST,
        path: path.into(),
        headers,
        body: Body::Empty,
        timeout: None,
    };
    let pull = "/images/create?fromImage=localhost/wharf/base:1";
    let start = format!("/containers/wharf-{ID}/start");
    for name in [
        "Host",
        "Connection",
        "Upgrade",
        "Content-Length",
        "Transfer-Encoding",
        "X-Registry-Auth",
    ] {
        let request = request(vec![(name.into(), "x".into())], pull);
        assert!(policy().check(&scope(), &request, false).is_err(), "{name}");
    }
    assert!(
        policy()
            .check(&scope(), &request(Vec::new(), pull), true)
            .is_ok()
    );
    assert!(
        policy()
            .check(&scope(), &request(Vec::new(), &start), true)
            .is_err()
    );
}
