//! The life of one instance.

use super::context::{OvnContext, login, seen_from_visitor};
use super::lab;
use crate::lab::{Lab, restarted, running, text, uuid};
use crate::snapshots::{brought_back, made, taken};
use anyhow::{Result, ensure};
use serde_json::json;
use wharf_tests::until;

pub fn whole(context: &OvnContext) -> Result<()> {
    let server = context.server(&[1])?;
    let api = server.user("ann@example.com")?;
    let instance = running(&api)?;
    ensure!(
        text(&instance["ssh_command"]).ends_with(lab::LOGIN_HOST),
        "{instance}"
    );
    ensure!(login(&instance, "uname -n")? == instance["name"]);
    let visitor = seen_from_visitor(&instance)?;
    ensure!(visitor == "10.200.0.2", "the instance sees {visitor}");
    login(&instance, "echo precious > file && sync")?;

    let network = context.network(&instance)?;
    let forwards = context.forwards(&network)?;
    ensure!(forwards.len() == 1, "{forwards:?}");
    ensure!(forwards[0]["ports"][0]["listen_port"] == instance["wan_ssh_port"].to_string());
    let object = context.raw_object(&instance)?;
    ensure!(forwards[0]["config"]["user.wharf.instance"] == object["name"]);

    let again = restarted(&api, &instance)?;
    for field in ["lan_ipv4", "wan_ssh_port", "ssh_command"] {
        ensure!(
            instance[field] == again[field],
            "{field}: {instance} {again}"
        );
    }
    ensure!(login(&again, "cat file")? == "precious");

    let snapshot = taken(&api, &again, "precious")?;
    let clone = made(&api, &snapshot)?;
    ensure!(login(&clone, "cat file")? == "precious");
    ensure!(context.forwards(&network)?.len() == 2, "one for each");
    api.delete(uuid(&clone))?.expect(204)?;
    login(&again, "rm file && sync")?;

    let path = format!("/api/instance/{}/", uuid(&instance));
    let wanted = json!({ "n_vcpus": 2, "mem_gib": 2, "disk_size_gib": 12 });
    let resized = api.send("PATCH", &path, &wanted)?.expect(200)?;
    ensure!(resized["n_vcpus"] == 2, "{resized}");
    let object = context.raw_object(&instance)?;
    ensure!(object["devices"]["root"]["size"] == "12GiB", "{object}");
    context.has_size(&instance, (2, 2))?;
    let again = brought_back(&api, &again, &snapshot)?;
    ensure!(login(&again, "cat file")? == "precious");
    let object = context.raw_object(&instance)?;
    ensure!(object["devices"]["root"]["size"] == "12GiB", "{object}");
    until("the forward of the clone is gone", || {
        Ok((context.forwards(&network)? == forwards).then_some(()))
    })?;

    api.delete(uuid(&instance))?.expect(204)?;
    context.nothing_left(&network)?;
    server.finish()
}
