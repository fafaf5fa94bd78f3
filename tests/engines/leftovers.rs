//! What stays in the engine: nothing.

use crate::context::Context;
use anyhow::{Result, ensure};
use wharf_tests::until;

pub fn nothing_is_left(context: &Context) -> Result<()> {
    let server = context.server()?;
    let api = server.user("ann@example.com")?;
    let volumes = context.volumes()?;
    let first = api.small_container()?;
    let second = api.small_container()?;
    let uuid = |i: &serde_json::Value| i["uuid"].as_str().unwrap_or_default().to_owned();
    api.wait_for(&uuid(&first), "running")?;
    let running = api.wait_for(&uuid(&second), "running")?;
    let container = &context.containers_of(&running)?[0];
    let networks = container["NetworkSettings"]["Networks"].as_object();
    let network: Vec<_> = networks
        .into_iter()
        .flat_map(|n| n.keys().cloned())
        .collect();
    ensure!(network.len() == 1, "{network:?}");
    ensure!(context.networks()?.contains(&network[0]));

    api.delete(&uuid(&first))?.expect(204)?;
    ensure!(api.instance(&uuid(&first))?.status == 404);
    until("the first container is gone", || {
        Ok(context.containers_of(&first)?.is_empty().then_some(()))
    })?;
    // The other one still lives on the owner's network.
    ensure!(context.networks()?.contains(&network[0]));
    ensure!(api.instance(&uuid(&second))?.expect(200)?["state"] == "running");

    api.delete(&uuid(&second))?.expect(204)?;
    until("the second container and the network are gone", || {
        let gone = context.containers_of(&second)?.is_empty()
            && !context.networks()?.contains(&network[0]);
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
