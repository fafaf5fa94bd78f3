//! Moves and remains on the engine behind Wharf's back.

use super::context::IncusContext;
use crate::lab::{Act, Lab, OFTEN, after_observations, inside, running, text, user, uuid};
use crate::out_of_band::{FOREIGN, UNKNOWN, removed_as_orphan};
use crate::{snapshots as kept, volumes};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use wharf_tests::{Server, until};

/// The next start fetches an instance back.
pub fn moved(context: &IncusContext) -> Result<()> {
    let (server, api) = context.served("")?;
    let instance = running(&api)?;
    inside(&instance, "touch kept")?;
    api.act(uuid(&instance), "stop")?.expect(200)?;
    let own = context.object(&instance)?.place;
    let other = context.member(2).name.as_str();
    let migration = json!({ "migration": true });
    let part = format!("?target={other}");
    context.on(&instance, "POST", &part, Some(migration))?;
    ensure!(context.object(&instance)?.place == other);
    api.act(uuid(&instance), "restart")?.expect(200)?;
    let instance = api.wait_for(uuid(&instance), "running")?;
    user(&instance).wait_for_login(&instance)?;
    inside(&instance, "test -e kept")?;
    ensure!(context.object(&instance)?.place == own);
    context.remove(&api, &instance)?;
    server.finish()
}

pub fn orphans(context: &IncusContext) -> Result<()> {
    let server = Server::start(&context.settings_of(&[0], OFTEN))?;
    let api = server.user("ann@example.com")?;
    let doomed = running(&api)?;
    let object = context.raw_object(&doomed)?;
    let name = text(&object["name"]);
    let key = "user.wharf.installation";
    let own = json!({ key: object["config"][key] });
    context.remove(&api, &doomed)?;
    let unknown = json!({ "uuid": "5f0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f" });
    let foreign = json!({ "uuid": "pets-and-cattle" });
    context.make(0, uuid(&foreign), json!({}))?;
    context.make(0, &name.replace(uuid(&doomed), uuid(&unknown)), own.clone())?;
    context.make(0, name, own)?;
    context.gone(&doomed)?;
    after_observations(&server, 3)?;
    for left in [&unknown, &foreign] {
        ensure!(context.objects(left)?.len() == 1, "{left} was removed");
        context.by_hand(left, Act::Remove)?;
    }
    server.finish()
}

/// The path of volumes on the first member.
fn volumes_path(context: &IncusContext, part: &str) -> String {
    let member = &context.member(0).name;
    format!("/1.0/storage-pools/default/volumes/custom{part}?project=wharf&target={member}")
}

/// Volumes and snapshots whose rows have gone are removed. Unknown ones and those of others stay.
pub fn kept_orphans(context: &IncusContext) -> Result<()> {
    let server = Server::start(&context.settings_of(&[0], OFTEN))?;
    let api = server.user("ann@example.com")?;
    let source = running(&api)?;
    let object = context.raw_object(&source)?;
    let own = text(&object["name"]).split('-').nth(1).context("no id")?;
    let snapshot = kept::taken(&api, &source, "doomed")?;
    let volume = volumes::made(&api, "doomed")?;
    kept::removed(&api, &snapshot)?;
    volumes::removed(&api, "doomed")?;

    // The first one of each kind is the orphan.
    let by_wharf = [text(&snapshot["id"]), UNKNOWN].map(|id| format!("wharf-{id}"));
    let snapshots = [by_wharf[0].as_str(), &by_wharf[1], "by-hand"];
    let volumes = [
        format!("wv-{own}-{}", text(&volume["id"])),
        format!("wv-{own}-{UNKNOWN}"),
        format!("wv-00000000-{FOREIGN}"),
    ];
    let has = |name: &str| -> Result<bool> {
        let snapshots = context.on(&source, "GET", "/snapshots", None)?;
        let volumes = context.ask("GET", &volumes_path(context, ""), None)?;
        Ok([snapshots, volumes]
            .iter()
            .any(|list| list.to_string().contains(name)))
    };
    let orphans_are_gone = || {
        let left = has(snapshots[0])? || has(&volumes[0])?;
        Ok::<_, anyhow::Error>((!left).then_some(()))
    };
    until("the engine has neither", orphans_are_gone)?;
    // Their rows go right after them.
    after_observations(&server, 2)?;
    for name in snapshots {
        let snapshot = json!({ "name": name, "stateful": false });
        context.on(&source, "POST", "/snapshots", Some(snapshot))?;
    }
    for name in &volumes {
        let volume = json!({ "name": name, "config": { "size": "16MiB" } });
        context.ask("POST", &volumes_path(context, ""), Some(volume))?;
    }
    removed_as_orphan(&server, "snapshot")?;
    removed_as_orphan(&server, "volume")?;
    until("the orphans are gone", orphans_are_gone)?;
    after_observations(&server, 3)?;
    for name in [snapshots[1], snapshots[2], &volumes[1], &volumes[2]] {
        ensure!(has(name)?, "{name} was removed");
    }
    for name in &volumes[1..] {
        let path = volumes_path(context, &format!("/{name}"));
        context.ask("DELETE", &path, None)?;
    }
    context.remove(&api, &source)?;
    server.finish()
}
