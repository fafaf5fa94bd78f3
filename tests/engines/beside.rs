//! Two installations on one engine, networks of earlier versions, and bridges that vanish.

use crate::context::{self, EngineContext};
use crate::lab::{Lab, inside, running, text, uuid};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::process::Command;
use wharf_testkit::process::{output, succeeds};
use wharf_tests::{Server, until};

/// Logs in through the published port, and checks that it leads to this instance.
fn reaches_itself(instance: &Value) -> Result<()> {
    let name = inside(instance, "uname -n")?;
    ensure!(name == text(&instance["name"]), "{name}");
    Ok(())
}

/// The name of the instance's network and its description.
fn network_of(context: &EngineContext, instance: &Value) -> Result<(String, Value)> {
    let name = context::network_of(context, instance)?;
    let network = context.ask("GET", &format!("/networks/{name}"), None)?;
    Ok((name, network))
}

/// The name of a network's bridge.
fn bridge(network: &Value) -> &str {
    text(&network["Options"]["com.docker.network.bridge.name"])
}

pub fn two_installations(context: &EngineContext) -> Result<()> {
    let first = context.server()?;
    let ann = first.user("ann@example.com")?;
    let mine = running(&ann)?;
    let (name, _) = network_of(context, &mine)?;

    // A server with the range of the first.
    let settings = context.settings("")?;
    let range = |settings: &str| {
        let mut lines = settings.lines();
        lines
            .find(|line| line.starts_with("lan_cidr"))
            .unwrap_or_default()
            .to_owned()
    };
    let config = std::fs::read_to_string(first.config_path())?;
    let taken = settings.replace(&range(&settings), &range(&config));
    let refused = match Server::start(&taken) {
        Ok(_) => anyhow::bail!("a range of another installation was accepted"),
        Err(error) => format!("{error:#}"),
    };
    for part in [
        "node.real.lan_cidr",
        name.as_str(),
        "installation",
        "such as 10.",
    ] {
        ensure!(refused.contains(part), "no {part:?} in {refused}");
    }

    // `wharf check` finds it too, with missing images of flavors, and sees the node's rules.
    let file = first.config_path().with_file_name("taken.toml");
    let data_dir = format!("listen = \"127.0.0.1:0\"\ndata_dir = \"elsewhere\"\n{taken}");
    std::fs::write(&file, data_dir)?;
    let mut check = Command::new(wharf_testkit::workspace::wharf_binary());
    let checked = check.args(["check", "--config"]).arg(&file).output()?;
    let found = String::from_utf8_lossy(&checked.stdout);
    ensure!(checked.status.code() == Some(1) && !file.with_file_name("elsewhere").exists());
    for part in [
        "error: setting `node.real.lan_cidr`",
        "lacks localhost/wharf/",
    ] {
        ensure!(found.contains(part), "no {part:?} in {found}");
    }
    ensure!(!found.contains("rules are missing"), "{found}");

    let second = Server::start(&settings)?;
    let bob = second.user("bob@example.com")?;
    let theirs = running(&bob)?;
    let (other, _) = network_of(context, &theirs)?;
    ensure!(name != other, "both have {name}");
    reaches_itself(&mine)?;
    reaches_itself(&theirs)?;
    bob.delete(uuid(&theirs))?.expect(204)?;
    context.networks_gone([&other])?;
    second.finish()?;
    reaches_itself(&mine)?;
    context.remove(&ann, &mine)?;
    first.finish()
}

pub fn a_vanished_bridge(context: &EngineContext) -> Result<()> {
    let (server, api) = context.served("")?;
    let instance = running(&api)?;
    let (_, network) = network_of(context, &instance)?;
    api.act(uuid(&instance), "stop")?.expect(200)?;
    ensure!(succeeds(Command::new("ip").args([
        "link",
        "delete",
        bridge(&network)
    ])));
    api.act(uuid(&instance), "restart")?.expect(200)?;
    reaches_itself(&api.wait_for(uuid(&instance), "running")?)?;
    // The address of the bridge is that of the new one.
    output(Command::new("ip").args(["link", "show", bridge(&network)]))?;
    context.remove(&api, &instance)?;
    server.finish()
}

/// Versions before this one named a network after its addresses alone.
pub fn a_network_of_an_earlier_version(context: &EngineContext) -> Result<()> {
    let (server, api) = context.served("")?;
    let instance = running(&api)?;
    let (name, network) = network_of(context, &instance)?;
    api.delete(uuid(&instance))?.expect(204)?;
    context.networks_gone([&name])?;
    let address = name.get(..name.len() - 3).context("name")?;
    let earlier = format!("{address}18");
    let made = json!({
        "Name": earlier, "Driver": "bridge", "Labels": network["Labels"], "IPAM": network["IPAM"],
        "Options": { "com.docker.network.bridge.name": earlier.replace("wharf-", "whf") },
    });
    // Docker gives the addresses free after it has removed a network from its list.
    until("the addresses are free", || {
        Ok(context
            .ask("POST", "/networks/create", Some(made.clone()))
            .ok())
    })?;

    let instance = running(&api)?;
    let id = uuid(&instance);
    ensure!(network_of(context, &instance)?.0 == earlier);
    reaches_itself(&instance)?;
    for action in ["stop", "restart"] {
        api.act(id, action)?.expect(200)?;
    }
    reaches_itself(&api.wait_for(id, "running")?)?;
    // The network is removed by hand while its only instance is stopped.
    api.act(id, "stop")?.expect(200)?;
    context.ask("DELETE", &format!("/networks/{earlier}"), None)?;
    api.act(id, "restart")?.expect(200)?;
    reaches_itself(&api.wait_for(id, "running")?)?;
    api.delete(id)?.expect(204)?;
    context.networks_gone([&earlier, &name])?;
    server.finish()
}
