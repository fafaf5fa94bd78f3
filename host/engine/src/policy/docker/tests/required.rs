//! Limits and walls that a creation and an update must have.

use super::gpus::libpod;
use super::vms::{machine, vm};
use super::{ID, ask, create, creation, docker, policy, scope};
use crate::policy::{CheckedRequest, Refusal};
use crate::{Body, Response};
use http::Method;
use serde_json::{Value, json};
use wharf_requests::CallScope;

const ADDRESS: &str = "NetworkingConfig.EndpointsConfig.wharf-n0a500100ome.IPAMConfig.IPv4Address";

fn without(mut body: Value, pointer: &str) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = body.pointer_mut(parent).unwrap();
    parent.as_object_mut().unwrap().remove(key).unwrap();
    body
}

fn names<T: std::fmt::Debug>(refused: Result<T, Refusal>, place: &str) {
    let Refusal(why) = refused.unwrap_err();
    // The name of the rule comes first.
    let (_, why) = why.split_once(": ").unwrap();
    assert!(why.starts_with(place), "{why:?} does not name {place}");
}

#[test]
fn a_creation_lacks_no_limit_and_has_no_other_value() {
    for (key, other) in [
        ("Memory", json!(2_u64 << 30)),
        ("Memory", json!(1 << 29)),
        ("MemorySwap", json!(2_u64 << 30)),
        ("CpuPeriod", json!(10_000)),
        ("CpuQuota", json!(400_000)),
        ("CpuQuota", json!(200_000.0)),
        ("PidsLimit", json!(4095)),
        ("CapDrop", json!([])),
        ("CapDrop", json!(["NET_ADMIN"])),
        ("ShmSize", json!(1 << 30)),
        ("Sysctls", json!({ "net.ipv4.ping_group_range": "0 0" })),
        (
            "Sysctls",
            json!({ "net.ipv4.ping_group_range": "0 65535", "net.ipv4.ip_forward": "1" }),
        ),
        ("LogConfig", json!({ "Type": "json-file" })),
        (
            "LogConfig",
            json!({ "Type": "json-file", "Config": { "max-size": "10g" } }),
        ),
        ("Dns", json!([])),
        ("Ulimits", json!([])),
        (
            "Ulimits",
            json!([{ "Name": "nofile", "Soft": 1024, "Hard": 1025 }]),
        ),
        ("StorageOpt", json!({ "size": "11G" })),
        ("StorageOpt", json!({ "size": "9G" })),
        ("StorageOpt", json!({ "size": "+10G" })),
        ("StorageOpt", json!({ "size": 10 })),
    ] {
        let place = format!("HostConfig.{key}");
        let mut body = creation();
        body["HostConfig"][key] = other;
        names(create(&body), &place);
        names(
            create(&without(creation(), &format!("/HostConfig/{key}"))),
            &place,
        );
    }
    let mut body = creation();
    body["HostConfig"]["SecurityOpt"] = json!(["no-new-privileges"]);
    names(create(&body), "HostConfig.SecurityOpt");
    let address = format!("/{}", ADDRESS.replace('.', "/"));
    names(create(&without(creation(), &address)), ADDRESS);
    names(create(&without(creation(), "/NetworkingConfig")), ADDRESS);
}

#[test]
fn of_the_nodes_files_only_those_of_lxcfs_are_shown_and_read_only() {
    let file = |source: &str, target: &str| json!({ "Type": "bind", "Source": source, "Target": target, "ReadOnly": true });
    let with = |mount: &Value| {
        let mut body = creation();
        body["HostConfig"]["Mounts"] = json!([mount]);
        body
    };
    let memory = file("/var/lib/lxcfs/proc/meminfo", "/proc/meminfo");
    create(&with(&memory)).unwrap();
    let online = "/sys/devices/system/cpu/online";
    create(&with(&file(&format!("/var/lib/lxcfs{online}"), online))).unwrap();
    let changed = |key: &str, value: Value| {
        let mut mount = memory.clone();
        mount[key] = value;
        mount
    };
    for bad in [
        changed("ReadOnly", json!(false)),
        changed("Type", json!("volume")),
        changed("Source", json!("/proc/meminfo")),
        changed("Source", json!("/var/lib/lxcfs/../../../proc/meminfo")),
        changed("Source", json!("/var/lib/lxcfs/proc/stat")),
        changed("Target", json!("/etc/shadow")),
        changed("BindOptions", json!({ "Propagation": "shared" })),
        file("/var/lib/lxcfs/cgroup", "/cgroup"),
        file("/var/lib/lxcfs", "/proc"),
        without(memory.clone(), "/ReadOnly"),
        without(memory.clone(), "/Target"),
        without(memory.clone(), "/Type"),
    ] {
        names(create(&with(&bad)), "HostConfig.Mounts[0]");
    }
    let mut of_machine = machine();
    of_machine["HostConfig"]["Mounts"] = json!([memory]);
    let path = format!("/containers/create?name=wharf-{ID}");
    let asked = ask(&vm(), "POST", &path, Body::Json(of_machine.to_string()));
    names(asked, "HostConfig.Mounts[0]");
}

