//! Logins that succeed, and logins that are refused.

use crate::context::Context;
use anyhow::{Result, ensure};
use serde_json::json;
use wharf_tests::{KeyPair, Login, Shell, small};

pub fn key_and_password(context: &Context) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let pair = KeyPair::new()?;
    let mut body = small("container");
    body["public_key"] = json!(pair.public);
    body["name"] = json!("login-box");
    api.create(&body)?.expect(201)?;
    let running = api.wait_for("login-box", "running")?;
    let password = running["original_service_password"]
        .as_str()
        .unwrap_or_default();
    for login in [Login::Key(&pair), Login::Password(password)] {
        ensure!(login.output(&running, "id -un")? == "user");
        ensure!(login.output(&running, "hostname")? == "login-box");
        ensure!(login.output(&running, "sudo -n id -u")? == "0");
        ensure!(login.output(&running, "python3 -c 'print(6*7)'")? == "42");
    }
    let inside = Login::Key(&pair).output(&running, "hostname -I")?;
    let lan = running["lan_ipv4"].as_str().unwrap_or_default();
    ensure!(
        inside.split_whitespace().any(|a| a == lan),
        "{inside} lacks {lan}"
    );
    // The files of the first boot are gone, and the engine shows no secret.
    let left = Login::Key(&pair).output(&running, "sudo ls /etc/wharf 2>/dev/null || true")?;
    ensure!(!left.contains("first-boot"), "{left}");
    let container = &context.containers_of(&running)?[0];
    let id = container["Id"].as_str().unwrap_or_default();
    let inspected = context
        .client()
        .get(&format!("/containers/{id}/json"))?
        .to_string();
    ensure!(
        !inspected.contains(password),
        "the engine shows the password"
    );
    api.delete("login-box")?.expect(204)?;
    let wrote = server.data_and_log()?;
    for secret in [password, api.key()] {
        let found = wrote.windows(secret.len()).any(|w| w == secret.as_bytes());
        ensure!(!found, "a secret is in the log or the data directory");
    }
    server.finish()
}

pub fn refused(context: &Context) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let pair = KeyPair::new()?;
    let mut body = small("container");
    body["public_key"] = json!(pair.public);
    body["name"] = json!("closed-box");
    api.create(&body)?.expect(201)?;
    let running = api.wait_for("closed-box", "running")?;
    let password = running["original_service_password"]
        .as_str()
        .unwrap_or_default();
    let unknown = KeyPair::new()?;
    for (who, login) in [
        ("a wrong password", Login::Password("not-the-password")),
        ("an empty password", Login::Password("")),
        ("an unknown key", Login::Key(&unknown)),
    ] {
        let output = login.run(&running, "id")?;
        ensure!(!output.status.success(), "{who} was accepted");
    }
    for login in [
        Login::Password(password),
        Login::Key(&pair),
        Login::Password(""),
    ] {
        let output = login.run_as(&running, "root@127.0.0.1", "id")?;
        ensure!(!output.status.success(), "root was accepted");
    }
    // The instance does accept the right login.
    ensure!(Login::Key(&pair).output(&running, "id -un")? == "user");
    api.delete("closed-box")?.expect(204)?;
    server.finish()
}

pub fn host_keys(context: &Context) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let shell = Shell::signed_in(&server, "ann@example.com")?;
    let mut keys = Vec::new();
    for _ in 0..2 {
        let created = api.small_container()?;
        let uuid = created["uuid"].as_str().unwrap_or_default();
        let running = api.wait_for(uuid, "running")?;
        let password = running["original_service_password"]
            .as_str()
            .unwrap_or_default();
        let login = Login::Password(password);
        keys.push(login.output(&running, "cat /etc/ssh/ssh_host_*_key.pub")?);
        // The host shows the key that the instance has, also after a restart, without an event.
        let fingerprint = "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub";
        let inside = login.output(&running, fingerprint)?;
        let shown = || -> Result<serde_json::Value> {
            let path = format!("/api/instance/{uuid}/host-key/");
            api.get(&path)?.expect(200)
        };
        let first = shown()?;
        ensure!(first[0]["type"] == "ssh-ed25519", "{first}");
        let shown_first = first[0]["fingerprint"].as_str().unwrap_or("none");
        ensure!(inside.contains(shown_first), "{inside} {first}");
        let lines = shell.ok(&["show", uuid])?;
        ensure!(
            lines.contains(&format!("ssh-ed25519 {shown_first}")),
            "{lines}"
        );
        api.act(uuid, "stop")?.expect(200)?;
        api.act(uuid, "restart")?.expect(200)?;
        api.wait_for(uuid, "running")?;
        ensure!(shown()? == first);
        let events = server.cli(&["events", uuid])?;
        ensure!(!events.contains("host-key-changed"), "{events}");
    }
    ensure!(
        keys[0].contains("ssh-ed25519") && keys[0] != keys[1],
        "{keys:?}"
    );
    server.finish()
}
