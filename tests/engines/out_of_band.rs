//! Changes on the engine behind Wharf's back.

use crate::context::Context;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::time::Duration;
use wharf_testkit::http::Request;
use wharf_tests::{Api, Login, Ports, Server, until};

/// A short interval of observations, so that tests need not wait.
const OFTEN: &str = "[limits]\nobserve_every_ms = 300\n";
/// The time of several observations.
const A_WHILE: Duration = Duration::from_millis(1500);

fn start(context: &Context) -> Result<(Server, Api)> {
    let server = Server::start(&context.settings(Ports::take(), OFTEN)?)?;
    let api = server.user("ann@example.com")?;
    Ok((server, api))
}

fn uuid(instance: &Value) -> &str {
    instance["uuid"].as_str().unwrap_or_default()
}

fn name(instance: &Value) -> String {
    format!("wharf-{}", uuid(instance))
}

fn running(api: &Api) -> Result<Value> {
    let created = api.small_container()?;
    api.wait_for(uuid(&created), "running")
}

fn user(instance: &Value) -> Login<'_> {
    let password = instance["original_service_password"].as_str();
    Login::Password(password.unwrap_or_default())
}

fn login(instance: &Value, command: &str) -> Result<String> {
    user(instance).output(instance, command)
}

fn gone(context: &Context, instance: &Value) -> Result<()> {
    until("the engine has no object of the instance", || {
        Ok(context.containers_of(instance)?.is_empty().then_some(()))
    })
}

pub fn removed(context: &Context) -> Result<()> {
    let (server, api) = start(context)?;
    let (up, down) = (running(&api)?, running(&api)?);
    api.act(uuid(&down), "stop")?.expect(200)?;
    for instance in [&up, &down] {
        let path = format!("/containers/{}?force=true", name(instance));
        context.by_hand("DELETE", &path, None)?;
    }
    // It has ended and is no longer billed for compute. A stopped instance stays stopped.
    api.wait_for(uuid(&up), "exited")?;
    for instance in [&up, &down] {
        // The restart has no container to start, so it is undone. No new container is created
        // without the user's data.
        let answer = api.act(uuid(instance), "restart")?;
        ensure!(answer.status == 502, "{answer:?}");
        api.wait_for(uuid(instance), "exited")?;
        ensure!(context.containers_of(instance)?.is_empty());
        api.delete(uuid(instance))?.expect(204)?;
        ensure!(api.instance(uuid(instance))?.status == 404);
    }
    server.finish()
}

pub fn stopped_and_started(context: &Context) -> Result<()> {
    let (server, api) = start(context)?;
    let instance = running(&api)?;
    login(&instance, "touch kept")?;
    context.by_hand(
        "POST",
        &format!("/containers/{}/stop?t=5", name(&instance)),
        None,
    )?;
    api.wait_for(uuid(&instance), "exited")?;
    // A manual start contradicts the intent and is not billed, so Wharf stops it again.
    context.by_hand(
        "POST",
        &format!("/containers/{}/start", name(&instance)),
        None,
    )?;
    until("the container is stopped again", || {
        Ok((context.container_of(&instance)?["State"] == "exited").then_some(()))
    })?;
    ensure!(api.instance(uuid(&instance))?.expect(200)?["state"] == "exited");
    api.act(uuid(&instance), "restart")?.expect(200)?;
    let instance = api.wait_for(uuid(&instance), "running")?;
    user(&instance).wait_for_login(&instance)?;
    login(&instance, "test -e kept")?;
    api.delete(uuid(&instance))?.expect(204)?;
    gone(context, &instance)?;
    server.finish()
}

