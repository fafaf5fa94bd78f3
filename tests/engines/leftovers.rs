//! Objects left on the engine after a deletion: none.

use crate::context::{EngineContext, network_of};
use crate::lab::{IMAGE, Lab, inside, running, state, uuid};
use anyhow::{Result, ensure};
use serde_json::json;
use wharf_tests::until;

pub fn nothing_is_left(context: &EngineContext) -> Result<()> {
    let (server, api) = context.served("")?;
    let volumes = context.volumes()?;
    let (first, second) = (running(&api)?, running(&api)?);
    let network = network_of(context, &second)?;
    ensure!(context.networks()?.contains(&network));

    context.remove(&api, &first)?;
    ensure!(api.instance(uuid(&first))?.status == 404);
    // The second container still uses the owner's network.
    ensure!(context.networks()?.contains(&network));
    ensure!(state(&api, &second)? == "running");

    context.remove(&api, &second)?;
    context.networks_gone([&network])?;
    let mut new = context.volumes()?;
    new.retain(|volume| !volumes.contains(volume));
    ensure!(new.is_empty(), "volumes are left: {new:?}");
    server.finish()
}

/// The engine keeps an owner's network, and the next owner of the addresses uses it.
pub fn a_network(context: &EngineContext) -> Result<()> {
    const OTHER: &str = "unknown-object-on-a-network";
    let server = context.server()?;
    let (ann, bob) = (
        server.user("ann@example.com")?,
        server.user("bob@example.com")?,
    );
    let first = running(&ann)?;
    let network = network_of(context, &first)?;
    let config = context.host_config(json!({ "NetworkMode": network }));
    let other = json!({
        "Image": IMAGE, "Entrypoint": ["sleep"], "Cmd": ["600"],
        "HostConfig": config,
    });
    let path = format!("/containers/create?name={OTHER}");
    context.ask("POST", &path, Some(other))?;
    context.ask("POST", &format!("/containers/{OTHER}/start"), None)?;
    context.remove(&ann, &first)?;
    ensure!(context.networks()?.contains(&network));

    // The addresses are free once the deletion has completed, a moment later.
    until("no resources are claimed", || {
        let nodes = server.cli(&["node", "list"])?;
        Ok(nodes.contains(" 0/64 ").then_some(()))
    })?;
    let second = running(&bob)?;
    ensure!(second["lan_ipv4"] == first["lan_ipv4"], "{second}");
    inside(&second, "true")?;
    // Meanwhile the first owner gets other addresses, and later these again.
    let third = running(&ann)?;
    ensure!(network_of(context, &third)? != network_of(context, &second)?);
    let path = format!("/containers/{OTHER}?force=true");
    context.ask("DELETE", &path, None)?;
    ann.delete(uuid(&third))?.expect(204)?;
    bob.delete(uuid(&second))?.expect(204)?;
    // The network goes with its last instance.
    context.networks_gone([&network])?;
    server.finish()
}
