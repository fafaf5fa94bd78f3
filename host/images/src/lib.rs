//! Images of flavors, made from recipes in the engine that will run them.
//!
//! An image has alternatives, such as the image of a registry and the distribution's packages. The first one
//! that can be taken is. The image of virtual machines has no public base; [`machine`] makes its disk.
//!
//! - [`recipe`]: a directory with a Containerfile. [`build`]: its build in an engine.
//! - [`sources`]: the files with the alternatives. [`maker`]: the choice of one. [`current`]: the images that may stay.
//! - [`pull`], [`download`]: images of registries and files. [`record`]: the digests at their first use.
//! - [`rootfs`], [`machine`]: images without a registry. [`node`]: images that an engine has.
//! - [`incus`]: images for Incus. [`http`]: a client for an engine. [`process`], [`packages`]: other programs and their packages.
//! - [`progress`]: output for the person at the terminal.

mod accounts;
mod apt_sources;
mod build;
mod build_output;
mod containerfile;
mod current;
mod download;
mod failure;
pub mod http;
pub mod incus;
mod machine;
mod maker;
mod node;
pub mod packages;
pub mod process;
pub mod progress;
mod pull;
mod recipe;
mod record;
mod rootfs;
mod settings;
mod sources;

pub use accounts::Accounts;
pub use apt_sources::of_release as apt_sources;
pub use maker::{MadeImage, NotTaken};
pub use node::{FoundImage, ImageState, load};
pub use recipe::platform;
pub use rootfs::apt_options;

use crate::http::HttpClient;
use anyhow::{Result, bail};
use maker::Maker;
use recipe::Recipe;
use sources::Sources;
use std::path::PathBuf;

/// Recipes of images with their sources, and a cache of root file systems, disks and downloads.
#[derive(Debug, Clone)]
pub struct Recipes {
    /// The directory with a directory for each recipe, and the file `sources.toml`.
    pub directory: PathBuf,
    /// Root file systems and disks of virtual machines, for other engines, and downloads.
    pub cache: PathBuf,
    /// The operator's accounts at registries.
    pub accounts: Accounts,
    /// The operator's file of sources.
    pub sources: Option<PathBuf>,
    /// The file with the digests of sources at their first use.
    pub recorded: PathBuf,
    /// Whether substitutes are refused.
    pub only_originals: bool,
    /// Whether the sources of the named images are taken as they are now, in place of the recorded ones.
    pub renews: bool,
}

/// The content of an image.
#[derive(Debug)]
pub struct RootFileSystem {
    made: MadeImage,
    /// A tar file of `/`.
    pub tarball: PathBuf,
    /// Variables of the first process, as NAME=VALUE.
    environment: Vec<String>,
}

impl Recipes {
    /// Recipes with the sources in their directory, and with the record in the cache.
    pub fn new(directory: PathBuf, cache: PathBuf) -> Self {
        Self {
            directory,
            recorded: cache.join("recorded.toml"),
            cache,
            accounts: Accounts::default(),
            sources: None,
            only_originals: false,
            renews: false,
        }
    }

    /// The names of all images except those with CUDA, which only nodes with GPUs need.
    pub fn names(&self) -> Result<Vec<String>> {
        recipe::names(self, &Sources::read(self)?)
    }

    /// Those of these names that are images of containers.
    pub fn of_containers(&self, names: &[String]) -> Result<Vec<String>> {
        let sources = Sources::read(self)?;
        let mut all = Vec::new();
        for name in names {
            if !Recipe::read(self, &sources, name)?.has_machine() {
                all.push(name.clone());
            }
        }
        Ok(all)
    }

    /// The content of an image that is made from the distribution's packages, for engines that build none.
    pub fn root_file_system(&self, name: &str) -> Result<RootFileSystem> {
        let recipe = Recipe::read(self, &Sources::read(self)?, name)?;
        if let Some(parent) = recipe.parent()? {
            bail!(
                "{name} is built on {}, in an engine that builds images",
                parent.reference()
            );
        }
        Ok(RootFileSystem {
            tarball: rootfs::tarball(&recipe)?,
            environment: recipe.environment(),
            made: MadeImage::of_packages(name, recipe.hash()),
        })
    }

    /// Makes images in the engine, unless it has current ones. Returns these and the ones below them.
    pub fn ensure(&self, engine: &HttpClient, names: &[impl AsRef<str>]) -> Result<Vec<MadeImage>> {
        let mut maker = Maker::new(engine, self, names)?;
        for name in names {
            maker.ensure(name.as_ref())?;
        }
        Ok(maker.into_made())
    }
}
