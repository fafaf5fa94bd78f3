//! Changes on the engine behind Wharf's back.

use crate::context::{Context, inside, remove, running, user, uuid};
use anyhow::{Result, ensure};
use serde_json::json;
use std::time::Duration;
use wharf_tests::until;

/// The time of several looks at a node.
const A_WHILE: Duration = Duration::from_secs(3);

pub fn removed(context: &Context) -> Result<()> {
    let server = context.server(&[1])?;
    let api = server.user("ann@example.com")?;
    let (up, down) = (running(&api)?, running(&api)?);
    api.act(uuid(&down), "stop")?.expect(200)?;
    let force = json!({ "action": "stop", "force": true });
    context.on(&up, "PUT", "/state", Some(force))?;
    for instance in [&up, &down] {
        context.on(instance, "DELETE", "", None)?;
    }
    api.wait_for(uuid(&up), "exited")?;
    for instance in [&up, &down] {
        // No new container is created without the user's data.
        let answer = api.act(uuid(instance), "restart")?;
        ensure!(answer.status == 502, "{answer:?}");
        api.wait_for(uuid(instance), "exited")?;
        ensure!(context.objects(instance)?.is_empty());
        api.delete(uuid(instance))?.expect(204)?;
        ensure!(api.instance(uuid(instance))?.status == 404);
    }
    server.finish()
}

pub fn stopped_and_moved(context: &Context) -> Result<()> {
    let server = context.server(&[1])?;
    let api = server.user("ann@example.com")?;
    let instance = running(&api)?;
    inside(&instance, "touch kept")?;
    let state = |action: &str| json!({ "action": action, "timeout": 10 });
    context.on(&instance, "PUT", "/state", Some(state("stop")))?;
    api.wait_for(uuid(&instance), "exited")?;
    // A start by hand contradicts the intent and is not billed, so Wharf stops it again.
    context.on(&instance, "PUT", "/state", Some(state("start")))?;
    until("the container is stopped again", || {
        Ok((context.object(&instance)?["status"] == "Stopped").then_some(()))
    })?;
    ensure!(api.instance(uuid(&instance))?.expect(200)?["state"] == "exited");

    // The next start fetches it back.
    let other = context.member(2).name.as_str();
    let migration = json!({ "migration": true });
    context.on(
        &instance,
        "POST",
        &format!("?target={other}"),
        Some(migration),
    )?;
    ensure!(context.object(&instance)?["location"] == other);
    api.act(uuid(&instance), "restart")?.expect(200)?;
    let instance = api.wait_for(uuid(&instance), "running")?;
    user(&instance).wait_for_login(&instance)?;
    inside(&instance, "test -e kept")?;
    ensure!(context.object(&instance)?["location"] == context.member(1).name.as_str());
    remove(context, &api, &instance)?;
    server.finish()
}

pub fn orphans(context: &Context) -> Result<()> {
    let server = context.server(&[0])?;
    let api = server.user("ann@example.com")?;
    let doomed = running(&api)?;
    let object = context.object(&doomed)?;
    let name = object["name"].as_str().unwrap_or_default();
    let key = "user.wharf.installation";
    let own = json!({ key: object["config"][key] });
    remove(context, &api, &doomed)?;
    let unknown = json!({ "uuid": "5f0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f" });
    let foreign = json!({ "uuid": "pets-and-cattle" });
    context.make(0, uuid(&foreign), json!({}))?;
    context.make(0, &name.replace(uuid(&doomed), uuid(&unknown)), own.clone())?;
    context.make(0, name, own)?;
    context.gone(&doomed)?;
    std::thread::sleep(A_WHILE);
    for left in [&unknown, &foreign] {
        ensure!(context.objects(left)?.len() == 1, "{left} was removed");
        context.on(left, "DELETE", "", None)?;
    }
    server.finish()
}
