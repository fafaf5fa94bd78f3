//! Incus, on a bridge of the operator and with networks of OVN.

use super::volumes::{READ, WRITTEN, disks};
use super::{Call, Creation, DIGEST};
use serde_json::{Value, json};

const BRIDGE_NET: &str = "10.80.1.7/32 10.80.0.1 192.0.2.53";
const OVN_NET: &str = "10.80.1.7/24 10.80.1.1 192.0.2.53";
const IMAGE: &str = "c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0";
const INSTANCE: &str = "0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f";

fn config(net: &str) -> Value {
    json!({
        "limits.cpu": "2",
        "limits.memory": "1GiB",
        "limits.processes": "4096",
        "boot.autostart": "false",
        "security.idmap.isolated": "true",
        // A subvolume within a disk escapes its limit.
        "security.syscalls.deny": "ioctl errno 25 [1,37888,SCMP_CMP_MASKED_EQ,65280]",
        "environment.LANG": "C.UTF-8",
        "user.wharf.installation": "c8ba4720-ac4f-4603-8aa4-a08d240a1045",
        "user.wharf.spec": DIGEST.1,
        "user.wharf.hostname": "demo",
        "user.wharf.restore": "none",
        "user.wharf.start": "begun",
        "user.wharf.net": net,
    })
}

fn call(name: &'static str, settings: Value, net: &str, devices: Value) -> Call {
    Call {
        name,
        arguments: vec![DIGEST],
        sample: json!({
            "images": ["wharf/base:1"],
            "gpus": ["0000:01:00.0"],
            "mounts": [
                { "volume": WRITTEN, "path": "/data" },
                { "volume": READ, "path": "/refs", "read_only": true },
            ],
            "published": [
                { "node_port": 20001, "instance_port": 22, "private": true },
                { "node_port": 20002, "instance_port": 80 },
            ],
            "private_address": "198.51.100.1",
            "settings": settings,
        }),
        walls: vec![
            (
                "/name",
                json!("wh-240a1045-0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f-3"),
            ),
            ("/type", json!("container")),
            (
                "/source",
                json!({ "type": "image", "alias": "wharf/base:1" }),
            ),
            // A profile could add devices and configuration.
            ("/profiles", json!([])),
            ("/config", config(net)),
            ("/devices", merged(devices, disks())),
        ],
    }
}

fn merged(mut one: Value, other: Value) -> Value {
    let members = one.as_object_mut().unwrap();
    members.extend(other.as_object().unwrap().clone());
    one
}

fn bridge_settings() -> Value {
    json!({
        "member": "one",
        "gateway": "10.80.0.1",
        "publish_address": "192.0.2.1",
        "dns": "192.0.2.53",
    })
}

fn bridge() -> Call {
    let proxy = |address: &str, node: u16, instance: u16| {
        json!({
            "type": "proxy",
            "nat": "true",
            "listen": format!("tcp:{address}:{node}"),
            "connect": format!("tcp:10.80.1.7:{instance}"),
        })
    };
    let settings = bridge_settings();
    let devices = json!({
        "root": { "type": "disk", "path": "/", "pool": "default", "size": "10GiB" },
        "eth0": {
            "type": "nic",
            "name": "eth0",
            "network": "wharf0",
            "ipv4.address": "10.80.1.7",
            "hwaddr": "02:42:0a:50:01:07",
            "security.mac_filtering": "true",
            "security.ipv4_filtering": "true",
            "security.ipv6_filtering": "true",
            "security.port_isolation": "true",
        },
        "port22": proxy("198.51.100.1", 20001, 22),
        "port80": proxy("192.0.2.1", 20002, 80),
        "gpu0": { "type": "gpu", "gputype": "physical", "pci": "0000:01:00.0" },
    });
    call("bridge", settings, BRIDGE_NET, devices)
}

/// Ports have forwards of their own here. Routes of its own would give a NIC other addresses.
fn ovn() -> Call {
    let settings = ovn_settings();
    let devices = json!({
        "root": { "type": "disk", "path": "/", "pool": "default", "size": "10GiB" },
        "eth0": {
            "type": "nic",
            "name": "eth0",
            "network": "wh-240a1045-10.80.1.1",
            "ipv4.address": "10.80.1.7",
            "hwaddr": "02:42:0a:50:01:07",
        },
        "gpu0": { "type": "gpu", "gputype": "physical", "pci": "0000:01:00.0" },
    });
    call("ovn", settings, OVN_NET, devices)
}

