//! Docker and Podman. A virtual machine is QEMU in a container.

use super::volumes::{READ, WRITTEN};
use super::{Call, Creation, DIGEST, GIB};
use serde_json::{Value, json};

/// Memory of QEMU beside the RAM of its machine.
pub const MACHINE: u64 = 384 << 20;
/// The owner's network: its first address, and the end of the installation's id.
pub const NETWORK: &str = "n0a500100045";
const SNAPSHOT: &str = "9c9e6679-7425-40de-944b-e07fc1f90ae7";

/// A container with everything that a node's settings can add.
pub fn container() -> Value {
    json!({
        "environment": ["LANG=C.UTF-8", "EMPTY="],
        "command": ["serve", "--all"],
        "gpus": ["a.example/gpu=1"],
        "mounts": [
            { "volume": WRITTEN, "path": "/data" },
            { "volume": READ, "path": "/refs", "read_only": true },
        ],
        "published": [
            { "node_port": 20001, "instance_port": 22, "private": true },
            { "node_port": 20002, "instance_port": 80 },
        ],
        "private_address": "198.51.100.1",
        "settings": {
            "publish_address": "192.0.2.1",
            "dns": ["192.0.2.53"],
            "ulimits": { "nofile": 1024 },
            "userns": "keep-id:uid=1000",
        },
    })
}

/// A virtual machine, whose limit includes its image.
pub fn machine() -> Value {
    json!({
        "kind": "vm",
        "learnt": { "image_bytes": 160 << 20 },
        "ports": [80],
        "public": { "id": "0p1", "subnet": "198.51.100.0/24", "gateway": "198.51.100.1", "address": "198.51.100.7" },
    })
}

/// A public port on all addresses of a node with Podman, which has none of them, and a private port.
pub fn all_addresses(
    arguments: &[(&'static str, &'static str)],
    at: &'static str,
    ports: Value,
) -> Vec<Call> {
    let mut sample = container();
    sample["private_address"] = "127.0.0.1".into();
    sample["settings"] = json!({});
    vec![Call {
        name: "all addresses",
        arguments: [&[DIGEST], arguments].concat(),
        sample,
        walls: vec![(at, ports)],
    }]
}

