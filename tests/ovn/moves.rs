//! Moves between members.

use super::context::{OvnContext, login, seen_from_visitor};
use crate::lab::{Lab, running, user, uuid};
use anyhow::{Result, ensure};
use wharf_tests::until;

pub fn of_a_drained_member(context: &OvnContext) -> Result<()> {
    let server = context.server(&[1, 2])?;
    let api = server.user("ann@example.com")?;
    let instance = running(&api)?;
    let network = context.network(&instance)?;
    login(&instance, "echo precious > kept && sync")?;
    api.act(uuid(&instance), "stop")?.expect(200)?;

    let old = context.object(&instance)?.place;
    server.cli(&["node", "drain", &old])?;
    until("the instance has moved", || {
        let events = format!("/api/event/?after=0&instance={}", uuid(&instance));
        let events = api.get(&events)?.expect(200)?.to_string();
        Ok(events.contains("\"moved\"").then_some(()))
    })?;
    ensure!(context.object(&instance)?.place != old);
    api.act(uuid(&instance), "restart")?.expect(200)?;
    let there = api.wait_for(uuid(&instance), "running")?;
    user(&there).wait_for_login(&there)?;
    ensure!(login(&there, "cat kept")? == "precious");
    ensure!(seen_from_visitor(&there)? == "10.200.0.2");
    // The members share the owner's network.
    for field in ["lan_ipv4", "ssh_command"] {
        ensure!(
            there[field] == instance[field],
            "{field}: {instance} {there}"
        );
    }
    ensure!(context.network(&there)? == network);
    context.is_whole(&there)?;

    api.delete(uuid(&there))?.expect(204)?;
    context.nothing_left(&network)?;
    server.finish()
}
