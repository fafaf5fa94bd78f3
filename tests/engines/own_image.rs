//! `[[flavor]]`: the images of `docs/flavors.md`, built and logged in to.

use crate::context::EngineContext;
use crate::lab::{Lab, restarted, user, uuid};
use anyhow::{Result, ensure};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use wharf_images::Recipes;
use wharf_tests::{KeyPair, Login, small};

const PAGE: &str = include_str!("../../docs/flavors.md");

/// The examples of the page, on top of `base`: the engine may reach no registry.
fn containerfiles() -> Vec<String> {
    let blocks = PAGE.split("```dockerfile\n").skip(1);
    let text = blocks.map(|block| block.split("```").next().unwrap_or_default());
    text.map(|text| {
        let rest: Vec<_> = text.lines().skip(1).collect();
        format!(
            "ARG BASE=localhost/wharf/base:1\nFROM ${{BASE}}\n{}\n",
            rest.join("\n")
        )
    })
    .collect()
}

pub fn is_built_and_logged_in_to(context: &EngineContext) -> Result<()> {
    let usual = wharf_testkit::images::recipes();
    let dir = tempfile::tempdir()?;
    for shared in ["base", "sources.toml"] {
        symlink(usual.directory.join(shared), dir.path().join(shared))?;
    }
    let names = ["our-tools", "our-init"];
    let files = containerfiles();
    ensure!(files.len() == names.len(), "{files:?}");
    let mut flavors = String::new();
    for (name, text) in names.iter().zip(&files) {
        fs::create_dir(dir.path().join(name))?;
        fs::write(dir.path().join(name).join("Containerfile"), text)?;
        flavors += &format!(
            "[[flavor]]\nname = \"{name}\"\nimage = \"localhost/wharf/{name}:1\"\nssh = true\n"
        );
    }
    let recipes = Recipes::new(dir.path().to_owned(), usual.cache);
    recipes.ensure(&context.client(), &names)?;
    let (server, api) = context.served(&flavors)?;
    let pair = KeyPair::new()?;
    for name in names {
        let mut body = small("container");
        body["name"] = json!(format!("with-{name}"));
        body["flavor"] = json!(name);
        body["public_key"] = json!(pair.public);
        let created = api.create(&body)?.expect(201)?;
        let running = api.wait_for(uuid(&created), "running")?;
        for login in [Login::Key(&pair), user(&running)] {
            login.wait_for_login(&running)?;
            ensure!(login.output(&running, "id -un")? == "user");
            ensure!(login.output(&running, "sudo -n id -u")? == "0");
        }
        let left = "sudo ls /etc/wharf/first-boot 2>/dev/null || echo gone";
        ensure!(Login::Key(&pair).output(&running, left)? == "gone");
        restarted(&api, &running)?;
        api.delete(uuid(&running))?.expect(204)?;
    }
    server.finish()
}
