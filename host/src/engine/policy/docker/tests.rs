//! What a hostile or broken driver might ask for.

use crate::domain::driver::{Network, PublishedPort, Tag};
use crate::domain::ids::InstanceId;
use crate::engine::policy::{Passed, Policy, Refusal};
use crate::engine::scope::{Creation, Scope, Subject};
use crate::engine::{Body, Request};
use http::Method;
use serde_json::{Value, json};

const ID: &str = "0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f";
const OTHER: &str = "11111111-3c1e-4f43-9d2b-2c1c1f8f8f8f";

fn scope() -> Scope {
    Scope {
        installation: "home".into(),
        changes: true,
        subject: Some(Subject {
            tag: Tag {
                instance: InstanceId::parse(ID).unwrap(),
                incarnation: 3,
            },
            network: Some(Network {
                id: "o1".into(),
                subnet: "10.80.1.0/24".parse().unwrap(),
                gateway: "10.80.1.1".parse().unwrap(),
                address: "10.80.1.7".parse().unwrap(),
            }),
            creation: Some(Creation {
                hostname: "demo".into(),
                images: vec!["localhost/wharf/base:1".into()],
                environment: vec![("LANG".into(), "C.UTF-8".into())],
                command: Vec::new(),
                published: vec![PublishedPort {
                    node_port: 20001,
                    instance_port: 22,
                }],
            }),
        }),
    }
}

fn policy() -> Policy {
    Policy::for_engine(
        "docker",
        &json!({ "ulimits": { "nofile": 1024 }, "dns": ["10.0.0.53"] }),
    )
    .unwrap()
}

fn ask(scope: &Scope, method: &str, path: &str, body: Body) -> Result<Passed, Refusal> {
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
            "NetworkMode": "wharf-o1",
            "CpuPeriod": 100_000, "CpuQuota": 200_000,
            "Memory": 1 << 30, "MemorySwap": 1 << 30,
            "PidsLimit": 4096,
            "CapDrop": ["NET_RAW"],
            "RestartPolicy": { "Name": "no" },
            "LogConfig": { "Type": "json-file", "Config": { "max-size": "10m" } },
            "PortBindings": { "22/tcp": [{ "HostIp": "0.0.0.0", "HostPort": "20001" }] },
            "StorageOpt": { "size": "10G" },
            "Dns": ["10.0.0.53"],
            "Ulimits": [{ "Name": "nofile", "Soft": 1024, "Hard": 1024 }],
        },
        "NetworkingConfig": {
            "EndpointsConfig": { "wharf-o1": { "IPAMConfig": { "IPv4Address": "10.80.1.7" } } },
        },
    })
}

fn create(body: &Value) -> Result<Passed, Refusal> {
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
        ("POST", format!("{own}/start")),
        ("POST", format!("{own}/stop?t=10")),
        ("POST", format!("{own}/kill")),
        ("DELETE", format!("{own}?force=true&v=true")),
        ("GET", "/networks/wharf-o1".to_owned()),
        ("DELETE", "/networks/wharf-o1".to_owned()),
        ("GET", "/images/localhost/wharf/base:1/json".to_owned()),
        (
            "POST",
            "/images/create?fromImage=localhost%2Fwharf%2Fbase%3A1".to_owned(),
        ),
    ] {
        assert_eq!(
            ask(&scope(), method, &path, Body::Empty),
            Ok(Passed { body: None }),
            "{method} {path}"
        );
    }
    create(&creation()).unwrap();
    ask(
        &scope(),
        "PUT",
        &format!("{own}/archive?path=%2F"),
        Body::Archive(Vec::new()),
    )
    .unwrap();
    let update = json!({ "CpuPeriod": 100_000, "CpuQuota": 100_000, "Memory": 1 << 30, "MemorySwap": 1 << 30 });
    ask(
        &scope(),
        "POST",
        &format!("{own}/update"),
        Body::Json(update.to_string()),
    )
    .unwrap();
    let update =
        json!({ "cpu": { "quota": 100_000, "period": 100_000 }, "memory": { "limit": 1 << 30 } });
    let podman = format!("/v4.3.1/libpod/containers/wharf-{ID}/update");
    ask(&scope(), "POST", &podman, Body::Json(update.to_string())).unwrap();
}

