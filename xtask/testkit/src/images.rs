//! The images of the standard flavors, made in the engine that will run them.
//!
//! `base` is built from a public image where the engine reaches a registry, else from the distribution's
//! packages. The other flavors are built from `base`. The image of virtual machines has no public base;
//! [`machine`] makes its disk.

mod apt_sources;
mod build;
mod build_output;
mod containerfile;
mod machine;
mod recipe;
mod rootfs;
mod sources;

pub(crate) use apt_sources::of_release as apt_sources;
pub(crate) use recipe::platform;
pub(crate) use rootfs::apt_options;

use crate::http::Client;
use crate::progress;
use anyhow::{Context, Result};
use recipe::Recipe;

/// The names of all images.
pub fn names() -> Result<Vec<String>> {
    recipe::names()
}

/// Makes images in the engine, unless it has current ones.
pub fn ensure(engine: &Client, names: &[impl AsRef<str>]) -> Result<()> {
    names
        .iter()
        .try_for_each(|name| ensure_one(engine, &Recipe::read(name.as_ref())?))
}

fn ensure_one(engine: &Client, recipe: &Recipe) -> Result<()> {
    if recipe.is_in(engine)? {
        progress::note(&format!("{} is up to date.", recipe.reference()));
        return Ok(());
    }
    if let Some(parent) = recipe.parent()? {
        ensure_one(engine, &parent)?;
    }
    let title = format!("Making the image {}", recipe.reference());
    progress::timed(&title, || make(engine, recipe)).with_context(|| recipe.reference())
}

fn make(engine: &Client, recipe: &Recipe) -> Result<()> {
    if let Some(base) = recipe.base() {
        if recipe.parent()?.is_some() || build::offers(engine, base) {
            return build::run(engine, recipe);
        }
        progress::note(&format!(
            "The engine reaches no registry with {base}; using the distribution's packages."
        ));
    }
    rootfs::import(engine, recipe, &rootfs::tarball(recipe)?)
}
