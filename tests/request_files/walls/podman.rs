//! The walls of a creation by Podman, which has a body of its own.

use super::docker::{
    MACHINE, NETWORK, SIZES, all_addresses, container, disks, labels, machine, snapshots,
};
use super::volumes::{READ, WRITTEN};
use super::{Call, Creation, DIGEST, GIB};
use serde_json::json;

pub fn podman() -> Creation {
    let mounts = SIZES.map(|file| {
        let source = format!("/var/lib/lxcfs{file}");
        json!({ "type": "bind", "source": source, "destination": file, "options": ["ro"] })
    });
    let mapping = |address: &str, node: u16, instance: u16| json!({ "container_port": instance, "host_port": node, "host_ip": address, "protocol": "tcp" });
    let limits = |memory: u64| {
        json!({
            "cpu": { "period": 100_000, "quota": 200_000 },
            "memory": { "limit": memory, "swap": memory },
            "pids": { "limit": 4096 },
        })
    };
    let endpoint = json!({ "static_ips": ["10.80.1.7"], "static_mac": "02:42:0a:50:01:07" });
    let common = || {
        vec![
            ("/name", json!("wharf-0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f")),
            ("/image", json!("localhost/wharf/base:1")),
            ("/hostname", json!("demo")),
            ("/netns", json!({ "nsmode": "bridge" })),
            (
                "/networks",
                json!({ format!("wharf-{NETWORK}"): endpoint.clone() }),
            ),
            ("/restart_policy", json!("no")),
            (
                "/log_configuration",
                json!({ "driver": "json-file", "size": 10 << 20 }),
            ),
        ]
    };
    let container_walls = [
        (
            "/labels",
            labels(json!({ "io.wharf.view": "own", "io.wharf.disk": "10G" })),
        ),
        ("/env", json!({ "LANG": "C.UTF-8", "EMPTY": "" })),
        ("/command", json!(["serve", "--all"])),
        (
            "/portmappings",
            json!([
                mapping("198.51.100.1", 20001, 22),
                mapping("192.0.2.1", 20002, 80)
            ]),
        ),
        ("/resource_limits", limits(GIB)),
        ("/shm_size", json!(GIB / 2)),
        ("/cap_drop", json!(["NET_RAW"])),
        ("/sysctl", json!({ "net.ipv4.ping_group_range": "0 65535" })),
        ("/mounts", json!(mounts)),
        (
            "/volumes",
            json!([
                { "Name": format!("wharf-volume-{WRITTEN}"), "Dest": "/data", "Options": ["nocopy"] },
                { "Name": format!("wharf-volume-{READ}"), "Dest": "/refs", "Options": ["ro", "nocopy"] },
            ]),
        ),
        ("/devices", json!([{ "path": "a.example/gpu=1" }])),
        ("/storage_opts", json!({ "size": "10G" })),
        ("/dns_server", json!(["192.0.2.53"])),
        (
            "/r_limits",
            json!([{ "type": "nofile", "soft": 1024, "hard": 1024 }]),
        ),
        (
            "/userns",
            json!({ "nsmode": "keep-id", "value": "uid=1000" }),
        ),
    ];
    let machine_walls = [
        (
            "/labels",
            labels(json!({ "io.wharf.disk": "13G", "io.wharf.public-network": "0p1" })),
        ),
        ("/resource_limits", limits(GIB + MACHINE)),
        ("/cap_drop", json!(["ALL"])),
        ("/no_new_privileges", json!(true)),
        (
            "/sysctl",
            json!({ "net.ipv4.ip_unprivileged_port_start": "0" }),
        ),
        ("/storage_opts", json!({ "size": "13G" })),
    ];
    Creation {
        driver: "driver-docker",
        request: "create-podman",
        calls: [
            vec![
                Call {
                    name: "container",
                    arguments: vec![DIGEST, ("own-view", "true")],
                    sample: container(),
                    walls: common().into_iter().chain(container_walls).collect(),
                },
                Call {
                    name: "machine",
                    arguments: vec![DIGEST],
                    sample: machine(),
                    walls: common().into_iter().chain(machine_walls).collect(),
                },
            ],
            disks("/labels", "/storage_opts"),
            snapshots(["/image", "/labels", "/storage_opts"]),
            all_addresses(
                &[],
                "/portmappings",
                json!([
                    mapping("127.0.0.1", 20001, 22),
                    { "container_port": 80, "host_port": 20002, "protocol": "tcp" },
                ]),
            ),
        ]
        .into_iter()
        .flatten()
        .collect(),
        members: vec![(
            "",
            vec![
                "cap_drop",
                "command",
                "devices",
                "dns_server",
                "env",
                "hostname",
                "image",
                "labels",
                "log_configuration",
                "mounts",
                "name",
                "netns",
                "networks",
                "no_new_privileges",
                "portmappings",
                "r_limits",
                "resource_limits",
                "restart_policy",
                "shm_size",
                "storage_opts",
                "sysctl",
                "userns",
                "volumes",
            ],
        )],
        free: vec!["values/own/0", "values/own/0/is", "values/shown/1"],
        doors: vec![
            ("request/create-podman/body/privileged", true.into()),
            (
                "request/create-podman/body/cap_add",
                vec!["SYS_ADMIN"].into(),
            ),
            ("request/create-podman/body/volumes", vec!["/:/mnt"].into()),
            ("request/create-podman/body/cgroup_parent", "/".into()),
            ("request/create-podman/body/netns/nsmode", "host".into()),
            (
                "request/create-podman/body/resource_limits/memory/limit",
                0.into(),
            ),
        ],
    }
}
