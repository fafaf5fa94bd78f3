//! Containers of virtual machines.

use super::{ID, OTHER, ask, creation, docker, scope};
use crate::{Body, Response};
use http::Method;
use serde_json::{Value, json};
use wharf_domain::driver::Network;
use wharf_requests::CallScope;

pub fn vm() -> CallScope {
    let mut scope = scope();
    let subject = scope.subject.as_mut().unwrap();
    subject.vm_ports = Some(vec![22, 8080]);
    subject.public_network = Some(Network {
        id: "0p".into(),
        subnet: "203.0.113.0/28".parse().unwrap(),
        gateway: "203.0.113.1".parse().unwrap(),
        address: "203.0.113.5".parse().unwrap(),
    });
    scope
}

fn send(scope: &CallScope, path: &str, body: &Value) -> bool {
    ask(scope, "POST", path, Body::Json(body.to_string())).is_ok()
}

/// An allowed body for a virtual machine.
pub fn machine() -> Value {
    let mut body = creation();
    let memory = (1_u64 << 30) + (384 << 20);
    for (key, value) in [
        ("Memory", json!(memory)),
        ("MemorySwap", json!(memory)),
        ("CapDrop", json!(["ALL"])),
        ("SecurityOpt", json!(["no-new-privileges"])),
        (
            "Sysctls",
            json!({ "net.ipv4.ip_unprivileged_port_start": "0" }),
        ),
        ("StorageOpt", json!({ "size": "13G" })),
    ] {
        body["HostConfig"][key] = value;
    }
    let host = body["HostConfig"].as_object_mut().unwrap();
    host.remove("ShmSize");
    body
}

fn with(key: &str, value: Value) -> Value {
    let mut body = machine();
    body["HostConfig"][key] = value;
    body
}

#[test]
fn of_devices_only_virtualisation_and_for_machines_only() {
    let path = format!("/containers/create?name=wharf-{ID}");
    let device = |of: &str, inside: &str, how: &str| {
        let device =
            json!({ "PathOnHost": of, "PathInContainer": inside, "CgroupPermissions": how });
        with("Devices", json!([device]))
    };
    let kvm = device("/dev/kvm", "/dev/kvm", "rw");
    assert!(send(&vm(), &path, &kvm));
    assert!(!send(&scope(), &path, &kvm), "a container");
    for bad in [
        device("/dev/mem", "/dev/kvm", "rw"),
        device("/dev/kvm", "/dev/sda", "rw"),
        device("/dev/kvm", "/dev/kvm", "rwm"),
    ] {
        assert!(!send(&vm(), &path, &bad), "{bad}");
    }
    for (key, good, bad) in [
        (
            "SecurityOpt",
            json!(["no-new-privileges"]),
            json!(["seccomp=unconfined"]),
        ),
        (
            "Sysctls",
            json!({ "net.ipv4.ip_unprivileged_port_start": "0" }),
            json!({ "net.ipv4.ip_forward": "1" }),
        ),
        ("CapDrop", json!(["ALL"]), json!([1])),
    ] {
        assert!(send(&vm(), &path, &with(key, good)), "{key}");
        assert!(!send(&vm(), &path, &with(key, bad)), "{key}");
    }
    let off = docker(&json!({ "kvm": "off" })).unwrap();
    let request = crate::Request {
        method: Method::POST,
        path,
        headers: Vec::new(),
        body: Body::Json(kvm.to_string()),
        timeout: None,
    };
    assert!(off.check(&vm(), &request, false).is_err(), "switched off");
}

