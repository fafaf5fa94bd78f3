//! Changes on the engine behind Wharf's back.

use crate::context::{EngineContext, network_of};
use crate::lab::{
    Act, IMAGE, Lab, OFTEN, after_observations, inside, running, state, text, user, uuid,
};
use crate::snapshots::{copies, removed as snapshot_removed, taken};
use crate::volumes;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use wharf_testkit::http::Request;
use wharf_tests::{Server, caught, until};

/// The id of objects that the installation never had.
pub const UNKNOWN: &str = "5f0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f";
/// The id of objects of others.
pub const FOREIGN: &str = "6a1e7c52-9d0b-4f0a-8a55-7b3d0c9e4d21";

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
    let unknown = json!({ "uuid": UNKNOWN });
    for labelled in [&doomed, &unknown] {
        let body = json!({
            "Image": IMAGE,
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

/// Waits until a server has removed a volume or a snapshot because it has no row.
pub fn removed_as_orphan(server: &Server, word: &str) -> Result<()> {
    let removing = format!("{word} without a row, removing it");
    until(&removing, || {
        Ok(server.written().contains(&removing).then_some(()))
    })
}

/// The containers and the engine's volumes of a volume.
fn parts(context: &EngineContext, id: &str) -> Result<usize> {
    let label = format!("%7B%22label%22%3A%5B%22io.wharf.volume%3D{id}%22%5D%7D");
    let path = format!("/containers/json?all=true&filters={label}");
    let holders = context.ask("GET", &path, None)?;
    let path = format!("/volumes?filters={label}");
    let volumes = context.ask("GET", &path, None)?["Volumes"].clone();
    let count = |list: &Value| list.as_array().map_or(0, Vec::len);
    Ok(count(&holders) + count(&volumes))
}

/// Makes a volume of an installation by hand.
fn make_volume(context: &EngineContext, id: &str, installation: &str) -> Result<()> {
    let name = format!("wharf-volume-{id}");
    let labels = json!({
        "io.wharf.holder": installation, "io.wharf.volume": id, "io.wharf.size": "1",
    });
    let holder = json!({
        "Image": IMAGE, "HostConfig": { "NetworkMode": "none" }, "Labels": labels,
    });
    let path = format!("/containers/create?name={name}");
    context.ask("POST", &path, Some(holder))?;
    let volume = json!({ "Name": name, "Labels": labels });
    context
        .ask("POST", "/volumes/create", Some(volume))
        .map(drop)
}

/// Volumes and snapshots whose rows have gone are removed. Unknown ones and those of others stay.
pub fn kept_orphans(context: &EngineContext) -> Result<()> {
    let (server, api) = context.served(OFTEN)?;
    let source = running(&api)?;
    let labels = context.container_of(&source)?["Labels"].clone();
    let own = text(&labels["io.wharf.installation"]);
    let snapshot = taken(&api, &source, "doomed")?;
    let doomed = text(&snapshot["id"]);
    snapshot_removed(&api, &snapshot)?;
    until("the snapshot is gone", || {
        Ok((copies(context, doomed)? == 0).then_some(()))
    })?;
    // Its row goes right after it.
    after_observations(&server, 2)?;
    let kept = [(UNKNOWN, own), (FOREIGN, FOREIGN)];
    for (id, installation) in kept.into_iter().chain([(doomed, own)]) {
        let image = format!("repo=localhost%2Fwharf-snapshot%2F{id}&tag=1");
        let labels = format!("io.wharf.snapshot%3D{id}%20io.wharf.installation%3D{installation}");
        let of = format!("container=wharf-{}&pause=false", uuid(&source));
        let path = format!("/commit?{of}&{image}&changes=LABEL%20{labels}");
        context.ask("POST", &path, Some(json!({})))?;
    }
    removed_as_orphan(&server, "snapshot")?;
    until("the orphan is gone", || {
        Ok((copies(context, doomed)? == 0).then_some(()))
    })?;
    let has_volumes = volumes::are_made(&api)?;
    if has_volumes {
        let volume = volumes::made(&api, "doomed")?;
        let doomed = text(&volume["id"]);
        volumes::removed(&api, "doomed")?;
        let is_gone = || Ok::<_, anyhow::Error>((parts(context, doomed)? == 0).then_some(()));
        until("the volume is gone", is_gone)?;
        after_observations(&server, 2)?;
        for (id, installation) in kept.into_iter().chain([(doomed, own)]) {
            make_volume(context, id, installation)?;
        }
        removed_as_orphan(&server, "volume")?;
        until("the orphan is gone", is_gone)?;
    }
    after_observations(&server, 3)?;
    for (id, _) in kept {
        ensure!(copies(context, id)? == 1, "snapshot {id} was removed");
        let image = format!("/images/localhost/wharf-snapshot/{id}:1");
        context.ask("DELETE", &image, None)?;
        if has_volumes {
            ensure!(parts(context, id)? == 2, "volume {id} was removed");
            context.ask("DELETE", &format!("/volumes/wharf-volume-{id}"), None)?;
            context.ask("DELETE", &format!("/containers/wharf-volume-{id}"), None)?;
        }
    }
    context.remove(&api, &source)?;
    server.finish()
}