#[test]
fn other_paths_are_refused() {
    for (method, path) in [
        ("GET", "/containers/json?all=true".to_owned()),
        ("GET", "/containers/json?filters=%7B%7D".to_owned()),
        ("GET", "/containers/json?filters=%7B%22label%22%3A%5B%22io.wharf.installation%3Dother%22%5D%7D".to_owned()),
        ("GET", "/containers/json?filters=%7B%22name%22%3A%5B%22io.wharf.installation%3Dhome%22%5D%7D".to_owned()),
        ("GET", format!("/containers/wharf-{OTHER}/json")),
        ("GET", "/containers/postgres/json".to_owned()),
        ("GET", format!("/containers/wharf-{ID}/archive?path=/etc/shadow")),
        ("GET", format!("/containers/wharf-{ID}/logs?stdout=1")),
        ("GET", format!("/containers/wharf-{ID}/export")),
        ("GET", format!("/containers/wharf-{ID}/stats")),
        ("GET", format!("/containers/wharf-{ID}/stats?stream=true")),
        ("POST", format!("/containers/wharf-{ID}/exec")),
        ("POST", format!("/containers/wharf-{ID}/attach")),
        ("POST", format!("/containers/wharf-{ID}/rename?name=x")),
        ("POST", format!("/containers/wharf-{ID}/start?detachKeys=x")),
        ("POST", format!("/containers/wharf-{OTHER}/stop")),
        ("DELETE", format!("/containers/wharf-{OTHER}?force=true")),
        ("DELETE", format!("/containers/wharf-{ID}?link=true")),
        ("DELETE", "/networks/bridge".to_owned()),
        ("DELETE", "/networks/wharf-o2".to_owned()),
        ("GET", "/networks".to_owned()),
        ("POST", "/networks/prune".to_owned()),
        ("POST", "/containers/prune".to_owned()),
        ("POST", "/images/create?fromImage=docker.io%2Fevil".to_owned()),
        ("POST", "/images/create?fromSrc=http%3A%2F%2Fevil&repo=localhost%2Fwharf%2Fbase&tag=1".to_owned()),
        ("POST", "/images/load".to_owned()),
        ("POST", "/build".to_owned()),
        ("POST", "/commit?container=x".to_owned()),
        ("DELETE", "/images/localhost/wharf/base:1".to_owned()),
        ("GET", "/volumes".to_owned()),
        ("POST", "/volumes/create".to_owned()),
        ("GET", "/events".to_owned()),
        ("POST", "/swarm/init".to_owned()),
        ("GET", "/secrets".to_owned()),
        ("POST", "/plugins/pull?remote=x".to_owned()),
        ("GET", "/system/df".to_owned()),
        ("POST", "/session".to_owned()),
        ("POST", "/grpc".to_owned()),
        ("GET", "/v4.3.1/libpod/containers/json".to_owned()),
        ("POST", "/v4.3.1/libpod/containers/create".to_owned()),
        ("GET", format!("/libpod/containers/wharf-{ID}/json")),
        ("GET", "/v1/info".to_owned()),
        ("GET", "/v1.41/v1.41/info".to_owned()),
        ("GET", format!("/containers/wharf-{ID}/../postgres/json")),
        ("GET", format!("/containers/wharf-{ID}%2f..%2fpostgres/json")),
        ("GET", format!("//containers/wharf-{ID}/json")),
        ("GET", format!("/containers/wharf-{}/json", ID.to_uppercase())),
        ("PATCH", "/info".to_owned()),
        ("POST", "/info".to_owned()),
    ] {
        assert!(ask(&scope(), method, &path, Body::Empty).is_err(), "{method} {path}");
    }
}

/// Sets one place of a body that would pass.
fn with(pointer: &str, key: &str, value: Value) -> Value {
    let mut body = creation();
    body.pointer_mut(pointer).unwrap()[key] = value;
    body
}