#[test]
fn a_creation_has_every_port_and_gpu_of_its_call() {
    for key in ["PortBindings", "DeviceRequests"] {
        let place = format!("HostConfig.{key}");
        names(
            create(&without(creation(), &format!("/HostConfig/{key}"))),
            &place,
        );
        let mut body = creation();
        body["HostConfig"][key] = match key {
            "PortBindings" => json!({}),
            _ => json!([{ "Driver": "cdi", "DeviceIDs": [] }]),
        };
        names(create(&body), &place);
    }
    names(
        libpod("/portmappings", json!([])),
        "HostConfig.PortBindings",
    );
    names(libpod("/devices", json!([])), "HostConfig.DeviceRequests");
}

#[test]
fn podmans_own_creation_lacks_no_limit_either() {
    for (pointer, other, place) in [
        (
            "/resource_limits/memory/limit",
            json!(2_u64 << 30),
            "Memory",
        ),
        (
            "/resource_limits/memory/swap",
            json!(2_u64 << 30),
            "MemorySwap",
        ),
        ("/resource_limits/memory", json!({}), "Memory"),
        ("/resource_limits/cpu/quota", json!(300_000), "CpuQuota"),
        ("/resource_limits/cpu", json!({}), "CpuPeriod"),
        ("/resource_limits/pids/limit", json!(100), "PidsLimit"),
        ("/resource_limits/pids", json!({}), "PidsLimit"),
        ("/resource_limits", json!({}), "Memory"),
        ("/cap_drop", json!([]), "CapDrop"),
        ("/log_configuration/size", json!(1_u64 << 40), "LogConfig"),
        ("/storage_opts", json!({ "size": "20G" }), "StorageOpt"),
        ("/dns_server", json!([]), "Dns"),
        ("/r_limits", json!([]), "Ulimits"),
        ("/no_new_privileges", json!(true), "SecurityOpt"),
    ] {
        names(libpod(pointer, other), &format!("HostConfig.{place}"));
    }
}

#[test]
fn a_machine_has_walls_of_its_own() {
    let path = format!("/containers/create?name=wharf-{ID}");
    let make = |body: &Value| ask(&vm(), "POST", &path, Body::Json(body.to_string()));
    make(&machine()).unwrap();
    for key in ["SecurityOpt", "CapDrop", "Memory"] {
        let place = format!("HostConfig.{key}");
        names(
            make(&without(machine(), &format!("/HostConfig/{key}"))),
            &place,
        );
        let mut body = machine();
        body["HostConfig"][key] = creation()["HostConfig"][key].clone();
        names(make(&body), &place);
    }
}

#[test]
fn settings_of_the_node_are_required() {
    let settings = json!({ "userns": "auto", "pids_limit": 50, "disk_limit": "on" });
    let policy = docker(&settings).unwrap();
    let make = |body: &Value| {
        let request = crate::Request {
            method: Method::POST,
            path: format!("/containers/create?name=wharf-{ID}"),
            headers: Vec::new(),
            body: Body::Json(body.to_string()),
            timeout: None,
        };
        policy.check(&scope(), &request, false)
    };
    let mut good = creation();
    good["HostConfig"]["UsernsMode"] = json!("auto");
    good["HostConfig"]["PidsLimit"] = json!(50);
    for key in ["Dns", "Ulimits"] {
        good = without(good, &format!("/HostConfig/{key}"));
    }
    make(&good).unwrap();
    for key in ["UsernsMode", "PidsLimit", "StorageOpt"] {
        let bad = without(good.clone(), &format!("/HostConfig/{key}"));
        names(make(&bad), &format!("HostConfig.{key}"));
    }
}

