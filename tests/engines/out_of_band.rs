//! Changes on the engine behind Wharf's back.

use crate::context::{EngineContext, network_of};
use crate::lab::{Act, Lab, OFTEN, after_observations, inside, running, state, user, uuid};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use wharf_testkit::http::Request;
use wharf_tests::caught;

fn name(instance: &Value) -> String {
    format!("wharf-{}", uuid(instance))
}

pub fn removed(lab: &impl Lab) -> Result<()> {
    let (server, api) = lab.served(OFTEN)?;
    let (up, down) = (running(&api)?, running(&api)?);
    api.act(uuid(&down), "stop")?.expect(200)?;
    for instance in [&up, &down] {
        lab.by_hand(instance, Act::Remove)?;
    }
    // It has ended and is no longer billed for compute. A stopped instance stays stopped.
    api.wait_for(uuid(&up), "exited")?;
    for instance in [&up, &down] {
        // The restart has no container to start, so it is undone. No new container is created
        // without the user's data.
        let answer = api.act(uuid(instance), "restart")?;
        ensure!(answer.status == 502, "{answer:?}");
        api.wait_for(uuid(instance), "exited")?;
        ensure!(lab.objects(instance)?.is_empty());
        api.delete(uuid(instance))?.expect(204)?;
        ensure!(api.instance(uuid(instance))?.status == 404);
    }
    server.finish()
}

pub fn stopped_and_started(lab: &impl Lab) -> Result<()> {
    let (server, api) = lab.served(OFTEN)?;
    let instance = running(&api)?;
    inside(&instance, "touch kept")?;
    lab.by_hand(&instance, Act::Stop)?;
    api.wait_for(uuid(&instance), "exited")?;
    // A manual start contradicts the intent and is not billed, so Wharf stops it again.
    lab.by_hand(&instance, Act::Start)?;
    lab.runs(&instance, false)?;
    api.wait_for(uuid(&instance), "exited")?;
    api.act(uuid(&instance), "restart")?.expect(200)?;
    let instance = api.wait_for(uuid(&instance), "running")?;
    user(&instance).wait_for_login(&instance)?;
    inside(&instance, "test -e kept")?;
    lab.remove(&api, &instance)?;
    server.finish()
}

pub fn renamed(context: &EngineContext) -> Result<()> {
    let (server, api) = context.served(OFTEN)?;
    let instance = running(&api)?;
    inside(&instance, "touch kept")?;
    let rename = |from: &str, to: &str| {
        let path = format!("/containers/{from}/rename?name={to}");
        context.ask("POST", &path, None)
    };
    let other = format!("pets-{}", uuid(&instance));
    rename(&name(&instance), &other)?;
    // The renamed instance keeps running.
    after_observations(&server, 3)?;
    ensure!(state(&api, &instance)? == "running");
    inside(&instance, "test -e kept")?;
    api.stats(uuid(&instance))?;
    api.act(uuid(&instance), "stop")?.expect(200)?;
    api.wait_for(uuid(&instance), "exited")?;
    ensure!(!context.object(&instance)?.runs);
    api.act(uuid(&instance), "restart")?.expect(200)?;
    api.wait_for(uuid(&instance), "running")?;
    user(&instance).wait_for_login(&instance)?;
    inside(&instance, "test -e kept")?;
    ensure!(context.object(&instance)?.runs);
    // Renamed while stopped, and deleted under the new name.
    api.act(uuid(&instance), "stop")?.expect(200)?;
    rename(&other, &format!("{other}-again"))?;
    context.remove(&api, &instance)?;

    // Renamed during its creation, before it runs.
    let young = api.small_container()?;
    let other = format!("young-{}", uuid(&young));
    caught("the engine lets it be renamed", || {
        let path = format!("/containers/{}/rename?name={other}", name(&young));
        let answer = context.client().send(Request::new("POST", &path))?;
        Ok((answer.status < 300).then_some(()))
    })?;
    ensure!(state(&api, &young)? == "provisioning");
    let young = api.wait_for(uuid(&young), "running")?;
    inside(&young, "true")?;
    let container = context.container_of(&young)?;
    ensure!(container["Names"][0] == format!("/{other}"), "{container}");
    context.remove(&api, &young)?;
    server.finish()
}

pub fn two_installations(context: &EngineContext) -> Result<()> {
    let ((one, ann), (mut two, bob)) = (context.served(OFTEN)?, context.served(OFTEN)?);
    let (hers, his) = (running(&ann)?, running(&bob)?);
    let doomed = running(&ann)?;
    let network = network_of(context, &hers)?;
    ensure!(
        network != network_of(context, &his)?,
        "the installations share a network"
    );
    let installation = |instance: &Value| -> Result<Value> {
        Ok(context.container_of(instance)?["Labels"]["io.wharf.installation"].clone())
    };
    let (first, second) = (installation(&hers)?, installation(&his)?);
    ensure!(first != second, "{first}");

    // Two containers with the first installation's label: an orphan whose instance was deleted, and
    // one of an unknown instance.
    context.remove(&ann, &doomed)?;
    let unknown = json!({"uuid": "5f0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f"});
    for labelled in [&doomed, &unknown] {
        let body = json!({
            "Image": crate::lab::IMAGE,
            "HostConfig": { "NetworkMode": "none" },
            "Labels": {
                "io.wharf.installation": first,
                "io.wharf.instance": uuid(labelled),
                "io.wharf.incarnation": "1",
            },
        });
        let path = format!("/containers/create?name={}", name(labelled));
        context.ask("POST", &path, Some(body))?;
    }
    context.gone(&doomed).context("the orphan")?;
    after_observations(&one, 3)?;
    ensure!(
        context.containers_of(&unknown)?.len() == 1,
        "an unknown object was removed"
    );

    // The second server is killed, restarted and emptied; the first is not affected.
    two.kill()?;
    two.run()?;
    let bob = two.again(&bob);
    ensure!(bob.list()?.len() == 1 && ann.list()?.len() == 1);
    context.remove(&bob, &his)?;
    after_observations(&two, 3)?;
    ensure!(context.object(&hers)?.runs);
    ensure!(context.networks()?.contains(&network));
    inside(&hers, "true")?;
    context.remove(&ann, &hers)?;
    context.by_hand(&unknown, Act::Remove)?;
    two.finish()?;
    one.finish()
}