#[test]
fn a_container_gets_nothing_of_the_node() {
    let host = "/HostConfig";
    for (pointer, key, value) in [
        (host, "Privileged", json!(true)),
        (host, "privileged", json!(true)),
        (host, "Binds", json!(["/:/host"])),
        (
            host,
            "Mounts",
            json!([{ "Type": "bind", "Source": "/", "Target": "/host" }]),
        ),
        (host, "Devices", json!([{ "PathOnHost": "/dev/sda" }])),
        (
            host,
            "DeviceRequests",
            json!([{ "Driver": "cdi", "DeviceIDs": ["x"] }]),
        ),
        (host, "DeviceCgroupRules", json!(["a *:* rwm"])),
        (host, "CapAdd", json!(["SYS_ADMIN"])),
        (host, "SecurityOpt", json!(["seccomp=unconfined"])),
        (host, "CgroupParent", json!("/")),
        (host, "Cgroup", json!("host")),
        (host, "Runtime", json!("other")),
        (host, "PidMode", json!("host")),
        (host, "IpcMode", json!("host")),
        (host, "UTSMode", json!("host")),
        (host, "UsernsMode", json!("host")),
        (host, "CgroupnsMode", json!("host")),
        (host, "NetworkMode", json!("host")),
        (host, "NetworkMode", json!("wharf-o2")),
        (host, "NetworkMode", json!("container:postgres")),
        (host, "Sysctls", json!({ "kernel.shm_rmid_forced": "1" })),
        (host, "VolumesFrom", json!(["postgres"])),
        (host, "VolumeDriver", json!("x")),
        (host, "Tmpfs", json!({ "/x": "" })),
        (host, "ExtraHosts", json!(["x:host-gateway"])),
        (host, "Links", json!(["postgres"])),
        (host, "GroupAdd", json!(["0"])),
        (host, "MaskedPaths", json!([])),
        (host, "ReadonlyPaths", json!([])),
        (host, "OomScoreAdj", json!(-1000)),
        (host, "OomKillDisable", json!(true)),
        (host, "AutoRemove", json!(true)),
        (host, "PublishAllPorts", json!(true)),
        (host, "RestartPolicy", json!({ "Name": "always" })),
        (host, "Memory", json!(0)),
        (host, "Memory", json!(-1)),
        (host, "MemorySwap", json!(-1)),
        (host, "CpuQuota", json!(-1)),
        (host, "CpuQuota", json!(1e9)),
        (host, "PidsLimit", json!(4097)),
        (host, "PidsLimit", json!(-1)),
        (host, "Dns", json!(["8.8.8.8"])),
        (
            host,
            "Ulimits",
            json!([{ "Name": "nofile", "Soft": 1, "Hard": 9999 }]),
        ),
        (
            host,
            "Ulimits",
            json!([{ "Name": "memlock", "Soft": 1, "Hard": 1 }]),
        ),
        (host, "StorageOpt", json!({ "dm.basesize": "1G" })),
        (
            host,
            "LogConfig",
            json!({ "Type": "syslog", "Config": { "syslog-address": "tcp://x" } }),
        ),
        (
            host,
            "LogConfig",
            json!({ "Type": "json-file", "Config": { "env": "x" } }),
        ),
        (
            host,
            "PortBindings",
            json!({ "22/tcp": [{ "HostIp": "0.0.0.0", "HostPort": "22" }] }),
        ),
        (
            host,
            "PortBindings",
            json!({ "22/tcp": [{ "HostIp": "10.0.0.1", "HostPort": "20001" }] }),
        ),
        (
            host,
            "PortBindings",
            json!({ "22/tcp": [{ "HostPort": "20001" }] }),
        ),
        (
            host,
            "PortBindings",
            json!({ "22/tcp": [{ "HostIp": "0.0.0.0", "HostPort": "" }] }),
        ),
        (
            host,
            "PortBindings",
            json!({ "80/tcp": [{ "HostIp": "0.0.0.0", "HostPort": "20001" }] }),
        ),
        ("", "Image", json!("docker.io/evil")),
        ("", "Hostname", json!("else")),
        ("", "Entrypoint", json!(["sh"])),
        ("", "Cmd", json!(["sh"])),
        ("", "User", json!("0")),
        ("", "Volumes", json!({ "/": {} })),
        ("", "Env", json!(["LD_PRELOAD=/x"])),
        ("", "Env", json!(["LANG"])),
        ("", "MacAddress", json!("02:42:ac:11:00:02")),
        ("", "NetworkDisabled", json!(true)),
        ("", "OpenStdin", json!(true)),
        ("", "hostconfig", json!({ "Privileged": true })),
        ("", "HostConfig", json!(null)),
        ("", "HostConfig", json!([])),
        ("", "Labels", json!({})),
        ("/Labels", "io.wharf.installation", json!("other")),
        ("/Labels", "io.wharf.instance", json!(OTHER)),
        ("/Labels", "io.wharf.incarnation", json!("4")),
        ("/Labels", "com.docker.compose.project", json!("x")),
        ("/NetworkingConfig/EndpointsConfig", "bridge", json!({})),
        (
            "/NetworkingConfig/EndpointsConfig/wharf-o1",
            "Aliases",
            json!(["postgres"]),
        ),
        (
            "/NetworkingConfig/EndpointsConfig/wharf-o1/IPAMConfig",
            "IPv4Address",
            json!("10.80.1.8"),
        ),
    ] {
        assert!(
            create(&with(pointer, key, value.clone())).is_err(),
            "{pointer} {key} {value}"
        );
    }
    for missing in ["NetworkMode", "Memory", "PidsLimit"] {
        let mut body = creation();
        body["HostConfig"].as_object_mut().unwrap().remove(missing);
        assert!(create(&body).is_err(), "without {missing}");
    }
}

