//! Refusals before the upgrade.

use super::{echo, exchange, listener, open};
use crate::terminal::{
    SshServer, is_refused_before_the_upgrade, keeps_secrets, plainly, start, start_on,
};
use crate::{Expected, has, made, recorded, uuid, with};
use serde_json::{Value, json};
use wharf_tests::{Api, Tunnel, simulated_node};

/// The refusal of an upgrade, which a plain request gets too.
fn refused(api: &Api, instance: &str, query: &str) -> (u16, Value) {
    let refused = Tunnel::try_open(api, instance, query).unwrap().err();
    let path = format!("/api/instance/{instance}/tunnel/{query}");
    plainly(api, &path, refused.expect("it must be refused"))
}

#[test]
fn a_tunnel_is_refused_before_the_upgrade() {
    let error = json!({ "port": ["must be an integer from 1 to 65535"] });
    let query = ("?port=0", error);
    is_refused_before_the_upgrade(&refused, query, "open a tunnel to", "tunnel.open");
}

#[test]
fn a_port_that_cannot_be_reached_is_refused_with_the_reason() {
    let (_server, api, instance) = start("");
    let id = uuid(&instance);
    let reason = |port: u16| {
        let (status, body) = refused(&api, id, &format!("?port={port}"));
        assert_eq!(status, 502, "{body}");
        body["detail"].as_str().unwrap().to_owned()
    };
    has(
        reason(22),
        "SSH server of the instance could not be reached",
    );
    has(
        reason(80),
        "SSH server of the instance could not be reached",
    );
    let changed = SshServer::start(&instance, "changed inside", 1).unwrap();
    has(reason(80), "original password");
    drop(changed);
    let other = SshServer::start(&instance, "other", 2).unwrap();
    has(reason(80), "another SSH host key");
    drop(other);
    let ssh = SshServer::of(&instance).unwrap();
    let (free, port) = listener("127.0.0.1");
    drop(free);
    has(reason(port), "Nothing in the instance accepts connections");
    ssh.forbid_forwarding();
    has(reason(port), "forbids forwarding");
    let records = api.get("/api/audit/").is(200).to_string();
    assert!(!records.contains("tunnel.open"), "{records}");
}

#[test]
fn the_flavor_of_a_page_has_a_tunnel_and_a_terminal_at_a_private_port() {
    let (_server, api, _) = start("");
    let page = with(
        "container",
        json!({ "flavor": "jupyterlab", "mem_gib": 4, "n_vcpus": 2, "disk_size_gib": 20 }),
    );
    let page = api.create(&page).is(201);
    assert!(page["ssh_command"].is_null());
    let page = api.wait_for(uuid(&page), "running").unwrap();
    assert_eq!(refused(&api, uuid(&page), "").0, 502);
    let _ssh = SshServer::of(&page).unwrap();
    let (inside, port) = listener("127.0.0.1");
    echo(inside);
    exchange(&mut open(&api, &page, port), b"through the private port");
    let mut tunnel = open(&api, &page, 22);
    assert!(tunnel.read().unwrap().starts_with(b"SSH-2.0-"));
    drop(crate::terminal::open(&api, &page));
}

#[test]
fn an_image_without_an_ssh_server_has_no_tunnel_and_no_terminal() {
    const REPORTS: &str = "[[flavor]]\nname = \"reports\"\nimage = \"localhost/reports:1\"\n\
                           web_port = 8000\n";
    let (_server, api, _) = start_on(&format!("{}{REPORTS}", simulated_node("one", "")), "");
    let created = with("container", json!({ "flavor": "reports" }));
    let created = made(&api, &created);
    let (status, body) = refused(&api, uuid(&created), "");
    assert_eq!(status, 400);
    has(&body["detail"], "no SSH server");
    let terminal = api.get(&format!("/api/instance/{}/terminal/", uuid(&created)));
    assert_eq!(terminal.is(400), body);
}

#[test]
fn tunnels_of_a_user_are_bounded_and_can_be_switched_off() {
    let (server, api, instance) = start("tunnels_per_user = 2\n");
    let _ssh = SshServer::of(&instance).unwrap();
    let (inside, port) = listener("127.0.0.1");
    echo(inside);
    let first = open(&api, &instance, port);
    let second = open(&api, &instance, 22);
    let (status, body) = refused(&api, uuid(&instance), "");
    assert_eq!(status, 429);
    has(&body["detail"], "2 open tunnels");
    drop(first);
    crate::wait_until("a place is free", || {
        let query = format!("?port={port}");
        Ok(Tunnel::try_open(&api, uuid(&instance), &query)?
            .is_ok()
            .then_some(()))
    });
    drop(second);
    server.finish().unwrap();
    let (_server, api, instance) = start("tunnels_per_user = 0\n");
    let (status, body) = refused(&api, uuid(&instance), "");
    assert_eq!(
        (status, body),
        (400, json!({ "detail": "This service offers no tunnels." }))
    );
}

#[test]
fn an_open_tunnel_has_an_audit_record() {
    let (server, api, instance) = start("");
    let _ssh = SshServer::of(&instance).unwrap();
    let (inside, port) = listener("127.0.0.1");
    echo(inside);
    let mut tunnel = open(&api, &instance, port);
    exchange(&mut tunnel, b"very-private");
    let opens = recorded(&api, "tunnel.open");
    let [record] = opens.as_slice() else {
        panic!("{opens:?}");
    };
    assert_eq!(record["result"], "opened");
    assert_eq!(record["subject"], port.to_string());
    assert_eq!(record["instance"], instance["uuid"]);
    keeps_secrets(&server, &api, &instance, &["very-private"]);
}
