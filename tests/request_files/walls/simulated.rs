//! The simulated engine.

use super::volumes::{READ, WRITTEN};
use super::{Call, Creation};
use serde_json::json;

pub fn create() -> Creation {
    Creation {
        driver: "driver-simulated",
        request: "create",
        calls: vec![Call {
            name: "machine",
            arguments: Vec::new(),
            sample: json!({
                "kind": "vm",
                "gpus": ["gpu0"],
                "mounts": [{ "volume": READ, "path": "/refs", "read_only": true }],
                "snapshot": { "id": READ, "instance": WRITTEN, "incarnation": 2 },
                "published": [
                    { "node_port": 20001, "instance_port": 22, "private": true },
                    { "node_port": 20002, "instance_port": 80 },
                ],
                "private_address": "198.51.100.1",
                "settings": { "publish_address": "192.0.2.1" },
            }),
            walls: vec![(
                "",
                json!({
                    "installation": "c8ba4720-ac4f-4603-8aa4-a08d240a1045",
                    "incarnation": 3,
                    "kind": "vm",
                    "hostname": "demo",
                    "image": "localhost/wharf/base:1",
                    "address": "10.80.1.7",
                    "node_ports": [
                        { "address": "198.51.100.1", "port": 20001 },
                        { "address": "192.0.2.1", "port": 20002 },
                    ],
                    "gpus": ["gpu0"],
                    "mounts": [{ "volume": READ, "path": "/refs", "read_only": true }],
                    "source": { "snapshot": READ, "instance": WRITTEN, "incarnation": 2 },
                    "n_vcpus": 2,
                    "mem_gib": 1,
                    "disk_size_gib": 10,
                }),
            )],
        }],
        members: Vec::new(),
        free: Vec::new(),
        doors: vec![("values/machine/privileged", true.into())],
    }
}
