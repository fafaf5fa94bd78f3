//! The host keys to which Wharf sends passwords.

use super::ends::ends;
use super::{SshServer, open, start_on};
use crate::{Expected, kill, recorded, uuid};
use serde_json::json;
use wharf_tests::{Api, Terminal, lasting_node};

#[test]
fn the_first_host_key_is_noted_and_no_other_server_gets_the_password() {
    let (node, _dir) = lasting_node("one", "").unwrap();
    let (mut server, api, instance) = start_on(&node, "");
    let id = uuid(&instance);
    let keys = |api: &Api| {
        let path = format!("/api/instance/{id}/host-key/");
        api.get(&path).is(200)
    };
    // The simulated engine has no network, so the readiness probe noted none.
    assert_eq!(keys(&api), json!([]));
    let right = SshServer::of(&instance).unwrap();
    drop(open(&api, &instance));
    let noted = keys(&api);
    let fingerprint = noted[0]["fingerprint"].as_str().unwrap();
    assert_eq!(noted[0]["type"], "ssh-ed25519");
    assert!(fingerprint.starts_with("SHA256:"), "{noted}");
    drop(open(&api, &instance));
    drop(right);

    let api = kill(&mut server, &api);
    let password = instance["original_service_password"].as_str().unwrap();
    let other = SshServer::start(&instance, password, 2).unwrap();
    let mut refused = Terminal::open(&api, id, "").unwrap();
    ends(&mut refused, "another SSH host key", 1011);
    assert_eq!(other.logins(), 0);
    assert_eq!(keys(&api), noted);
    drop(other);
    let _right = SshServer::of(&instance).unwrap();
    drop(open(&api, &instance));

    let records = recorded(&api, "host-key.note");
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!(records[0]["instance"], instance["uuid"]);
    assert_eq!(records[0]["subject"], fingerprint);
    let log = server.log();
    let warned = |line: &&str| line.contains("WARN") && line.contains("host key that is not known");
    assert_eq!(log.lines().filter(warned).count(), 1, "{log}");
}
