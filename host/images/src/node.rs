//! Images in an engine: which there are, and copies from one engine to another.

use super::Recipes;
use super::build_output::follow;
use super::http::{Body, Client, Request};
use super::recipe::{INPUTS_LABEL, Recipe};
use super::rootfs::percent_encode;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

/// Enough for a large image on a slow disk.
const COPY_LIMIT: Duration = Duration::from_secs(3600);

/// An image's state in an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The engine does not have the image.
    Missing,
    /// The image was made from other recipes, or by other means.
    Other,
    /// The image was made from the present recipe.
    Current,
}

impl Recipes {
    /// The state of an image in the engine.
    pub fn state(&self, engine: &Client, name: &str) -> Result<State> {
        Recipe::read(self, name)?.state(engine)
    }

    /// Writes an image of the engine to a new file, for [`load`].
    pub fn save(&self, engine: &Client, name: &str, file: &Path) -> Result<()> {
        let reference = Recipe::read(self, name)?.reference();
        let draft = file.with_extension("draft");
        let saved = write(engine, &reference, &draft);
        if let Err(error) = saved {
            let _ = fs::remove_file(&draft);
            return Err(error);
        }
        fs::rename(&draft, file).with_context(|| format!("cannot write {}", file.display()))
    }
}

fn write(engine: &Client, reference: &str, draft: &Path) -> Result<()> {
    let path = format!("/images/{}/get", percent_encode(reference));
    let mut out =
        File::create(draft).with_context(|| format!("cannot write {}", draft.display()))?;
    let request = Request::new("GET", &path).timeout(COPY_LIMIT);
    let status = engine.stream(request, |chunk| Ok(out.write_all(chunk)?))?;
    if status != 200 {
        bail!("the engine has no image {reference}");
    }
    Ok(out.sync_all()?)
}

/// Loads the images of a file that [`Recipes::save`], `docker save` or `podman save` has written.
pub fn load(engine: &Client, file: &Path) -> Result<()> {
    let readable = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    drop(readable);
    let body = Body::TarFile(file.to_owned());
    let request = Request::new("POST", "/images/load").body(body);
    follow(engine, request.timeout(COPY_LIMIT))
}

impl Recipe {
    /// The state of its image in the engine.
    pub fn state(&self, engine: &Client) -> Result<State> {
        let path = format!("/images/{}/json", self.reference());
        let response = engine.send(Request::new("GET", &path))?;
        if response.status == 404 {
            return Ok(State::Missing);
        }
        let image = response.ok()?.json()?;
        let labels = image.pointer("/Config/Labels");
        let inputs = labels.and_then(|labels| labels.get(INPUTS_LABEL)?.as_str());
        Ok(match inputs == Some(self.hash()) {
            true => State::Current,
            false => State::Other,
        })
    }
}
