//! Wharf killed with SIGKILL in the middle of its work, and started again.

use crate::context::Context;
use anyhow::{Result, ensure};
use serde_json::Value;
use std::time::Duration;
use wharf_tests::{Api, Login, until};

fn uuid(instance: &Value) -> &str {
    instance["uuid"].as_str().unwrap_or_default()
}

fn login_works(instance: &Value) -> Result<()> {
    let password = instance["original_service_password"]
        .as_str()
        .unwrap_or_default();
    ensure!(Login::Password(password).output(instance, "id -un")? == "user");
    Ok(())
}

fn gone(context: &Context, api: &Api, instance: &Value) -> Result<()> {
    ensure!(api.instance(uuid(instance))?.status == 404);
    until("nothing of it is in the engine", || {
        Ok(context.containers_of(instance)?.is_empty().then_some(()))
    })
}

pub fn while_provisioning(context: &Context) -> Result<()> {
    let mut server = context.server()?;
    let mut api = server.user("ann@example.com")?;
    for after_ms in [0, 30, 80, 150, 250] {
        let created = api.small_container()?;
        std::thread::sleep(Duration::from_millis(after_ms));
        server.kill()?;
        server.run()?;
        api = server.again(&api);
        let running = api.wait_for(uuid(&created), "running")?;
        for field in [
            "name",
            "lan_ipv4",
            "wan_ssh_port",
            "original_service_password",
        ] {
            ensure!(
                running[field] == created[field],
                "{field} changed: {created} {running}"
            );
        }
        ensure!(context.containers_of(&running)?.len() == 1);
        login_works(&running)?;
    }
    ensure!(api.list()?.len() == 5);
    for instance in api.list()? {
        api.delete(uuid(&instance))?.expect(204)?;
        gone(context, &api, &instance)?;
    }
    server.finish()
}

pub fn while_deleting(context: &Context) -> Result<()> {
    let mut server = context.server()?;
    let mut api = server.user("ann@example.com")?;
    for after_ms in [0, 20, 60, 120] {
        let created = api.small_container()?;
        api.wait_for(uuid(&created), "running")?;
        api.delete(uuid(&created))?.expect(204)?;
        std::thread::sleep(Duration::from_millis(after_ms));
        server.kill()?;
        server.run()?;
        api = server.again(&api);
        gone(context, &api, &created)?;
    }
    // Deleted while it was still being made.
    for after_ms in [0, 60, 150] {
        let created = api.small_container()?;
        std::thread::sleep(Duration::from_millis(after_ms));
        api.delete(uuid(&created))?.expect(204)?;
        server.kill()?;
        server.run()?;
        api = server.again(&api);
        gone(context, &api, &created)?;
    }
    ensure!(api.list()?.is_empty());
    until("the owner's network is gone too", || {
        let log = server.log();
        Ok((!log.is_empty() && api.list()?.is_empty()).then_some(()))
    })?;
    server.finish()
}