#[test]
fn what_is_sent_is_what_was_read() {
    let twice = creation().to_string().replacen(
        "\"HostConfig\":{",
        "\"HostConfig\":{\"Privileged\":true},\"HostConfig\":{",
        1,
    );
    let path = format!("/containers/create?name=wharf-{ID}");
    let passed = ask(&scope(), "POST", &path, Body::Json(twice)).unwrap();
    assert!(!passed.body.unwrap().contains("Privileged"));
    assert!(ask(&scope(), "POST", &path, Body::Json("{".into())).is_err());
    assert!(ask(&scope(), "POST", &path, Body::Empty).is_err());
    assert!(
        ask(
            &scope(),
            "POST",
            "/containers/create",
            Body::Json(creation().to_string())
        )
        .is_err()
    );
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

    let node = Scope::node("home");
    assert!(ask(&node, "GET", "/info", Body::Empty).is_ok());
    assert!(ask(&node, "GET", &format!("{own}/json"), Body::Empty).is_err());
}

#[test]
fn networks_are_the_owners() {
    let good = json!({
        "Name": "wharf-o1", "Driver": "bridge", "CheckDuplicate": true,
        "Labels": { "io.wharf.installation": "home" },
        "IPAM": { "Driver": "default", "Config": [{ "Subnet": "10.80.1.0/24", "Gateway": "10.80.1.1" }] },
        "Options": { "com.docker.network.bridge.name": "whfo1" },
    });
    let send = |body: &Value| {
        ask(
            &scope(),
            "POST",
            "/networks/create",
            Body::Json(body.to_string()),
        )
    };
    send(&good).unwrap();
    for (pointer, key, value) in [
        ("", "Name", json!("bridge")),
        ("", "Driver", json!("host")),
        ("", "Driver", json!("macvlan")),
        ("", "Attachable", json!(true)),
        ("", "ConfigFrom", json!({ "Network": "x" })),
        ("", "Labels", json!({})),
        (
            "/Options",
            "com.docker.network.bridge.name",
            json!("docker0"),
        ),
        (
            "/Options",
            "com.docker.network.bridge.host_binding_ipv4",
            json!("0.0.0.0"),
        ),
        ("/Options", "parent", json!("eth0")),
        ("/IPAM/Config/0", "Subnet", json!("10.0.0.0/8")),
        ("/IPAM/Config/0", "Gateway", json!("10.80.1.2")),
        ("/IPAM/Config/0", "IPRange", json!("10.80.1.0/25")),
        ("/IPAM", "Options", json!({})),
    ] {
        let mut body = good.clone();
        body.pointer_mut(pointer).unwrap()[key] = value.clone();
        assert!(send(&body).is_err(), "{pointer} {key} {value}");
    }
    let attach = |body: Value| {
        ask(
            &scope(),
            "POST",
            "/networks/wharf-o1/connect",
            Body::Json(body.to_string()),
        )
    };
    let address = json!({ "IPAMConfig": { "IPv4Address": "10.80.1.7" } });
    assert!(
        attach(json!({ "Container": format!("wharf-{ID}"), "EndpointConfig": address })).is_ok()
    );
    assert!(attach(json!({ "Container": "postgres" })).is_err());
    assert!(attach(json!({})).is_err());
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
