//! Logins that succeed, and logins that are refused.

use crate::context::EngineContext;
use crate::lab::{Lab, NAME, Neighbours, inside, password, text, user, uuid};
use anyhow::{Result, ensure};
use serde_json::Value;
use wharf_tests::{Api, KeyPair, Login, Shell};

pub fn key_and_password(context: &EngineContext, all: &mut Neighbours) -> Result<()> {
    let mine = &all.mine;
    let by_key = Login::Key(&all.pair);
    for login in [&by_key, &user(mine)] {
        let seen = login.output(
            mine,
            "id -un; hostname; sudo -n id -u; python3 -c 'print(6*7)'",
        )?;
        ensure!(seen == format!("user\n{NAME}\n0\n42"), "{seen}");
    }
    let addresses = by_key.output(mine, "hostname -I")?;
    let lan = text(&mine["lan_ipv4"]);
    ensure!(
        addresses.split_whitespace().any(|a| a == lan),
        "{addresses} lacks {lan}"
    );
    // The files of the first boot are gone, and the engine shows no secret.
    let left = by_key.output(mine, "sudo ls /etc/wharf 2>/dev/null || true")?;
    ensure!(!left.contains("first-boot"), "{left}");
    let id = context.container_of(mine)?["Id"].clone();
    let path = format!("/containers/{}/json", text(&id));
    let inspected = context.client().get(&path)?.to_string();
    ensure!(
        !inspected.contains(password(mine)),
        "the engine shows the password"
    );
    let wrote = all.server.data_and_log()?;
    for secret in [password(mine), all.api.key()] {
        let found = wrote.windows(secret.len()).any(|w| w == secret.as_bytes());
        ensure!(!found, "a secret is in the log or the data directory");
    }
    Ok(())
}

pub fn refused(_: &impl Lab, all: &mut Neighbours) -> Result<()> {
    let unknown = KeyPair::new()?;
    for (who, login) in [
        ("a wrong password", Login::Password("not-the-password")),
        ("an empty password", Login::Password("")),
        ("an unknown key", Login::Key(&unknown)),
    ] {
        let output = login.run(&all.mine, "id")?;
        ensure!(!output.status.success(), "{who} was accepted");
    }
    let address = text(&all.mine["ssh_command"]);
    let address = address.rsplit('@').next().unwrap_or_default();
    for login in [user(&all.mine), Login::Key(&all.pair), Login::Password("")] {
        let output = login.run_as(&all.mine, &format!("root@{address}"), "id")?;
        ensure!(!output.status.success(), "root was accepted");
    }
    // The instance does accept the right login.
    ensure!(Login::Key(&all.pair).output(&all.mine, "id -un")? == "user");
    Ok(())
}

/// The host keys that the interface shows.
pub fn shown(api: &Api, instance: &Value) -> Result<Value> {
    let path = format!("/api/instance/{}/host-key/", uuid(instance));
    api.get(&path)?.expect(200)
}

/// No instance has the keys of another one, and the host shows the key that the instance has.
pub fn host_keys(_: &impl Lab, all: &mut Neighbours) -> Result<()> {
    let shell = Shell::signed_in(&all.server, "ann@example.com")?;
    let mut keys = Vec::new();
    for instance in [&all.mine, &all.other] {
        keys.push(inside(instance, "cat /etc/ssh/ssh_host_*_key.pub")?);
        let own = inside(instance, "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub")?;
        let shown = shown(&all.api, instance)?;
        ensure!(shown[0]["type"] == "ssh-ed25519", "{shown}");
        let fingerprint = shown[0]["fingerprint"].as_str().unwrap_or("none");
        ensure!(own.contains(fingerprint), "{own} {shown}");
        let lines = shell.ok(&["show", uuid(instance)])?;
        ensure!(
            lines.contains(&format!("ssh-ed25519 {fingerprint}")),
            "{lines}"
        );
    }
    ensure!(
        keys[0].contains("ssh-ed25519") && keys[0] != keys[1],
        "{keys:?}"
    );
    Ok(())
}
