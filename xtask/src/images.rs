//! `cargo xtask images`: the images of the standard flavors, made in the engine that will run
//! them. From a public base image where a registry answers, else from the distribution's packages.
//! The one in which virtual machines run has no public base; [`machine`] makes their disk.

mod answer;
mod apt_sources;
mod containerfile;
mod machine;
mod recipe;
mod registry;
mod rootfs;

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
    for name in names {
        let recipe = Recipe::read(name.as_ref())?;
        if recipe.is_in(engine)? {
            say::note(&format!("{} is there.", recipe.reference()));
            continue;
        }
        let title = format!("Making the image {}", recipe.reference());
        say::timed(&title, || make(engine, &recipe)).with_context(|| recipe.reference())?;
    }
    Ok(())
}

fn make(engine: &Client, recipe: &Recipe) -> Result<()> {
    if let Some(base) = recipe.base() {
        if registry::offers(engine, base) {
            return registry::build(engine, recipe);
        }
        say::note(&format!(
            "The engine reaches no registry with {base}: from the distribution's packages instead."
        ));
    }
    rootfs::import(engine, recipe, &rootfs::tarball(recipe)?)
}
