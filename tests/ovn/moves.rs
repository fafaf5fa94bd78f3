//! Moves between members.

use crate::context::{Context, inside, running, seen_from_visitor, text, user, uuid};
use anyhow::{Result, ensure};
use wharf_tests::until;

pub fn of_a_drained_member(context: &Context) -> Result<()> {
    let server = context.server(&[1, 2])?;
    let api = server.user("ann@example.com")?;
    let instance = running(&api)?;
    let network = context.network(&instance)?;
    inside(&instance, "echo precious > kept && sync")?;
    api.act(uuid(&instance), "stop")?.expect(200)?;

    let old = context.object(&instance)?["location"].clone();
    server.cli(&["node", "drain", text(&old)])?;
    until("the instance has moved", || {
        let events = format!("/api/event/?after=0&instance={}", uuid(&instance));
        let events = api.get(&events)?.expect(200)?.to_string();
        Ok(events.contains("\"moved\"").then_some(()))
    })?;
    ensure!(context.object(&instance)?["location"] != old);
    api.act(uuid(&instance), "restart")?.expect(200)?;
    let there = api.wait_for(uuid(&instance), "running")?;
    user(&there).wait_for_login(&there)?;
    ensure!(inside(&there, "cat kept")? == "precious");
    ensure!(seen_from_visitor(&there)? == "10.200.0.2");
    // The members share the owner's network.
    for field in ["lan_ipv4", "ssh_command"] {
        ensure!(
            there[field] == instance[field],
            "{field}: {instance} {there}"
        );
    }
    ensure!(context.network(&there)? == network);
    let forwards = context.forwards(&network)?;
    ensure!(forwards.len() == 1, "{forwards:?}");

    api.delete(uuid(&there))?.expect(204)?;
    context.nothing_left(&network)?;
    server.finish()
}
