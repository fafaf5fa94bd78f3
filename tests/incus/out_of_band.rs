//! Moves and remains on the engine behind Wharf's back.

use super::context::IncusContext;
use crate::lab::{Act, Lab, OFTEN, after_observations, inside, running, text, user, uuid};
use anyhow::{Result, ensure};
use serde_json::json;
use wharf_tests::Server;

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
