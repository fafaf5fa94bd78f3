//! The images of the standard flavors, made from the recipes of the checkout.

use crate::workspace;
use anyhow::Result;
use wharf_images::Recipes;
use wharf_images::http::HttpClient;
use wharf_images::incus::IncusProject;

/// The recipes of the checkout, with a cache in its target directory.
pub fn recipes() -> Recipes {
    let directory = workspace::root().join("plugins/flavors-standard/images");
    Recipes::new(directory, workspace::target().join("images"))
}

/// Makes images in the engine, unless it has current ones.
pub fn ensure(engine: &HttpClient, names: &[impl AsRef<str>]) -> Result<()> {
    recipes().ensure(engine, names).map(drop)
}

/// Makes images in a project of an Incus, unless it has current ones. A dockerd builds those that are built on others.
pub fn ensure_on_incus(
    client: &HttpClient,
    project: &str,
    names: &[impl AsRef<str>],
    builder: Option<&HttpClient>,
) -> Result<()> {
    let project = IncusProject {
        client: client.clone(),
        name: project.to_owned(),
    };
    project.ensure(&recipes(), names, builder).map(drop)
}
