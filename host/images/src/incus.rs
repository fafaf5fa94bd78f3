//! Images for Incus, which builds none: the files of an image, with Incus' own description.

use crate::http::{Body, HttpClient, Request};
use crate::maker::{CONTENT_LABEL, MadeImage, SOURCE_LABEL};
use crate::node::{FoundImage, Labels};
use crate::process::{command, run};
use crate::recipe::{INPUTS_LABEL, hash_of_hashes, reference};
use crate::{Recipes, RootFileSystem, progress};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A request with the end of its operation.
const ASK_LIMIT: Duration = Duration::from_secs(120);
/// Enough for a large image on a slow disk.
const IMPORT_LIMIT: Duration = Duration::from_secs(600);
/// The JSON pointer of an image's labels.
const PROPERTIES: &str = "/properties";

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

/// The project of an Incus that gets images.
#[derive(Debug, Clone)]
pub struct IncusProject {
    /// It may be restricted to the project.
    pub client: HttpClient,
    pub name: String,
}

impl IncusProject {
    /// Makes images, unless the project has current ones. Those that are built on others need `builder`, a dockerd.
    pub fn ensure(
        &self,
        recipes: &Recipes,
        names: &[impl AsRef<str>],
        builder: Option<&HttpClient>,
    ) -> Result<Vec<MadeImage>> {
        let ensure = |name: &str| {
            let mut content = if recipes.is_derived(name)? {
                let builder = builder.with_context(|| {
                    format!("Incus builds no images, and {name} is built on another one: name an engine that builds it with --builder")
                })?;
                recipes.exported(builder, name)?
            } else {
                recipes.root_file_system(name)?
            };
            content.made.is_new = self.ensure_one(name, &content)?;
            progress::note(&content.made.to_string());
            Ok(content.made)
        };
        names.iter().map(|name| ensure(name.as_ref())).collect()
    }

    /// Looks for an image in the project. Whether it has an SSH server is not known.
    pub fn find(&self, recipes: &Recipes, name: &str) -> Result<FoundImage> {
        let image = self.image(&reference(name))?;
        let labels = image.map(|image| Labels::at(&image, PROPERTIES));
        let found = recipes.found(name, labels)?;
        Ok(FoundImage {
            has_ssh: None,
            ..found
        })
    }

    /// The image with an alias.
    fn image(&self, alias: &str) -> Result<Option<Value>> {
        let (alias, project) = (alias.replace('/', "%2F"), &self.name);
        let path = format!("/1.0/images/aliases/{alias}?project={project}");
        let response = self
            .client
            .send(Request::new("GET", &path).timeout(ASK_LIMIT))?;
        if response.status == 404 {
            return Ok(None);
        }
        let found = response.ok()?.json()?;
        let target = text(&found, "/metadata/target");
        let path = format!("/1.0/images/{target}?project={project}");
        ask(&self.client, "GET", &path, None).map(Some)
    }

    /// Makes an image unless the project has it, and returns whether it was made.
    fn ensure_one(&self, name: &str, content: &RootFileSystem) -> Result<bool> {
        let alias = reference(name);
        let present = self.image(&alias)?;
        let is_current = |image: &Value| {
            let labels = Labels::at(image, PROPERTIES);
            labels.is_of(&content.made.hash, false)
                && labels.get(CONTENT_LABEL).unwrap_or_default() == content.made.content
        };
        if present.as_ref().is_some_and(is_current) {
            return Ok(false);
        }
        let project = &self.name;
        let title = format!("Importing the image {alias}");
        progress::timed(&title, || {
            let fingerprint = import(&self.client, project, &file(name, content)?)?;
            if let Some(image) = &present {
                let path = format!(
                    "/1.0/images/{}?project={project}",
                    text(image, "/fingerprint")
                );
                ask(&self.client, "DELETE", &path, None)?;
            }
            let path = format!("/1.0/images/aliases?project={project}");
            let named = json!({ "name": alias, "target": fingerprint });
            ask(&self.client, "POST", &path, Some(named)).map(drop)
        })?;
        Ok(true)
    }
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
    let metadata = metadata(name, content);
    let hash = hash_of_hashes([metadata.as_str()]);
    let file = content
        .tarball
        .with_extension(format!("{hash}.incus.tar.gz"));
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
    fs::write(directory.path().join("metadata.yaml"), metadata)?;
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
    let made = &content.made;
    let mut text = format!(
        "architecture: {architecture}\ncreation_date: 1\nproperties:\n  description: Wharf {name}\n  \
         {INPUTS_LABEL}: \"{}\"\n  io.wharf.clonable: \"1\"\n",
        made.hash
    );
    let content = Some(&made.content).filter(|content| !content.is_empty());
    for (label, value) in [
        (CONTENT_LABEL, content),
        (SOURCE_LABEL, made.source.as_ref()),
    ] {
        // A text of JSON is one of YAML too.
        text.extend(value.map(|value| format!("  {label}: {}\n", json!(value))));
    }
    text.push_str("templates:\n");
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

/// Sends a request, waits for the end of its operation, and returns the content of the answer.
pub fn ask(client: &HttpClient, method: &str, path: &str, body: Option<Value>) -> Result<Value> {
    let request = Request::new(method, path).timeout(ASK_LIMIT);
    let request = match body {
        Some(body) => request.json(body),
        None => request,
    };
    complete(client, request).with_context(|| format!("{method} {path}"))
}

/// Like [`ask`], with any request.
fn complete(client: &HttpClient, request: Request<'_>) -> Result<Value> {
    let answer = client.send(request)?.ok()?.json()?;
    let operation = text(&answer, "/operation");
    if operation.is_empty() {
        return Ok(part(&answer, "/metadata"));
    }
    let (path, query) = operation.split_once('?').unwrap_or((operation, ""));
    let path = format!("{path}/wait?timeout=100&{query}");
    let wait = Request::new("GET", &path).timeout(ASK_LIMIT);
    let ended = client.send(wait)?.ok()?.json()?;
    if text(&ended, "/metadata/status") != "Success" {
        bail!(
            "{} {}",
            text(&ended, "/error"),
            text(&ended, "/metadata/err")
        );
    }
    Ok(part(&ended, "/metadata/metadata"))
}

/// The text at a JSON pointer; empty if there is none.
pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn part(value: &Value, pointer: &str) -> Value {
    value.pointer(pointer).cloned().unwrap_or_default()
}