pub fn create() -> Creation {
    Creation {
        driver: "driver-incus",
        request: "create",
        calls: vec![bridge(), ovn()],
        members: vec![(
            "",
            vec!["config", "devices", "name", "profiles", "source", "type"],
        )],
        free: Vec::new(),
        doors: vec![
            ("values/new/security.privileged", "true".into()),
            ("values/made/raw.lxc", "lxc.mount.entry = /".into()),
            (
                "request/create/body/devices/host",
                toml::Table::new().into(),
            ),
            ("values/root/source", "/".into()),
            ("values/disks/item/source", "/".into()),
            ("values/bridge-nic/ipv4.routes", "192.0.2.0/24".into()),
            ("values/ovn-nic/security.acls", "other".into()),
            ("values/nic/network", "other".into()),
        ],
    }
}

fn ovn_settings() -> Value {
    json!({
        "member": "one",
        "uplink": "up",
        "acl": "wharf",
        "publish_cidr": "198.18.64.0/18",
        "dns": "192.0.2.53",
    })
}

/// An instance from content has what any other one has.
pub fn fetched() -> Creation {
    let made = |mut call: Call| {
        call.arguments = vec![DIGEST, ("image", IMAGE), ("bytes", "5")];
        call.sample["learnt"] = json!({ "image": [IMAGE] });
        call.walls[2].1 = json!({ "type": "image", "fingerprint": IMAGE });
        let mut own = json!({ "user.wharf.base": "5" });
        // One of them has run elsewhere.
        if call.name == "bridge" {
            call.arguments.push(("moved", "true"));
            own = merged(
                own,
                json!({ "user.wharf.start": "done", "user.wharf.moved": "1" }),
            );
        }
        let config = call.walls[4].1.clone();
        call.walls[4].1 = merged(config, own);
        call
    };
    let create = create();
    Creation {
        request: "create-fetched",
        calls: create.calls.into_iter().map(made).collect(),
        doors: vec![(
            "request/create-fetched/body/config/security.privileged",
            "true".into(),
        )],
        ..create
    }
}

/// A clone has none of the devices of its source, and no limit that is the source's.
pub fn clone() -> Creation {
    let none = json!({ "type": "none" });
    let root = json!({ "type": "disk", "path": "/", "pool": "default", "size": "10256MiB" });
    let call = |name, settings: Value, net| {
        let own = json!({ "user.wharf.base": "5", "user.wharf.snapshot": "none", "user.wharf.moved": "none" });
        let body = json!({
            "name": "wh-240a1045-0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f-3",
            "type": "container",
            "source": { "type": "copy", "source": format!("wh-240a1045-{WRITTEN}-2/wharf-{READ}") },
            "profiles": [],
            "config": merged(config(net), own),
            "devices": { "root": root, "eth0": none, "gpu0": none, "vol-x": none },
        });
        Call {
            name,
            arguments: vec![DIGEST, ("bytes", "5")],
            sample: json!({
                "images": ["wharf/base:1"],
                "snapshot": { "id": READ, "instance": WRITTEN, "incarnation": 2 },
                "learnt": { "device": ["eth0", "gpu0", "vol-x"] },
                "settings": settings,
            }),
            walls: vec![("", body)],
        }
    };
    Creation {
        driver: "driver-incus",
        request: "create-clone",
        calls: vec![
            call("bridge", bridge_settings(), BRIDGE_NET),
            call("ovn", ovn_settings(), OVN_NET),
        ],
        members: Vec::new(),
        free: Vec::new(),
        doors: vec![("values/masked/item/type", "disk".into())],
    }
}

/// What an instance with the disk of a snapshot gets is what a new one has.
pub fn furnishing() -> Creation {
    let furnished = |call: Call, is_restored: bool| {
        let mut config = call.walls[4].1.clone();
        let members = config.as_object_mut().unwrap();
        members.remove("security.idmap.isolated");
        members.remove("user.wharf.start");
        let mut arguments = vec![DIGEST];
        let mut sample = call.sample;
        if is_restored {
            arguments.push(("restored", "true"));
            members.insert("user.wharf.start".into(), "done".into());
            sample["call"] = "restore".into();
            sample["snapshot"] = json!({ "id": READ, "instance": INSTANCE, "incarnation": 3 });
        }
        let devices = call.walls[5].1.clone();
        Call {
            arguments,
            sample,
            walls: vec![("", json!({ "config": config, "devices": devices }))],
            ..call
        }
    };
    Creation {
        driver: "driver-incus",
        request: "furnish",
        calls: vec![furnished(bridge(), false), furnished(ovn(), true)],
        members: Vec::new(),
        free: Vec::new(),
        doors: vec![(
            "request/furnish/body/devices/vol-x",
            toml::Table::new().into(),
        )],
    }
}
