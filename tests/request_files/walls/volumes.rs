//! Volumes: the container that holds one on Docker, the volume there, and both kinds of requests of Incus.

use super::{Call, Creation};
use serde_json::{Value, json};

/// Volumes of an instance.
pub const WRITTEN: &str = "1c9e6679-7425-40de-944b-e07fc1f90ae7";
pub const READ: &str = "2c9e6679-7425-40de-944b-e07fc1f90ae7";
/// The volume of a call that makes one of 20 GiB.
const MADE: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
const LAYER: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const INSTALLATION: &str = "c8ba4720-ac4f-4603-8aa4-a08d240a1045";

fn labels() -> Value {
    json!({ "io.wharf.holder": INSTALLATION, "io.wharf.volume": MADE, "io.wharf.size": "20" })
}

/// A call that makes a volume, and its whole body.
fn call(name: &'static str, sample: Value, body: Value) -> Call {
    let mut sample = sample;
    sample["call"] = "make".into();
    Call {
        name,
        arguments: Vec::new(),
        sample,
        walls: vec![("", body)],
    }
}

/// The command of a proof, without a volume: on a disk of this size, with a second part of that one.
fn proof(name: &'static str, sample: Value, mib: u32, second: u32) -> Call {
    let mut proof = held(name, sample, mib);
    proof.arguments = vec![("proof", "true")];
    let [(_, body)] = proof.walls.as_mut_slice() else {
        unreachable!();
    };
    body["Labels"] = json!({ "io.wharf.proof": INSTALLATION });
    body["Entrypoint"][2] = format!(
        "r=unproven; if fallocate -l 768M /a && (sync -f /a || sync); then \
        e=$(fallocate -l {second}M /b 2>&1) && r=broken; case $e in *uota*) r=held;; esac; fi; \
        rm -f /a /b; echo wharf-limits-$r"
    )
    .into();
    proof
}

/// The holder of a volume whose content comes from a backup.
fn fetched(name: &'static str, sample: Value, mib: u32) -> Call {
    let mut fetched = held(name, sample, mib);
    fetched.arguments = vec![("fetched", "true")];
    let [(_, body)] = fetched.walls.as_mut_slice() else {
        unreachable!();
    };
    body["Labels"]["io.wharf.fetched"] = "1".into();
    fetched
}

fn held(name: &'static str, sample: Value, mib: u32) -> Call {
    let command = format!(
        "mkdir -p /volume && chown 1000:1000 /volume && fallocate -l 1M /probe && fallocate -l {mib}M \
         /probe 2>&1 | grep -qi quota && rm -f /probe && exec cat /proc/self/mountinfo"
    );
    let body = json!({
        "Image": "localhost/wharf/base:1",
        "Entrypoint": ["/bin/sh", "-c", command],
        "Cmd": [],
        "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"],
        "WorkingDir": "/",
        "User": "0:0",
        "NetworkDisabled": true,
        "Labels": labels(),
        "HostConfig": {
            "NetworkMode": "none",
            "StorageOpt": { "size": format!("{mib}M") },
            "CapDrop": ["ALL"],
            "CapAdd": ["CHOWN"],
            "SecurityOpt": ["no-new-privileges"],
            "Memory": 128 << 20,
            "MemorySwap": 128 << 20,
            "PidsLimit": 32,
            "RestartPolicy": { "Name": "no" },
            "LogConfig": { "Type": "json-file", "Config": { "max-size": "1m" } },
            "Ulimits": [{ "Name": "nofile", "Soft": 1024, "Hard": 1024 }],
        },
    });
    call(name, sample, body)
}

/// The holder runs one command of the file, without a network, a mount, or a part of an instance.
pub fn holder() -> Creation {
    let ulimits = json!({ "nofile": 1024 });
    let place = |key: &str| format!("request/create-holder/body/{key}").leak() as &'static str;
    Creation {
        driver: "driver-docker",
        request: "create-holder",
        calls: vec![
            held(
                "a disk that counts its image",
                json!({ "learnt": { "image_bytes": 160 << 20 }, "settings": { "ulimits": ulimits } }),
                20_714,
            ),
            held(
                "simple quotas",
                json!({ "settings": { "ulimits": ulimits, "btrfs_quotas": "simple" } }),
                20_544,
            ),
            proof(
                "a proof",
                json!({ "settings": { "ulimits": ulimits, "btrfs_quotas": "simple" } }),
                20_544,
                960,
            ),
            proof(
                "a proof on a disk that counts its image",
                json!({ "learnt": { "image_bytes": 160 << 20 }, "settings": { "ulimits": ulimits } }),
                20_714,
                970,
            ),
            fetched(
                "a volume from a backup",
                json!({ "settings": { "ulimits": ulimits, "btrfs_quotas": "simple" } }),
                20_544,
            ),
            held(
                "no image",
                json!({ "settings": { "ulimits": ulimits } }),
                20_480,
            ),
        ],
        members: Vec::new(),
        free: Vec::new(),
        doors: vec![
            (place("HostConfig/Binds"), vec!["/:/mnt"].into()),
            (place("HostConfig/Mounts"), vec!["/"].into()),
            (place("HostConfig/Privileged"), true.into()),
            (place("HostConfig/NetworkMode"), "host".into()),
            (place("Entrypoint"), vec!["/bin/sh"].into()),
            (place("HostConfig/StorageOpt/size"), "100G".into()),
        ],
    }
}

