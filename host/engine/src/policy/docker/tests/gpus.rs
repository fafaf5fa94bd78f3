//! GPUs, and Podman's own creation body.

use super::{ID, ask, create, creation, scope};
use crate::Body;
use crate::policy::{CheckedRequest, Refusal};
use serde_json::{Value, json};

/// An accepted body with another value in one place.
pub fn libpod(pointer: &str, value: Value) -> Result<CheckedRequest, Refusal> {
    let mut body = json!({
        "name": format!("wharf-{ID}"),
        "image": "localhost/wharf/base:1",
        "labels": creation()["Labels"],
        "env": { "LANG": "C.UTF-8" },
        "netns": { "nsmode": "bridge" },
        "networks": { "wharf-n0a500100ome": {
            "static_ips": ["10.80.1.7"], "static_mac": "02:42:0a:50:01:07",
        } },
        "portmappings": [
            { "container_port": 22, "host_port": 20001, "host_ip": "0.0.0.0", "protocol": "tcp" },
        ],
        "resource_limits": {
            "cpu": { "quota": 200_000, "period": 100_000 },
            "memory": { "limit": 1 << 30, "swap": 1 << 30 },
            "pids": { "limit": 4096 },
        },
        "storage_opts": { "size": "10G" },
        "cap_drop": ["NET_RAW"],
        "shm_size": 1 << 29,
        "sysctl": { "net.ipv4.ping_group_range": "0 65535" },
        "mounts": [{
            "type": "bind", "source": "/var/lib/lxcfs/proc/stat", "destination": "/proc/stat",
            "options": ["ro"],
        }],
        "dns_server": ["10.0.0.53"],
        "r_limits": [{ "type": "nofile", "soft": 1024, "hard": 1024 }],
        "restart_policy": "no",
        "log_configuration": { "driver": "json-file", "size": 10 << 20 },
        "devices": [{ "path": "a.example/gpu=1" }],
    });
    if let Some(at) = pointer.rfind('/') {
        let (parent, key) = pointer.split_at(at);
        body.pointer_mut(parent).unwrap()[&key[1..]] = value;
    }
    let path = "/v4.0.0/libpod/containers/create";
    ask(&scope(), "POST", path, Body::Json(body.to_string()))
}

#[test]
fn a_container_gets_the_gpus_of_its_call_and_no_others() {
    let with = |request: Value| {
        let mut body = creation();
        body["HostConfig"]["DeviceRequests"] = json!([request]);
        create(&body)
    };
    with(json!({ "Driver": "cdi", "DeviceIDs": ["a.example/gpu=1"] })).unwrap();
    for request in [
        json!({ "Driver": "cdi", "DeviceIDs": ["a.example/gpu=2"] }),
        json!({ "Driver": "cdi", "DeviceIDs": ["a.example/gpu=1", "a.example/gpu=all"] }),
        json!({ "Driver": "nvidia", "DeviceIDs": ["a.example/gpu=1"] }),
        json!({ "Driver": "cdi", "Count": -1 }),
        json!({ "Driver": "", "Capabilities": [["gpu"]] }),
        json!({ "Options": {} }),
    ] {
        assert!(with(request.clone()).is_err(), "{request}");
    }
    libpod("", Value::Null).unwrap();
    for path in ["a.example/gpu=2", "/dev/sda", "/dev/sda:/dev/sda:rwm"] {
        let devices = json!([{ "path": path }]);
        assert!(libpod("/devices", devices).is_err(), "{path}");
    }
    let numbered = json!([{ "path": "a.example/gpu=1", "type": "b", "major": 8, "minor": 0 }]);
    assert!(libpod("/devices", numbered).is_err());
}

#[test]
fn podmans_own_creation_gets_nothing_that_dockers_does_not() {
    for (pointer, value) in [
        ("/privileged", json!(true)),
        ("/Privileged", json!(true)),
        ("/name", json!("postgres")),
        ("/image", json!("other")),
        ("/command", json!(["sh"])),
        ("/env/LD_PRELOAD", json!("x")),
        ("/labels/other", json!("x")),
        (
            "/mounts",
            json!([{ "type": "bind", "source": "/", "destination": "/host" }]),
        ),
        (
            "/mounts",
            json!([{ "type": "bind", "source": "/var/lib/lxcfs/proc/stat",
                "destination": "/proc/stat", "options": ["rw"] }]),
        ),
        ("/shm_size", json!(1 << 30)),
        ("/sysctl", json!({ "net.ipv4.ip_forward": "1" })),
        ("/volumes", json!([{ "Name": "x", "Dest": "/x" }])),
        ("/overlay_volumes", json!([])),
        ("/pidns", json!({ "nsmode": "host" })),
        ("/ipcns", json!({ "nsmode": "host" })),
        ("/netns/nsmode", json!("host")),
        ("/netns/value", json!("x")),
        ("/userns", json!({ "nsmode": "host" })),
        ("/cap_add", json!(["SYS_ADMIN"])),
        ("/seccomp_policy", json!("x")),
        ("/selinux_opts", json!(["disable"])),
        (
            "/networks",
            json!({ "wharf-o2": { "static_ips": ["10.80.1.7"] } }),
        ),
        ("/networks/wharf-o2", json!({ "static_ips": ["10.80.1.7"] })),
        (
            "/networks/wharf-n0a500100ome/static_ips",
            json!(["10.1.0.3"]),
        ),
        (
            "/networks/wharf-n0a500100ome/static_mac",
            json!("02:42:0a:50:01:08"),
        ),
        ("/portmappings/0/host_port", json!(22)),
        ("/portmappings/0/host_ip", json!("127.0.0.1")),
        ("/portmappings/0/container_port", json!(23)),
        ("/portmappings/0/range", json!(100)),
        ("/resource_limits/memory/limit", json!(-1)),
        ("/resource_limits/pids/limit", json!(1u64 << 40)),
        ("/resource_limits/devices", json!([{ "allow": true }])),
        ("/restart_policy", json!("always")),
        ("/log_configuration/path", json!("/etc/passwd")),
        ("/storage_opts/size", json!("x")),
        (
            "/r_limits",
            json!([{ "type": "core", "soft": 1, "hard": 1 }]),
        ),
        ("/dns_server", json!(["10.0.0.1"])),
        ("/device_cgroup_rule", json!([{ "allow": true }])),
        ("/rootfs", json!("/")),
        ("/init_path", json!("/x")),
        ("/conmon_pid_file", json!("/x")),
    ] {
        assert!(libpod(pointer, value.clone()).is_err(), "{pointer} {value}");
    }
}
