//! Moves between members of the cluster.

use super::context::IncusContext;
use super::ids::are_own;
use crate::lab::{Lab, inside, running, text, user, uuid};
use anyhow::{Result, ensure};
use serde_json::Value;
use wharf_tests::{Api, Server, until};

/// Drains the node of an instance, waits until another member has it, and opens the node again.
fn moved(context: &IncusContext, server: &Server, api: &Api, instance: &Value) -> Result<Value> {
    let old = context.object(instance)?.place;
    server.cli(&["node", "drain", &old])?;
    let moved = until("the instance has moved", || {
        let now = api.instance(uuid(instance))?.expect(200)?;
        Ok((now["lan_ipv4"] != instance["lan_ipv4"]).then_some(now))
    })?;
    ensure!(context.object(instance)?.place != old);
    let path = format!("/api/event/?after=0&instance={}", uuid(instance));
    let events = api.get(&path)?.expect(200)?.to_string();
    ensure!(events.contains("\"moved\""), "{events}");
    server.cli(&["node", "resume", &old])?;
    Ok(moved)
}

pub fn of_a_drained_node(context: &IncusContext) -> Result<()> {
    let server = context.server(&[0, 1])?;
    let api = server.user("ann@example.com")?;
    let instance = running(&api)?;
    inside(&instance, "echo precious > kept")?;
    api.act(uuid(&instance), "stop")?.expect(200)?;
    let there = moved(context, &server, &api, &instance)?;
    ensure!(there["state"] == "exited", "{there}");
    api.act(uuid(&there), "restart")?.expect(200)?;
    let there = api.wait_for(uuid(&there), "running")?;
    user(&there).wait_for_login(&there)?;
    ensure!(there["ssh_command"] != instance["ssh_command"], "{there}");
    ensure!(inside(&there, "cat kept")? == "precious");
    let addresses = inside(&there, "ip -brief address show eth0")?;
    ensure!(addresses.contains(text(&there["lan_ipv4"])), "{addresses}");
    are_own(context, &there)?;

    // One that runs is stopped and started again, with its owner's consent.
    server.cli(&["user", "allow-moves", "ann@example.com"])?;
    moved(context, &server, &api, &there)?;
    let back = api.wait_for(uuid(&there), "running")?;
    user(&back).wait_for_login(&back)?;
    ensure!(inside(&back, "cat kept")? == "precious");
    are_own(context, &back)?;
    context.remove(&api, &back)?;
    server.finish()
}
