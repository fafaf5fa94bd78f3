//! Images in an engine: which there are, and copies from one engine to another.

use super::build_output::follow;
use super::http::{Body, HttpClient, Request};
use super::recipe::{INPUTS_LABEL, Recipe, reference};
use super::rootfs::{lock, percent_encode};
use super::{Recipes, RootFileSystem, pull};
use crate::current::{Possible, possible};
use crate::maker::{CONTENT_LABEL, MadeImage, Maker, SOURCE_LABEL};
use crate::sources::Sources;
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

/// Enough for a large image on a slow disk.
const COPY_LIMIT: Duration = Duration::from_secs(3600);

/// An image's state in an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageState {
    /// The engine does not have the image.
    Missing,
    /// The image was made from other recipes, or by other means.
    Other,
    /// The image was made from the present recipe.
    Current,
}

/// The label of an image with an SSH server.
const SSH_LABEL: &str = "io.wharf.ssh";

/// The image of a recipe in an engine.
#[derive(Debug, Clone)]
pub struct FoundImage {
    pub state: ImageState,
    /// The content, in words for users.
    pub content: Option<String>,
    /// The origin, such as `packages`.
    pub source: Option<String>,
    /// Whether it has an SSH server. A missing image has none of its own, nor has one of virtual machines,
    /// whose disk has it.
    pub has_ssh: Option<bool>,
}

impl Recipes {
    /// Looks for an image in an engine.
    pub fn find(&self, engine: &HttpClient, name: &str) -> Result<FoundImage> {
        self.found(name, Labels::of(engine, &reference(name))?)
    }