pub fn renamed(context: &Context) -> Result<()> {
    let (server, api) = start(context)?;
    let instance = running(&api)?;
    login(&instance, "touch kept")?;
    let rename = |from: &str, to: &str| {
        context.by_hand(
            "POST",
            &format!("/containers/{from}/rename?name={to}"),
            None,
        )
    };
    let other = format!("pets-{}", uuid(&instance));
    rename(&name(&instance), &other)?;
    // The renamed instance keeps running.
    std::thread::sleep(A_WHILE);
    ensure!(api.instance(uuid(&instance))?.expect(200)?["state"] == "running");
    login(&instance, "test -e kept")?;
    api.stats(uuid(&instance))?;
    api.act(uuid(&instance), "stop")?.expect(200)?;
    ensure!(context.container_of(&instance)?["State"] == "exited");
    api.act(uuid(&instance), "restart")?.expect(200)?;
    api.wait_for(uuid(&instance), "running")?;
    user(&instance).wait_for_login(&instance)?;
    login(&instance, "test -e kept")?;
    ensure!(context.container_of(&instance)?["State"] == "running");
    // Renamed while stopped, and deleted under the new name.
    api.act(uuid(&instance), "stop")?.expect(200)?;
    rename(&other, &format!("{other}-again"))?;
    api.delete(uuid(&instance))?.expect(204)?;
    gone(context, &instance)?;

    // Renamed during its creation, before it runs.
    let young = api.small_container()?;
    let other = format!("young-{}", uuid(&young));
    until("the engine lets it be renamed", || {
        let path = format!("/containers/{}/rename?name={other}", name(&young));
        let answer = context.client().send(Request::new("POST", &path))?;
        Ok((answer.status < 300).then_some(()))
    })?;
    ensure!(api.instance(uuid(&young))?.expect(200)?["state"] == "provisioning");
    let young = api.wait_for(uuid(&young), "running")?;
    login(&young, "true")?;
    let container = context.container_of(&young)?;
    ensure!(container["Names"][0] == format!("/{other}"), "{container}");
    api.delete(uuid(&young))?.expect(204)?;
    gone(context, &young)?;
    server.finish()
}

pub fn two_installations(context: &Context) -> Result<()> {
    let ((one, ann), (mut two, bob)) = (start(context)?, start(context)?);
    let (hers, his) = (running(&ann)?, running(&bob)?);
    let doomed = running(&ann)?;
    let networks = |instance: &Value| -> Result<Vec<String>> {
        let container = context.container_of(instance)?;
        let networks = container["NetworkSettings"]["Networks"].as_object();
        Ok(networks
            .into_iter()
            .flat_map(|n| n.keys().cloned())
            .collect())
    };
    ensure!(
        networks(&hers)? != networks(&his)?,
        "the installations share a network"
    );
    let installation = |instance: &Value| -> Result<Value> {
        Ok(context.container_of(instance)?["Labels"]["io.wharf.installation"].clone())
    };
    let (first, second) = (installation(&hers)?, installation(&his)?);
    ensure!(first != second, "{first}");

    // Two containers with the first installation's label: an orphan whose instance was deleted, and
    // one of an unknown instance.
    ann.delete(uuid(&doomed))?.expect(204)?;
    gone(context, &doomed)?;
    let unknown = json!({"uuid": "5f0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f"});
    for labelled in [&doomed, &unknown] {
        let body = json!({
            "Image": "localhost/wharf/base:1",
            "HostConfig": { "NetworkMode": "none" },
            "Labels": {
                "io.wharf.installation": first,
                "io.wharf.instance": uuid(labelled),
                "io.wharf.incarnation": "1",
            },
        });
        let path = format!("/containers/create?name={}", name(labelled));
        context.by_hand("POST", &path, Some(body))?;
    }
    gone(context, &doomed).context("the orphan")?;
    std::thread::sleep(A_WHILE);
    ensure!(
        context.containers_of(&unknown)?.len() == 1,
        "an unknown object was removed"
    );

    // The second server is killed, restarted and emptied; the first is not affected.
    two.kill()?;
    two.run()?;
    let bob = two.again(&bob);
    ensure!(bob.list()?.len() == 1 && ann.list()?.len() == 1);
    let left = networks(&hers)?;
    bob.delete(uuid(&his))?.expect(204)?;
    gone(context, &his)?;
    std::thread::sleep(A_WHILE);
    ensure!(context.container_of(&hers)?["State"] == "running");
    ensure!(
        left.iter()
            .all(|n| context.networks().is_ok_and(|all| all.contains(n)))
    );
    login(&hers, "true")?;
    ann.delete(uuid(&hers))?.expect(204)?;
    gone(context, &hers)?;
    context.by_hand("DELETE", &format!("/containers/{}", name(&unknown)), None)?;
    two.finish()?;
    one.finish()
}