#[test]
fn a_disk_has_no_limit_only_after_the_engine_has_refused_one() {
    let mut scope = scope();
    let path = format!("/containers/create?name=wharf-{ID}");
    let make = |scope: &CallScope, settings: Value| {
        let policy = docker(&settings).unwrap();
        let mut body = without(creation(), "/HostConfig/StorageOpt");
        body["HostConfig"]["Dns"] = json!(["10.0.0.53"]);
        let request = crate::Request {
            method: Method::POST,
            path: path.clone(),
            headers: Vec::new(),
            body: Body::Json(body.to_string()),
            timeout: None,
        };
        policy.check(scope, &request, false).is_ok()
    };
    let settings = |limit: &str| json!({ "ulimits": { "nofile": 1024 }, "dns": ["10.0.0.53"], "disk_limit": limit });
    let refused = |status: u16, words: &str| Response {
        status,
        headers: Vec::new(),
        body: json!({ "message": words }).to_string().into(),
    };
    const NO_QUOTA: &str =
        "--storage-opt is supported only for overlay over xfs with 'pquota' mount option";
    // Errors that a driver can provoke, and answers to other requests, allow nothing.
    for (status, words, rule) in [
        (409, NO_QUOTA, "create"),
        (500, "no such image", "create"),
        (500, NO_QUOTA, "create-network"),
    ] {
        policy().learn(&mut scope, rule, &refused(status, words));
        assert!(!make(&scope, settings("auto")), "{status} {words} {rule}");
    }
    assert!(make(&scope, settings("off")));
    policy().learn(&mut scope, "create", &refused(500, NO_QUOTA));
    assert!(make(&scope, settings("auto")));
    assert!(!make(&scope, settings("on")));
}

#[test]
fn a_disk_gets_room_for_the_image_that_the_engine_has_reported() {
    let mut scope = scope();
    let path = format!("/containers/create?name=wharf-{ID}");
    let make = |scope: &CallScope, size: &str| {
        let mut body = creation();
        body["HostConfig"]["StorageOpt"]["size"] = json!(size);
        ask(scope, "POST", &path, Body::Json(body.to_string())).is_ok()
    };
    assert!(make(&scope, "10304M"), "the metadata");
    assert!(!make(&scope, "10800M"));
    let history = Response {
        status: 200,
        headers: Vec::new(),
        body: json!([{ "Size": 300 << 20 }, { "Size": 212 << 20 }, {}])
            .to_string()
            .into(),
    };
    policy().learn(&mut scope, "read-image-history", &history);
    assert!(make(&scope, "10G") && make(&scope, "10848M"));
    assert!(!make(&scope, "12G") && !make(&scope, "10239M"));
}

fn update(scope: &CallScope, memory: u64, quota: u64) -> [Result<CheckedRequest, Refusal>; 2] {
    let docker = json!({
        "CpuPeriod": 100_000, "CpuQuota": quota, "Memory": memory, "MemorySwap": memory,
    });
    let libpod = json!({
        "cpu": { "period": 100_000, "quota": quota },
        "memory": { "limit": memory, "swap": memory },
    });
    [
        (format!("/containers/wharf-{ID}/update"), docker),
        (
            format!("/v4.3.1/libpod/containers/wharf-{ID}/update"),
            libpod,
        ),
    ]
    .map(|(path, body)| ask(scope, "POST", &path, Body::Json(body.to_string())))
}

#[test]
fn an_update_sets_the_size_of_the_call_or_the_one_before() {
    let mut scope = scope();
    let sent = |scope: &CallScope, memory, quota| update(scope, memory, quota).map(|r| r.is_ok());
    assert_eq!(sent(&scope, 1 << 30, 200_000), [true, true]);
    assert_eq!(sent(&scope, 4 << 30, 200_000), [false, false]);
    assert_eq!(sent(&scope, 1 << 30, 800_000), [false, false]);
    let details = |memory: u64| Response {
        status: 200,
        headers: Vec::new(),
        body: json!({ "HostConfig": {
            "Memory": memory, "CpuPeriod": 100_000, "CpuQuota": 800_000,
        } })
        .to_string()
        .into(),
    };
    for memory in [4, 8] {
        policy().learn(&mut scope, "read", &details(memory << 30));
    }
    assert_eq!(sent(&scope, 4 << 30, 800_000), [true, true]);
    assert_eq!(sent(&scope, 4 << 30, 200_000), [false, false]);
    assert_eq!(sent(&scope, 8 << 30, 800_000), [false, false]);
    let [docker, libpod] = update(&scope, 8 << 30, 200_000);
    names(docker, "Memory: must be 1073741824");
    names(libpod, "memory.limit: must be 1073741824");
    for (path, body, place) in [
        (
            "",
            json!({ "Memory": 1 << 30, "MemorySwap": 1 << 30 }),
            "CpuPeriod",
        ),
        ("", json!({}), "Memory"),
        ("", json!({ "PidsLimit": 1 }), "PidsLimit"),
        (
            "/v4.3.1/libpod",
            json!({ "memory": { "limit": 1 << 30 } }),
            "memory.swap",
        ),
        ("/v4.3.1/libpod", json!({}), "memory.limit"),
    ] {
        let path = format!("{path}/containers/wharf-{ID}/update");
        names(
            ask(&scope, "POST", &path, Body::Json(body.to_string())),
            place,
        );
    }
}