#[test]
fn its_public_network_is_its_own_or_the_operators() {
    let attach = json!({
        "Container": format!("wharf-{ID}"),
        "EndpointConfig": { "IPAMConfig": { "IPv4Address": "203.0.113.5" } },
    });
    assert!(send(&vm(), "/networks/wharf-0p/connect", &attach));
    assert!(!send(&scope(), "/networks/wharf-0p/connect", &attach));
    assert!(!send(&vm(), "/networks/bridge/connect", &attach));
    let mut other = attach.clone();
    other["Container"] = json!(format!("wharf-{OTHER}"));
    assert!(!send(&vm(), "/networks/wharf-0p/connect", &other));
    let mut moved = attach.clone();
    moved["EndpointConfig"]["IPAMConfig"]["IPv4Address"] = json!("203.0.113.6");
    assert!(!send(&vm(), "/networks/wharf-0p/connect", &moved));
    let policy = docker(&json!({ "public_network": "uplink" })).unwrap();
    let request = |path: &str| crate::Request {
        method: Method::POST,
        path: path.into(),
        headers: Vec::new(),
        body: Body::Json(attach.to_string()),
        timeout: None,
    };
    let asked = |path: &str| policy.check(&vm(), &request(path), false).is_ok();
    assert!(asked("/networks/uplink/connect"));
    assert!(!asked("/networks/downlink/connect"));
}

#[test]
fn a_program_is_run_only_to_set_the_calls_ports() {
    let path = format!("/containers/wharf-{ID}/exec");
    let run = |words: &[&str]| json!({ "Cmd": words, "AttachStdout": true, "AttachStderr": true });
    let good = run(&["/usr/local/sbin/wharf-vm", "set-ports", "22", "8080"]);
    assert!(send(&vm(), &path, &good));
    assert!(!send(&scope(), &path, &good), "a container");
    assert!(!send(
        &vm(),
        &format!("/containers/wharf-{OTHER}/exec"),
        &good
    ));
    for bad in [
        run(&["/bin/sh", "-c", "id"]),
        run(&["/usr/local/sbin/wharf-vm", "set-ports", "22", "8081"]),
        run(&[]),
    ] {
        assert!(!send(&vm(), &path, &bad), "{bad}");
    }
    for (key, value) in [
        ("Privileged", json!(true)),
        ("User", json!("root")),
        ("Env", json!(["LD_PRELOAD=x"])),
        ("Tty", json!(true)),
    ] {
        let mut bad = good.clone();
        bad[key] = value;
        assert!(!send(&vm(), &path, &bad), "{key}");
    }
}

#[test]
fn a_program_is_started_only_by_the_call_that_made_it() {
    let policy = docker(&json!({})).unwrap();
    let mut scope = vm();
    let id = "e".repeat(64);
    let start = format!("/exec/{id}/start");
    let body = json!({ "Detach": false, "Tty": false });
    assert!(!send(&scope, &start, &body));
    let made = |status| Response {
        status,
        headers: Vec::new(),
        body: json!({ "Id": id }).to_string().into(),
    };
    policy.learn(&mut scope, "prepare-ports", &made(409));
    assert!(!send(&scope, &start, &body));
    policy.learn(&mut scope, "prepare-ports", &made(201));
    assert!(send(&scope, &start, &body));
    assert!(ask(&scope, "GET", &format!("/exec/{id}/json"), Body::Empty).is_ok());
    assert!(!send(&scope, &start, &json!({ "Detach": true })));
    assert!(!send(&scope, &format!("/exec/{id}/resize"), &body));
}

#[test]
fn a_node_is_asked_what_its_machines_run_on_and_nothing_else_is_read() {
    let mut node = CallScope::node("home");
    let id = "a".repeat(64);
    let read = |scope: &CallScope, file: &str| {
        let path = format!("/containers/{id}/archive?path={file}");
        ask(scope, "GET", &path, Body::Empty).is_ok()
    };
    let file = "%2Fvar%2Flib%2Fwharf%2Fmachine%2Facceleration";
    assert!(!read(&node, file), "not listed");
    let rows = json!([{ "Id": id, "Labels": { "io.wharf.installation": "home" } }]);
    let answer = Response {
        status: 200,
        headers: Vec::new(),
        body: rows.to_string().into(),
    };
    let policy = docker(&json!({})).unwrap();
    policy.learn(&mut node, "list", &answer);
    assert!(read(&node, file));
    assert!(!read(&node, "%2Fetc%2Fshadow"));
    assert!(ask(&node, "GET", &format!("/containers/{id}/json"), Body::Empty).is_err());
    let mut other = vm();
    policy.learn(&mut other, "list", &answer);
    assert!(!read(&other, file), "in a call about one instance");
}
