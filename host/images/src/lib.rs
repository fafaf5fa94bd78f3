//! Images of flavors, made from recipes in the engine that will run them.
//!
//! `base` is built from a public image where the engine reaches a registry, else from the distribution's
//! packages. The other flavors are built from `base`. The image of virtual machines has no public base;
//! [`machine`] makes its disk.
//!
//! - [`recipe`]: a directory with a Containerfile. [`build`]: its build in an engine.
//! - [`rootfs`], [`machine`]: images without a registry. [`node`]: images that an engine has.
//! - [`http`]: a client for an engine. [`process`], [`packages`]: other programs and their packages.
//! - [`progress`]: output for the person at the terminal.

mod accounts;
mod apt_sources;
mod build;
mod build_output;
mod containerfile;
pub mod http;
mod machine;
mod node;
pub mod packages;
pub mod process;
pub mod progress;
mod recipe;
mod rootfs;
mod sources;

pub use accounts::Accounts;
pub use apt_sources::of_release as apt_sources;
pub use node::{FoundImage, ImageState, load};
pub use recipe::platform;
pub use rootfs::apt_options;

use crate::http::HttpClient;
use anyhow::{Context, Result, bail};
use recipe::Recipe;
use std::path::PathBuf;

/// Recipes of images, and a cache of root file systems and disks.
#[derive(Debug, Clone)]
pub struct Recipes {
    /// The directory with a directory for each recipe.
    pub directory: PathBuf,
    /// Root file systems and disks of virtual machines, for other engines.
    pub cache: PathBuf,
    /// The operator's accounts at registries.
    pub accounts: Accounts,
}

/// The content of an image.
#[derive(Debug, Clone)]
pub struct RootFileSystem {
    /// A tar file of `/`.
    pub tarball: PathBuf,
    /// Variables of the first process, as NAME=VALUE.
    pub environment: Vec<String>,
    /// A hash of the recipe.
    pub hash: String,
}

impl Recipes {
    /// The names of all images except those with CUDA, which only nodes with GPUs need.
    pub fn names(&self) -> Result<Vec<String>> {
        recipe::names(self)
    }

    /// The content of an image that is made from the distribution's packages, for engines that build none.
    pub fn root_file_system(&self, name: &str) -> Result<RootFileSystem> {
        let recipe = Recipe::read(self, name)?;
        if let Some(parent) = recipe.parent()? {
            bail!(
                "{name} is built on {}, in an engine that builds images",
                parent.reference()
            );
        }
        Ok(RootFileSystem {
            tarball: rootfs::tarball(&recipe)?,
            environment: recipe.environment(),
            hash: recipe.hash().to_owned(),
        })
    }

    /// Makes images in the engine, unless it has current ones.
    pub fn ensure(&self, engine: &HttpClient, names: &[impl AsRef<str>]) -> Result<()> {
        names
            .iter()
            .try_for_each(|name| ensure_one(engine, &Recipe::read(self, name.as_ref())?))
    }
}

fn ensure_one(engine: &HttpClient, recipe: &Recipe) -> Result<()> {
    if recipe.state(engine)? == ImageState::Current {
        progress::note(&format!("{} is up to date.", recipe.reference()));
        return Ok(());
    }
    if let Some(parent) = recipe.parent()? {
        ensure_one(engine, &parent)?;
    }
    let title = format!("Making the image {}", recipe.reference());
    progress::timed(&title, || make(engine, recipe)).with_context(|| recipe.reference())
}

fn make(engine: &HttpClient, recipe: &Recipe) -> Result<()> {
    if let Some(base) = recipe.base() {
        let accounts = recipe.accounts();
        if recipe.parent()?.is_some() || build::has(engine, base) {
            return build::run(engine, recipe);
        }
        // A wrong account ends the command: the packages do not stand for a base that it is for.
        if accounts.header(base).is_some() {
            accounts.pull(engine, base)?;
            return build::run(engine, recipe);
        }
        if build::offers(engine, base) {
            return build::run(engine, recipe);
        }
        progress::note(&format!(
            "The engine reaches no registry with {base}; using the distribution's packages."
        ));
    }
    rootfs::import(engine, recipe, &rootfs::tarball(recipe)?)
}