/// The carrier of a snapshot never runs, and has no network, mount or label of an instance.
pub fn carrier() -> Creation {
    let place = |key: &str| format!("request/create-carrier/body/{key}").leak() as &'static str;
    let body = json!({
        "Image": format!("localhost/wharf-snapshot/{MADE}:1"),
        "Entrypoint": ["/bin/false"],
        "Cmd": [],
        "NetworkDisabled": true,
        "Labels": { "io.wharf.installation": "none", "io.wharf.carrier": INSTALLATION },
        "HostConfig": {
            "NetworkMode": "none",
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "RestartPolicy": { "Name": "no" },
        },
    });
    let snapshot = json!({ "id": MADE, "instance": WRITTEN, "incarnation": 1 });
    Creation {
        driver: "driver-docker",
        request: "create-carrier",
        calls: vec![Call {
            name: "a carrier",
            arguments: Vec::new(),
            sample: json!({ "call": "send", "snapshot": snapshot }),
            walls: vec![("", body)],
        }],
        members: Vec::new(),
        free: Vec::new(),
        doors: vec![
            (place("HostConfig/Binds"), vec!["/:/mnt"].into()),
            (place("HostConfig/Privileged"), true.into()),
            (place("Image"), "localhost/wharf-snapshot/x:1".into()),
        ],
    }
}

/// The volume is the directory on the disk of its holder.
pub fn docker() -> Creation {
    let body = json!({
        "Name": format!("wharf-volume-{MADE}"),
        "Driver": "local",
        "DriverOpts": {
            "type": "none",
            "o": "bind,uid=1000,gid=1000",
            "device": format!("/var/lib/docker/btrfs/subvolumes/{LAYER}/volume"),
        },
        "Labels": labels(),
    });
    let learnt = json!({ "learnt": { "root": ["/var/lib/docker"], "layer": [LAYER] } });
    Creation {
        driver: "driver-docker",
        request: "create-volume",
        calls: vec![call("a volume", learnt, body)],
        members: Vec::new(),
        free: Vec::new(),
        doors: vec![(
            "request/create-volume/body/DriverOpts/device",
            "/var/lib".into(),
        )],
    }
}

fn settings() -> Value {
    json!({ "member": "one", "gateway": "10.80.0.1", "publish_address": "192.0.2.1" })
}

pub fn incus() -> Creation {
    let body = json!({
        "name": format!("wv-240a1045-{MADE}"),
        "content_type": "filesystem",
        "config": {
            "size": "20GiB",
            "initial.uid": "1000",
            "initial.gid": "1000",
            "initial.mode": "0755",
            "security.shifted": "true",
            "user.wharf.incomplete": "true",
            "user.wharf.installation": INSTALLATION,
        },
    });
    Creation {
        driver: "driver-incus",
        request: "create-volume",
        calls: vec![call("a volume", json!({ "settings": settings() }), body)],
        members: Vec::new(),
        free: Vec::new(),
        doors: vec![
            (
                "request/create-volume/body/config/security.unmapped",
                "true".into(),
            ),
            ("request/create-volume/body/config/size", "1TiB".into()),
        ],
    }
}

/// The instance of a proof on Incus, or its copy: it has nothing but a disk.
pub fn probe(copy: bool) -> Creation {
    let name = format!("wp-240a1045-{MADE}");
    let (request, own, source) = if copy {
        let source = json!({ "type": "copy", "source": name });
        ("copy-probe", format!("{name}-copy"), source)
    } else {
        ("create-probe", name, json!({ "type": "none" }))
    };
    let body = json!({
        "name": own,
        "type": "container",
        "source": source,
        "profiles": [],
        "config": {
            "limits.cpu": "1", "limits.memory": "16MiB", "limits.processes": "16",
            "user.wharf.proof": INSTALLATION,
        },
        "devices": { "root": { "type": "disk", "path": "/", "pool": "default", "size": "16MiB" } },
    });
    Creation {
        driver: "driver-incus",
        request,
        calls: vec![call("a proof", json!({ "settings": settings() }), body)],
        members: Vec::new(),
        free: Vec::new(),
        doors: vec![
            ("values/probe/devices/root/size", "1TiB".into()),
            ("values/probe/config/security.privileged", "true".into()),
        ],
    }
}

/// The devices of an instance's volumes on Incus.
pub fn disks() -> Value {
    let disk = |id: &str| format!("wv-240a1045-{id}");
    json!({
        format!("vol-{WRITTEN}"): { "type": "disk", "pool": "default", "source": disk(WRITTEN), "path": "/data" },
        format!("vol-{READ}"): {
            "type": "disk", "pool": "default", "source": disk(READ), "path": "/refs", "readonly": "true",
        },
    })
}

pub fn attachment() -> Creation {
    let sample = json!({
        "call": "change",
        "mounts": [
            { "volume": WRITTEN, "path": "/data" },
            { "volume": READ, "path": "/refs", "read_only": true },
        ],
        "settings": settings(),
    });
    Creation {
        driver: "driver-incus",
        request: "attach",
        calls: vec![Call {
            name: "two volumes",
            arguments: Vec::new(),
            sample,
            walls: vec![("", json!({ "devices": disks() }))],
        }],
        members: Vec::new(),
        free: Vec::new(),
        doors: vec![
            ("values/disks/item/source", "/".into()),
            (
                "request/attach/body/config",
                toml::Table::from_iter([("raw.lxc".to_owned(), "x".into())]).into(),
            ),
        ],
    }
}