/// Containers that are made from a snapshot: the members of the body with their image, labels and limit.
pub fn snapshots([image_at, labels_at, limit_at]: [&'static str; 3]) -> Vec<Call> {
    let call = |name, arguments: &[_], mut sample: Value, limit, disk: &str, ran: &str| {
        sample["snapshot"] = json!({
            "id": SNAPSHOT, "instance": "5d1c5a5e-8e7c-4a57-9f0e-2f4b8f1f6a11", "incarnation": 1,
        });
        let image = json!(format!("localhost/wharf-snapshot/{SNAPSHOT}:1"));
        let more = json!({
            "io.wharf.view": "machine", "io.wharf.disk": disk, "io.wharf.grown-from": ran,
        });
        let walls = vec![
            (image_at, image),
            (labels_at, labels(more)),
            (limit_at, limit),
        ];
        Call {
            name,
            arguments: [&[DIGEST], arguments].concat(),
            sample,
            walls,
        }
    };
    let (limited, counted) = (json!({ "size": "10G" }), json!({ "size": "10474M" }));
    let measured = json!({ "learnt": { "image_bytes": 160 << 20 } });
    let off = json!({ "settings": { "disk_limit": "off" } });
    let restore = json!({ "call": "restore" });
    vec![
        call("a clone", &[], measured, counted, "10G", "none"),
        call(
            "a clone without a limit",
            &[],
            off,
            Value::Null,
            "none",
            "none",
        ),
        call(
            "a restored one",
            &[("restored", "true")],
            restore,
            limited.clone(),
            "10G",
            "snapshot",
        ),
        call(
            "a clone that grows",
            &[("grown-from", "5G")],
            json!({}),
            limited,
            "10G",
            "5G",
        ),
    ]
}

/// Containers with other limits of their disk: the member of the body, and the label. The network of one has
/// its earlier name.
pub fn disks(labels_at: &'static str, limit_at: &'static str) -> Vec<Call> {
    let call = |name, arguments: &[_], sample, limit, more| Call {
        name,
        arguments: [&[DIGEST], arguments].concat(),
        sample,
        walls: vec![(labels_at, labels(more)), (limit_at, limit)],
    };
    let size = |size: &str| json!({ "size": size });
    vec![
        call(
            "a disk that counts its image",
            &[("network", "earlier"), ("grown-from", "5G")],
            json!({ "learnt": { "image_bytes": 160 << 20 } }),
            size("10474M"),
            json!({
                "io.wharf.view": "machine",
                "io.wharf.disk": "10G",
                "io.wharf.grown-from": "5G",
                "io.wharf.network": "n0a50010018",
            }),
        ),
        call(
            "a disk with simple quotas",
            &[],
            json!({ "settings": { "btrfs_quotas": "simple" } }),
            size("10304M"),
            json!({ "io.wharf.view": "machine", "io.wharf.disk": "10G" }),
        ),
        call(
            "a disk that the engine cannot limit",
            &[("no-disk-limit", "true")],
            json!({ "learnt": { "no-disk-limit": true } }),
            Value::Null,
            json!({ "io.wharf.view": "machine" }),
        ),
        call(
            "a disk without a limit",
            &[],
            json!({ "settings": { "disk_limit": "off" }, "learnt": { "image_bytes": 160 << 20 } }),
            Value::Null,
            json!({ "io.wharf.view": "machine" }),
        ),
        call(
            "a copy of content on another node",
            &[("fetched", "true")],
            json!({}),
            size("10G"),
            json!({ "io.wharf.view": "machine", "io.wharf.disk": "10G", "io.wharf.grown-from": "node" }),
        ),
        call(
            "a disk that grows without a limit",
            &[("grown-from", "5G")],
            json!({ "settings": { "disk_limit": "off" } }),
            size("10G"),
            json!({ "io.wharf.view": "machine", "io.wharf.disk": "10G", "io.wharf.grown-from": "5G" }),
        ),
    ]
}

/// The names and the endpoint of a public network, which no creation has.
const PUBLIC: [&str; 7] = [
    "values/endpoint/0",
    "values/endpoint/0/is",
    "values/endpoint/0/is/IPAMConfig",
    "values/endpoint/0/is/IPAMConfig/IPv4Address",
    "values/endpoint/0/is/MacAddress",
    "values/own/0",
    "values/own/0/is",
];

pub fn labels(more: Value) -> Value {
    let mut labels = json!({
        "io.wharf.installation": "c8ba4720-ac4f-4603-8aa4-a08d240a1045",
        "io.wharf.instance": "0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f",
        "io.wharf.incarnation": "3",
        "io.wharf.owner": "o1",
        "io.wharf.network": NETWORK,
        "io.wharf.spec": DIGEST.1,
    });
    let all = labels.as_object_mut().unwrap();
    all.extend(more.as_object().unwrap().clone());
    labels
}

fn networking() -> Value {
    let endpoint = json!({
        "IPAMConfig": { "IPv4Address": "10.80.1.7" },
        "MacAddress": "02:42:0a:50:01:07",
    });
    json!({ "EndpointsConfig": { format!("wharf-{NETWORK}"): endpoint } })
}

/// The files of lxcfs that show a container its own size.
pub const SIZES: [&str; 8] = [
    "/proc/cpuinfo",
    "/proc/diskstats",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/swaps",
    "/proc/uptime",
    "/sys/devices/system/cpu/online",
];

pub fn docker() -> Creation {
    let mounts = SIZES.map(|file| {
        let source = format!("/var/lib/lxcfs{file}");
        json!({ "Type": "bind", "Source": source, "Target": file, "ReadOnly": true })
    });
    let volume = |id: &str, path: &str, read_only: bool| {
        json!({
            "Type": "volume", "Source": format!("wharf-volume-{id}"), "Target": path,
            "ReadOnly": read_only, "VolumeOptions": { "NoCopy": true },
        })
    };
    let volumes = [volume(WRITTEN, "/data", false), volume(READ, "/refs", true)];
    let mounts: Vec<_> = mounts.into_iter().chain(volumes).collect();
    let binding = |address: &str, port: &str| json!([{ "HostIp": address, "HostPort": port }]);
    let common = || {
        vec![
            ("/Image", json!("localhost/wharf/base:1")),
            ("/Hostname", json!("demo")),
            ("/NetworkingConfig", networking()),
            ("/HostConfig/NetworkMode", json!(format!("wharf-{NETWORK}"))),
            ("/HostConfig/CpuPeriod", json!(100_000)),
            ("/HostConfig/CpuQuota", json!(200_000)),
            ("/HostConfig/PidsLimit", json!(4096)),
            ("/HostConfig/RestartPolicy", json!({ "Name": "no" })),
            (
                "/HostConfig/LogConfig",
                json!({ "Type": "json-file", "Config": { "max-size": "10m" } }),
            ),
        ]
    };
    let container_walls = [
        (
            "/Labels",
            labels(json!({ "io.wharf.view": "own", "io.wharf.disk": "10G" })),
        ),
        ("/Env", json!(["LANG=C.UTF-8", "EMPTY="])),
        ("/Cmd", json!(["serve", "--all"])),
        ("/ExposedPorts", json!({ "22/tcp": {}, "80/tcp": {} })),
        (
            "/HostConfig/PortBindings",
            json!({
                "22/tcp": binding("198.51.100.1", "20001"),
                "80/tcp": binding("192.0.2.1", "20002"),
            }),
        ),
        ("/HostConfig/Memory", json!(GIB)),
        ("/HostConfig/MemorySwap", json!(GIB)),
        ("/HostConfig/ShmSize", json!(GIB / 2)),
        ("/HostConfig/CapDrop", json!(["NET_RAW"])),
        (
            "/HostConfig/Sysctls",
            json!({ "net.ipv4.ping_group_range": "0 65535" }),
        ),
        ("/HostConfig/Mounts", json!(mounts)),
        (
            "/HostConfig/DeviceRequests",
            json!([{ "Driver": "cdi", "DeviceIDs": ["a.example/gpu=1"] }]),
        ),
        ("/HostConfig/StorageOpt", json!({ "size": "10G" })),
        ("/HostConfig/Dns", json!(["192.0.2.53"])),
        (
            "/HostConfig/Ulimits",
            json!([{ "Name": "nofile", "Soft": 1024, "Hard": 1024 }]),
        ),
        ("/HostConfig/UsernsMode", json!("keep-id:uid=1000")),
    ];
    let machine_walls = [
        (
            "/Labels",
            labels(json!({ "io.wharf.disk": "13G", "io.wharf.public-network": "0p1" })),
        ),
        ("/HostConfig/Memory", json!(GIB + MACHINE)),
        ("/HostConfig/MemorySwap", json!(GIB + MACHINE)),
        ("/HostConfig/CapDrop", json!(["ALL"])),
        ("/HostConfig/SecurityOpt", json!(["no-new-privileges"])),
        (
            "/HostConfig/Sysctls",
            json!({ "net.ipv4.ip_unprivileged_port_start": "0" }),
        ),
        (
            "/HostConfig/Devices",
            json!([{ "PathOnHost": "/dev/kvm", "PathInContainer": "/dev/kvm", "CgroupPermissions": "rw" }]),
        ),
        ("/HostConfig/StorageOpt", json!({ "size": "13G" })),
    ];
    Creation {
        driver: "driver-docker",
        request: "create",
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
                    arguments: vec![DIGEST, ("kvm", "true")],
                    sample: machine(),
                    walls: common().into_iter().chain(machine_walls).collect(),
                },
            ],
            disks("/Labels", "/HostConfig/StorageOpt"),
            snapshots(["/Image", "/Labels", "/HostConfig/StorageOpt"]),
            all_addresses(
                &[("podman", "true")],
                "/HostConfig/PortBindings",
                json!({ "22/tcp": binding("127.0.0.1", "20001"), "80/tcp": [{ "HostPort": "20002" }] }),
            ),
        ]
        .into_iter()
        .flatten()
        .collect(),
        members: vec![
            (
                "",
                vec![
                    "Cmd",
                    "Env",
                    "ExposedPorts",
                    "HostConfig",
                    "Hostname",
                    "Image",
                    "Labels",
                    "NetworkingConfig",
                ],
            ),
            (
                "/HostConfig",
                vec![
                    "CapDrop",
                    "CpuPeriod",
                    "CpuQuota",
                    "DeviceRequests",
                    "Devices",
                    "Dns",
                    "LogConfig",
                    "Memory",
                    "MemorySwap",
                    "Mounts",
                    "NetworkMode",
                    "PidsLimit",
                    "PortBindings",
                    "RestartPolicy",
                    "SecurityOpt",
                    "ShmSize",
                    "StorageOpt",
                    "Sysctls",
                    "Ulimits",
                    "UsernsMode",
                ],
            ),
        ],
        free: PUBLIC.into(),
        doors: vec![
            ("request/create/body/HostConfig/Privileged", true.into()),
            (
                "request/create/body/HostConfig/CapAdd",
                vec!["SYS_ADMIN"].into(),
            ),
            (
                "request/create/body/HostConfig/Binds",
                vec!["/:/mnt"].into(),
            ),
            ("request/create/body/HostConfig/PidMode", "host".into()),
            ("request/create/body/HostConfig/CgroupParent", "/".into()),
            ("request/create/body/HostConfig/NetworkMode", "host".into()),
            ("request/create/body/HostConfig/Memory", 0.into()),
            (
                "request/create/body/HostConfig/SecurityOpt",
                vec!["seccomp=unconfined"].into(),
            ),
            ("request/create/body/User", "root".into()),
            ("values/snapshot", "localhost/other/{snapshot.id}".into()),
            ("request/create/body/Volumes", toml::Table::new().into()),
            ("values/mounted/item/Type", "bind".into()),
            ("values/mounted/item/ReadOnly", false.into()),
        ],
    }
}
