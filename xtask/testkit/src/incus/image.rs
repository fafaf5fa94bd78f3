//! Images for Incus: the root file systems of the standard flavors, with Incus' own description.

use super::member::{ask, complete, text};
use crate::http::{Body, HttpClient, Request};
use crate::process::{command, run};
use crate::{images, progress};
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wharf_images::RootFileSystem;

/// Enough for a large image on a slow disk.
const IMPORT_LIMIT: Duration = Duration::from_secs(600);
/// The key with the hash of an image's recipe.
const INPUTS: &str = "wharf.inputs";

/// The files that Incus writes into an instance, and their content. `start` renews those that follow the
/// configuration.
const TEMPLATES: [(&str, &str, &str, &str); 3] = [
    (
        "/etc/hostname",
        "create, copy, start",
        "hostname.tpl",
        "{{ config_get(\"user.wharf.hostname\", container.name) }}\n",
    ),
    (
        "/etc/hosts",
        "create, copy, start",
        "hosts.tpl",
        "127.0.0.1 localhost\n127.0.1.1 {{ config_get(\"user.wharf.hostname\", container.name) }}\n\
         ::1 localhost ip6-localhost ip6-loopback\n",
    ),
    (
        "/etc/wharf/net",
        "create, copy, start",
        "net.tpl",
        "{{ config_get(\"user.wharf.net\", \"\") }}\n",
    ),
];

/// Makes images in a project, unless it has current ones. The client may be restricted to the project.
pub fn ensure(client: &HttpClient, project: &str, names: &[impl AsRef<str>]) -> Result<()> {
    names.iter().map(AsRef::as_ref).try_for_each(|name| {
        let content = images::recipes().root_file_system(name)?;
        ensure_one(client, project, name, &content)
    })
}

/// Makes images that are built on others: `builder`, a dockerd, builds them, and Incus gets their files.
pub fn ensure_built(
    client: &HttpClient,
    project: &str,
    names: &[impl AsRef<str>],
    builder: &HttpClient,
) -> Result<()> {
    names.iter().map(AsRef::as_ref).try_for_each(|name| {
        let content = images::recipes().exported(builder, name)?;
        ensure_one(client, project, name, &content)
    })
}

/// The name of an image in blueprints.
pub fn alias(name: &str) -> String {
    format!("localhost/wharf/{name}:1")
}

fn ensure_one(
    client: &HttpClient,
    project: &str,
    name: &str,
    content: &RootFileSystem,
) -> Result<()> {
    let alias = alias(name);
    let path = format!(
        "/1.0/images/aliases/{}?project={project}",
        alias.replace('/', "%2F")
    );
    let present = ask(client, "GET", &path, None).ok();
    let present = present.map(|found| text(&found, "/target").to_owned());
    if let Some(target) = &present {
        let path = format!("/1.0/images/{target}?project={project}");
        let image = ask(client, "GET", &path, None)?;
        if text(&image, &format!("/properties/{INPUTS}")) == content.hash {
            progress::note(&format!("{alias} is up to date."));
            return Ok(());
        }
    }
    let title = format!("Importing the image {alias}");
    progress::timed(&title, || {
        let fingerprint = import(client, project, &file(name, content)?)?;
        if present.is_some() {
            ask(client, "DELETE", &path, None)?;
        }
        let path = format!("/1.0/images/aliases?project={project}");
        let named = json!({ "name": alias, "target": fingerprint });
        ask(client, "POST", &path, Some(named)).map(drop)
    })
}

fn import(client: &HttpClient, project: &str, file: &Path) -> Result<String> {
    let path = format!("/1.0/images?project={project}");
    let request = Request::new("POST", &path)
        .body(Body::TarFile(file.to_owned()))
        .timeout(IMPORT_LIMIT);
    let image = complete(client, request).context("importing an image")?;
    match text(&image, "/fingerprint") {
        "" => bail!("the engine has no image: {image}"),
        fingerprint => Ok(fingerprint.to_owned()),
    }
}

/// The image as a file, made once for each version of the recipe.
fn file(name: &str, content: &RootFileSystem) -> Result<PathBuf> {
    let file = content.tarball.with_extension("incus.tar.gz");
    if file.is_file() {
        progress::note(&format!("Reusing {}.", file.display()));
        return Ok(file);
    }
    let directory = tempfile::tempdir_in(content.tarball.parent().context("no directory")?)?;
    let root = directory.path().join("rootfs");
    let templates = directory.path().join("templates");
    fs::create_dir(&root)?;
    fs::create_dir(&templates)?;
    run(command("tar")
        .args([
            "--extract",
            "--numeric-owner",
            "--xattrs",
            "--xattrs-include=*",
            "--file",
        ])
        .arg(&content.tarball)
        .arg("--directory")
        .arg(&root))?;
    for (_, _, template, text) in TEMPLATES {
        fs::write(templates.join(template), text)?;
    }
    let variables: String = content
        .environment
        .iter()
        .map(|v| format!("{v}\n"))
        .collect();
    fs::write(templates.join("environment.tpl"), variables)?;
    fs::write(
        directory.path().join("metadata.yaml"),
        metadata(name, content),
    )?;
    let draft = file.with_extension("draft");
    run(command("tar")
        .args([
            "--create",
            "--gzip",
            "--numeric-owner",
            "--xattrs",
            "--xattrs-include=*",
            "--file",
        ])
        .arg(&draft)
        .arg("--directory")
        .arg(directory.path())
        .args(["metadata.yaml", "templates", "rootfs"]))?;
    fs::rename(&draft, &file)?;
    Ok(file)
}

fn metadata(name: &str, content: &RootFileSystem) -> String {
    let architecture = std::env::consts::ARCH;
    let shown = content.content.as_ref();
    // A text of JSON is one of YAML too.
    let shown = shown.map(|text| format!("  io.wharf.content: {}\n", json!(text)));
    let mut text = format!(
        "architecture: {architecture}\ncreation_date: 1\nproperties:\n  description: Wharf {name}\n  \
         {INPUTS}: \"{}\"\n  io.wharf.clonable: \"1\"\n{}templates:\n",
        content.hash,
        shown.unwrap_or_default()
    );
    let environment = (
        "/etc/wharf/environment",
        "create, copy",
        "environment.tpl",
        "",
    );
    for (path, when, template, _) in TEMPLATES.into_iter().chain([environment]) {
        text.push_str(&format!(
            "  {path}: {{when: [{when}], template: {template}}}\n"
        ));
    }
    text
}