    /// Describes an image by its labels.
    pub(crate) fn found(&self, name: &str, labels: Option<Labels>) -> Result<FoundImage> {
        let sources = Sources::read(self)?;
        let recipe = Recipe::read(self, &sources, name)?;
        let Some(labels) = labels else {
            return Ok(FoundImage {
                state: ImageState::Missing,
                content: None,
                source: None,
                has_ssh: None,
            });
        };
        let current = labels.possible(self, &sources, &recipe)?;
        let state = if current.is_some() {
            ImageState::Current
        } else {
            ImageState::Other
        };
        let text = |name| {
            labels
                .get(name)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        Ok(FoundImage {
            state,
            content: text(CONTENT_LABEL),
            source: text(SOURCE_LABEL),
            has_ssh: Some(labels.get(SSH_LABEL).is_some()).filter(|_| !recipe.has_machine()),
        })
    }

    /// Writes an image of the engine to a new file, for [`load`].
    pub fn save(&self, engine: &HttpClient, name: &str, file: &Path) -> Result<()> {
        let reference = Recipe::read(self, &Sources::read(self)?, name)?.reference();
        let draft = file.with_extension("draft");
        let saved = write(engine, &reference, &draft);
        if let Err(error) = saved {
            let _ = fs::remove_file(&draft);
            return Err(error);
        }
        fs::rename(&draft, file).with_context(|| format!("cannot write {}", file.display()))
    }

    /// Whether an image is built on another one, which needs an engine that builds images.
    pub(crate) fn is_derived(&self, name: &str) -> Result<bool> {
        let recipe = Recipe::read(self, &Sources::read(self)?, name)?;
        Ok(recipe.parent()?.is_some())
    }

    /// The content of an image of the engine, which makes the image first unless it has a current one.
    pub(crate) fn exported(&self, engine: &HttpClient, name: &str) -> Result<RootFileSystem> {
        let made = Maker::new(engine, self, &[name])?.ensure(name)?;
        let recipe = Recipe::read(self, &Sources::read(self)?, name)?;
        let reference = recipe.reference();
        let image = engine.get(&format!("/images/{reference}/json"))?;
        let environment = image.pointer("/Config/Env").and_then(Value::as_array);
        let file = format!("{name}-{}-{}.export.tar", recipe.platform()?, made.hash);
        let tarball = self.cache.join(file);
        let _lock = lock(&self.cache)?;
        if !tarball.is_file() {
            let draft = tarball.with_extension("draft");
            export(engine, &reference, &draft)?;
            fs::rename(&draft, &tarball)?;
        }
        Ok(RootFileSystem {
            tarball,
            environment: environment
                .into_iter()
                .flatten()
                .filter_map(|variable| variable.as_str().map(str::to_owned))
                .collect(),
            made,
        })
    }
}

/// Writes the root file system of an image, which an engine exports only for containers.
fn export(engine: &HttpClient, reference: &str, draft: &Path) -> Result<()> {
    let body = Body::Json(json!({ "Image": reference }));
    let request = Request::new("POST", "/containers/create").body(body);
    let made = engine.send(request)?.ok()?.json()?;
    let id = made.pointer("/Id").and_then(Value::as_str);
    let path = format!(
        "/containers/{}",
        id.context("the engine names no container")?
    );
    let written = stream(engine, &format!("{path}/export"), draft);
    let removed = engine.send(Request::new("DELETE", &path))?.ok();
    if written? != 200 {
        bail!("the engine does not export {reference}");
    }
    removed.map(drop)
}

fn write(engine: &HttpClient, reference: &str, draft: &Path) -> Result<()> {
    let path = format!("/images/{}/get", percent_encode(reference));
    if stream(engine, &path, draft)? != 200 {
        bail!("the engine has no image {reference}");
    }
    Ok(())
}

/// Writes the body of an answer to a file, and returns the answer's status.
fn stream(engine: &HttpClient, path: &str, draft: &Path) -> Result<u16> {
    let mut out =
        File::create(draft).with_context(|| format!("cannot write {}", draft.display()))?;
    let request = Request::new("GET", path).timeout(COPY_LIMIT);
    let status = engine.stream(request, |chunk| Ok(out.write_all(chunk)?))?;
    out.sync_all()?;
    Ok(status)
}

/// Loads the images of a file that [`Recipes::save`], `docker save` or `podman save` has written.
pub fn load(engine: &HttpClient, file: &Path) -> Result<()> {
    let readable = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    drop(readable);
    let body = Body::TarFile(file.to_owned());
    let request = Request::new("POST", "/images/load").body(body);
    follow(engine, request.timeout(COPY_LIMIT))
}

/// The labels of an image in an engine; on Incus, its properties.
pub(crate) struct Labels {
    all: Map<String, Value>,
}

impl Labels {
    /// The labels of an image, if the engine has it.
    pub fn of(engine: &HttpClient, image: &str) -> Result<Option<Self>> {
        let found = pull::found(engine, image)?;
        Ok(found.map(|image| Self::at(&image, "/Config/Labels")))
    }

    /// The labels at a JSON pointer of an image's description.
    pub fn at(image: &Value, pointer: &str) -> Self {
        let all = image.pointer(pointer).and_then(Value::as_object);
        let all = all.cloned().unwrap_or_default();
        Self { all }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.all.get(name)?.as_str()
    }

    /// The hash of an image that is current.
    pub fn possible(
        &self,
        recipes: &Recipes,
        sources: &Sources,
        recipe: &Recipe,
    ) -> Result<Option<Possible>> {
        let all = possible(recipes, sources, recipe, self.get(SOURCE_LABEL))?;
        Ok(all
            .into_iter()
            .find(|one| self.is_of(&one.hash, one.has_content)))
    }

    /// Whether the image has this hash, and tells its content.
    pub fn is_of(&self, hash: &str, has_content: bool) -> bool {
        self.get(INPUTS_LABEL) == Some(hash) && !(has_content && self.get(CONTENT_LABEL).is_none())
    }

    /// The present image of a recipe.
    pub fn image(&self, recipe: &Recipe, hash: String, is_substitute: bool) -> MadeImage {
        MadeImage {
            image: recipe.name().to_owned(),
            content: self.get(CONTENT_LABEL).unwrap_or_default().to_owned(),
            source: self.get(SOURCE_LABEL).map(str::to_owned),
            is_substitute,
            is_new: false,
            not_taken: Vec::new(),
            hash,
        }
    }
}
