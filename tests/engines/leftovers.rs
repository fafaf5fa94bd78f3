//! Objects left on the engine after a deletion: none.

use crate::context::Context;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::time::Duration;
use wharf_tests::{Api, Login, until};

/// Returns the engine's name of an instance's network.
fn network_of(context: &Context, instance: &Value) -> Result<String> {
    let container = context.container_of(instance)?;
    let networks = container["NetworkSettings"]["Networks"].as_object();
    let mut names = networks.into_iter().flat_map(|networks| networks.keys());
    let name = names.next().context("the container is on no network")?;
    ensure!(
        names.next().is_none(),
        "the container is on another network than {name}"
    );
    Ok(name.clone())
}

pub fn nothing_is_left(context: &Context) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let volumes = context.volumes()?;
    let first = api.small_container()?;
    let second = api.small_container()?;
    let uuid = |i: &serde_json::Value| i["uuid"].as_str().unwrap_or_default().to_owned();
    api.wait_for(&uuid(&first), "running")?;
    let running = api.wait_for(&uuid(&second), "running")?;
    let network = network_of(context, &running)?;
    ensure!(context.networks()?.contains(&network));

    api.delete(&uuid(&first))?.expect(204)?;
    ensure!(api.instance(&uuid(&first))?.status == 404);
    until("the first container is gone", || {
        Ok(context.containers_of(&first)?.is_empty().then_some(()))
    })?;
    // The second container still uses the owner's network.
    ensure!(context.networks()?.contains(&network));
    ensure!(api.instance(&uuid(&second))?.expect(200)?["state"] == "running");

    api.delete(&uuid(&second))?.expect(204)?;
    until("the second container and the network are gone", || {
        let gone =
            context.containers_of(&second)?.is_empty() && !context.networks()?.contains(&network);
        Ok(gone.then_some(()))
    })?;
    let new: Vec<_> = context
        .volumes()?
        .into_iter()
        .filter(|v| !volumes.contains(v))
        .collect();
    ensure!(new.is_empty(), "volumes are left: {new:?}");
    server.finish()
}

/// The engine keeps an owner's network, and the next owner of the addresses uses it.
pub fn a_network(context: &Context) -> Result<()> {
    const OTHER: &str = "unknown-object-on-a-network";
    let server = context.server()?;
    let uuid = |i: &Value| i["uuid"].as_str().unwrap_or_default().to_owned();
    let running = |api: &Api| api.wait_for(&uuid(&api.small_container()?), "running");
    let (ann, bob) = (
        server.user("ann@example.com")?,
        server.user("bob@example.com")?,
    );
    let first = running(&ann)?;
    let network = network_of(context, &first)?;
    let config = context.host_config(json!({ "NetworkMode": network }));
    let other = json!({
        "Image": "localhost/wharf/base:1", "Entrypoint": ["sleep"], "Cmd": ["600"],
        "HostConfig": config,
    });
    let path = format!("/containers/create?name={OTHER}");
    context.by_hand("POST", &path, Some(other))?;
    context.by_hand("POST", &format!("/containers/{OTHER}/start"), None)?;
    ann.delete(&uuid(&first))?.expect(204)?;
    until("the container is gone", || {
        Ok(context.containers_of(&first)?.is_empty().then_some(()))
    })?;
    ensure!(context.networks()?.contains(&network));

    // The addresses are free once the deletion has completed, a moment later.
    let second = until("another owner has the addresses", || {
        std::thread::sleep(Duration::from_secs(1));
        let instance = bob.wait_for(&uuid(&bob.small_container()?), "running")?;
        if instance["lan_ipv4"] == first["lan_ipv4"] {
            return Ok(Some(instance));
        }
        bob.delete(&uuid(&instance))?.expect(204)?;
        Ok(None)
    })?;
    let password = second["original_service_password"].as_str();
    Login::Password(password.unwrap_or_default()).output(&second, "true")?;
    // Meanwhile the first owner gets other addresses, and later these again.
    let third = running(&ann)?;
    ensure!(network_of(context, &third)? != network_of(context, &second)?);
    let path = format!("/containers/{OTHER}?force=true");
    context.by_hand("DELETE", &path, None)?;
    ann.delete(&uuid(&third))?.expect(204)?;
    bob.delete(&uuid(&second))?.expect(204)?;
    until("the network goes with its last instance", || {
        Ok((!context.networks()?.contains(&network)).then_some(()))
    })?;
    server.finish()
}
