//! A driver that tries to take over the node through its engine.

use crate::engine::Engine;
use crate::fixtures::Plugins;
use crate::{create_on, logged, server, uuid};
use serde_json::Value;
use std::collections::BTreeSet;
use wharf_tests::until;

/// The keys of the one allowed `HostConfig`.
const ALLOWED: [&str; 13] = [
    "CapDrop",
    "CpuPeriod",
    "CpuQuota",
    "DeviceRequests",
    "LogConfig",
    "Memory",
    "MemorySwap",
    "NetworkMode",
    "PidsLimit",
    "PortBindings",
    "ShmSize",
    "StorageOpt",
    "Sysctls",
];

/// The keys of the one allowed creation on Podman's own path.
const ALLOWED_BY_PODMAN: [&str; 14] = [
    "cap_drop",
    "devices",
    "hostname",
    "image",
    "labels",
    "log_configuration",
    "name",
    "netns",
    "networks",
    "portmappings",
    "resource_limits",
    "shm_size",
    "storage_opts",
    "sysctl",
];

fn keys(object: &Value) -> BTreeSet<&str> {
    object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn no_dangerous_request_reaches_the_engine() {
    let plugins = Plugins::driver();
    let engine = Engine::refusing();
    let socket = engine.socket();
    let (server, api) = server(&plugins, &[("ensure-breaks-out", &socket)]);
    let created = create_on(&api, "ensure-breaks-out");
    let id = format!("instance={}", uuid(&created));
    until("the driver has sent all requests", || {
        let tried = logged(&server, &[&id, " passed: "]);
        assert!(
            !logged(&server, &["not even what is allowed"]),
            "{}",
            server.log()
        );
        Ok(tried.then_some(()))
    })
    .unwrap();
    let log = server.log();
    let verdict = log
        .lines()
        .find(|l| l.contains(&id) && l.contains(" passed: "));
    println!("{}", verdict.unwrap().split("why=").last().unwrap());
    assert!(verdict.unwrap().contains("0 of "), "{verdict:?}");
    assert!(logged(
        &server,
        &["a driver's request was not sent", "Privileged"]
    ));

    // Only allowed requests reached the engine, in the form that was checked.
    let own = format!("wharf-{}", uuid(&created));
    let creation = format!("POST /containers/create?name={own} HTTP/1.1");
    let libpod = "/v4.0.0/libpod/containers";
    let podmans = format!("POST {libpod}/create HTTP/1.1");
    let others = [
        format!("POST {libpod}/{own}/update HTTP/1.1"),
        format!("POST /containers/{own}-part/rename?name={own}-whole HTTP/1.1"),
        // Requests of the transfer, which ends at the engine's first refusal.
        format!("GET /containers/{own}/changes HTTP/1.1"),
        format!("GET /containers/{own}/export HTTP/1.1"),
    ];
    let asked = engine.asked();
    let mut came = [0; 2];
    for request in &asked {
        if request.line == creation {
            came[0] += 1;
            let host = &request.body["HostConfig"];
            assert_eq!(keys(host), BTreeSet::from(ALLOWED));
        } else if request.line == podmans {
            came[1] += 1;
            assert_eq!(request.body["name"], own);
            assert_eq!(keys(&request.body), BTreeSet::from(ALLOWED_BY_PODMAN));
        } else {
            assert!(others.contains(&request.line), "{request:?}");
        }
        assert!(
            request.headers.iter().all(|h| !h.contains("upgrade")),
            "{request:?}"
        );
    }
    assert!(
        came.iter().all(|n| *n > 0),
        "every kind of allowed request must reach the engine"
    );
    println!(
        "{} requests reached the engine, all of them allowed",
        asked.len()
    );
    api.delete(uuid(&created)).unwrap().expect(204).unwrap();
    server.finish().unwrap();
}
