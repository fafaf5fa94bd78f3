//! The images of the standard flavors, made from the recipes of the checkout.

use crate::workspace;
use anyhow::Result;
use wharf_images::http::HttpClient;
use wharf_images::{Accounts, Recipes};

/// The recipes of the checkout, with a cache in its target directory.
pub fn recipes() -> Recipes {
    Recipes {
        directory: workspace::root().join("plugins/flavors-standard/images"),
        cache: workspace::target().join("images"),
        accounts: Accounts::default(),
    }
}

/// Makes images in the engine, unless it has current ones.
pub fn ensure(engine: &HttpClient, names: &[impl AsRef<str>]) -> Result<()> {
    recipes().ensure(engine, names)
}
