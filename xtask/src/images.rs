//! `cargo xtask images`: the images of the standard flavors, made in the engine that will run
//! them. `base` from a public image where a registry answers, else from the distribution's packages;
//! the other flavors from `base`, by the same Containerfiles either way.
//! The one in which virtual machines run has no public base; [`machine`] makes their disk.

mod answer;
mod apt_sources;
mod build;
mod containerfile;
mod machine;
mod recipe;
mod rootfs;
mod sources;

pub(crate) use apt_sources::of_release as apt_sources;
pub(crate) use recipe::platform;
pub(crate) use rootfs::apt_options;

use crate::http::Client;
use crate::say;
use anyhow::{Context, Result};
use recipe::Recipe;

/// The names of all images there are.
pub fn names() -> Result<Vec<String>> {
    recipe::names()
}

/// Makes the images called `names` in the engine, unless it has them as they should be.
pub fn ensure(engine: &Client, names: &[impl AsRef<str>]) -> Result<()> {
    names
        .iter()
        .try_for_each(|name| ensure_one(engine, &Recipe::read(name.as_ref())?))
}

fn ensure_one(engine: &Client, recipe: &Recipe) -> Result<()> {
    if recipe.is_in(engine)? {
        say::note(&format!("{} is there.", recipe.reference()));
        return Ok(());
    }
    if let Some(parent) = recipe.parent()? {
        ensure_one(engine, &parent)?;
    }
    let title = format!("Making the image {}", recipe.reference());
    say::timed(&title, || make(engine, recipe)).with_context(|| recipe.reference())
}

fn make(engine: &Client, recipe: &Recipe) -> Result<()> {
    if let Some(base) = recipe.base() {
        if recipe.parent()?.is_some() || build::offers(engine, base) {
            return build::run(engine, recipe);
        }
        say::note(&format!(
            "The engine reaches no registry with {base}: from the distribution's packages instead."
        ));
    }
    rootfs::import(engine, recipe, &rootfs::tarball(recipe)?)
}
