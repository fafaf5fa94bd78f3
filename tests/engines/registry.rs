//! `[[registry]]`: images of a private registry, its faults, and a new password.

use crate::context::EngineContext;
use crate::lab::{Lab, uuid};
use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs;
use wharf_tests::{Api, Registry, RegistryMode, Server, small, until, write_private};

const IMAGE: &str = "localhost/wharf/base:1";
const WRONG: &str = "not-the-password";

/// Puts an image into the registry, as a tag of this name. Returns its digest.
pub fn push(context: &EngineContext, image: &str, name: &str, tag: &str) -> Result<String> {
    let path = format!("/images/{image}/tag?repo={name}&tag={tag}");
    context.ask("POST", &path, None)?;
    Registry::push(&context.client(), &format!("{name}:{tag}"))?;
    let pushed = context.ask("GET", &format!("/images/{name}:{tag}/json"), None)?;
    let digests = pushed["RepoDigests"].as_array().into_iter().flatten();
    let mut digests = digests.filter_map(|one| one.as_str()?.split_once('@'));
    let digest = digests.find(|(repository, _)| *repository == name);
    let (_, digest) = digest.with_context(|| format!("no digest of {name} in {pushed}"))?;
    forget(context, &format!("{name}:{tag}"))?;
    Ok(digest.to_owned())
}

/// Removes an image from the engine, so that the next use pulls it.
pub fn forget(context: &EngineContext, image: &str) -> Result<()> {
    let path = format!("/images/{image}?force=true");
    context.ask("DELETE", &path, None).map(drop)
}

fn create(api: &Api) -> Result<Value> {
    let mut body = small("container");
    body["flavor"] = json!("tools");
    api.create(&body)?.expect(201)
}

/// The reason of a failed creation, as its user and the operator see it.
fn failure(server: &Server, api: &Api) -> Result<String> {
    let created = create(api)?;
    api.wait_for(uuid(&created), "error")?;
    let events = api.get(&format!("/api/event/?after=0&instance={}", uuid(&created)))?;
    let events = events.expect(200)?.to_string();
    api.delete(uuid(&created))?.expect(204)?;
    Ok(format!("{events}\n{}", server.log()))
}

fn reload(server: &Server) -> Result<()> {
    let done = || {
        server
            .log()
            .matches("the configuration is reloaded")
            .count()
    };
    let before = done();
    server.hang_up()?;
    until("the reload", || Ok((done() > before).then_some(())))
}

pub fn private_images(context: &EngineContext) -> Result<()> {
    let registry = Registry::start()?;
    let name = format!("{}/team/tools", registry.host());
    push(context, IMAGE, &name, "1")?;
    let image = format!("{name}:1");
    let dir = tempfile::tempdir()?;
    let password = dir.path().join("password");
    write_private(&password, WRONG.as_bytes())?;
    let settings = format!(
        "[[registry]]\nhost = \"{}\"\nuser = \"{}\"\npassword_file = {password:?}\n\
         [[flavor]]\nname = \"tools\"\nimage = \"{image}\"\nssh = true\n",
        registry.host(),
        Registry::USER,
    );
    let (server, api) = context.served(&settings)?;

    let refused = failure(&server, &api)?;
    ensure!(
        refused.contains("cannot be pulled") && refused.contains("[[registry]]"),
        "{refused}"
    );

    fs::write(&password, Registry::PASSWORD)?;
    reload(&server)?;
    registry.take_heads();
    let created = create(&api)?;
    api.wait_for(uuid(&created), "running")?;
    let heads = registry.take_heads();
    ensure!(
        heads
            .iter()
            .any(|head| head.contains("/team/tools/manifests/")),
        "{heads:?}"
    );
    api.delete(uuid(&created))?.expect(204)?;
    forget(context, &image)?;

    // The reason has the account, which a user must not see.
    registry.set_mode(RegistryMode::Repeats);
    let repeated = failure(&server, &api)?;
    let pair = |password| STANDARD.encode(format!("{}:{password}", Registry::USER));
    ensure!(
        repeated.contains("not Authorization: Basic (secret)"),
        "{repeated}"
    );

    // A registry that cannot answer now is asked again.
    registry.set_mode(RegistryMode::Busy);
    registry.take_heads();
    let created = create(&api)?;
    let mut asked = 0;
    until("another pull", || {
        asked += registry.take_heads().len();
        Ok((asked > 4).then_some(()))
    })?;
    registry.set_mode(RegistryMode::Works);
    api.wait_for(uuid(&created), "running")?;
    api.delete(uuid(&created))?.expect(204)?;
    forget(context, &image)?;

    // A restart of the server begins the pull again.
    registry.set_mode(RegistryMode::Hangs);
    let mut server = server;
    let created = create(&api)?;
    until("the pull begins", || {
        Ok((!registry.take_heads().is_empty()).then_some(()))
    })?;
    server.kill()?;
    registry.set_mode(RegistryMode::Works);
    server.run()?;
    let api = server.again(&api);
    api.wait_for(uuid(&created), "running")?;
    api.delete(uuid(&created))?.expect(204)?;

    let wrote = server.data_and_log()?;
    for secret in [
        Registry::PASSWORD.to_owned(),
        WRONG.to_owned(),
        pair(Registry::PASSWORD),
        pair(WRONG),
    ] {
        let found = wrote
            .windows(secret.len())
            .any(|part| part == secret.as_bytes());
        ensure!(!found, "the log or the data directory has an account");
    }
    server.finish()?;
    forget(context, &image)
}
