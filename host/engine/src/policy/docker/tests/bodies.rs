//! Bodies that create containers.

use super::{ID, OTHER, ask, create, creation, password, scope};
use crate::Body;
use serde_json::{Value, json};
use wharf_domain::blueprint::{Content, File};
use wharf_domain::secret::SecretKind;

/// An accepted body with another value in one place.
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
            "/NetworkingConfig/EndpointsConfig/wharf-n0a500100ome",
            "Aliases",
            json!(["postgres"]),
        ),
        (
            "/NetworkingConfig/EndpointsConfig/wharf-n0a500100ome",
            "MacAddress",
            json!("02:42:0a:50:01:08"),
        ),
        (
            "/NetworkingConfig/EndpointsConfig/wharf-n0a500100ome/IPAMConfig",
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
fn only_the_blueprints_files_are_put_in() {
    let path = format!("/containers/wharf-{ID}/archive?path=/");
    let put = |file: File| ask(&scope(), "PUT", &path, Body::Archive(vec![file])).is_ok();
    assert!(put(password()));
    let elsewhere = "/var/lib/wharf/machine/acceleration";
    for bad in [
        File {
            path: elsewhere.into(),
            ..password()
        },
        File {
            path: "/usr/local/sbin/wharf-vm".into(),
            ..password()
        },
        File {
            mode: 0o644,
            ..password()
        },
        File {
            uid: 1000,
            ..password()
        },
        File {
            content: Content::Secret(SecretKind::Password),
            ..password()
        },
        File {
            content: Content::Bytes(b"mine".to_vec()),
            ..password()
        },
    ] {
        assert!(!put(bad.clone()), "{bad:?}");
    }
}
