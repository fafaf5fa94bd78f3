//! `cargo xtask images`: makes images in an engine.

use super::nodes;
use anyhow::Result;
use wharf_testkit::engine::PrivateEngine;
use wharf_testkit::http::{Endpoint, HttpClient};
use wharf_testkit::{images, workspace};

/// Makes the named images, or the base image, in a project of the Incus at `endpoint`. Images that are
/// built on others are built in the engine of `up`, because Incus builds none.
pub(super) fn run_incus(mut names: Vec<String>, endpoint: &str, project: &str) -> Result<()> {
    if names.is_empty() {
        names = vec!["base".to_owned()];
    }
    let client = HttpClient::new(Endpoint::parse(endpoint)?);
    if names == ["base"] {
        return images::ensure_on_incus(&client, project, &names, None);
    }
    let engine = PrivateEngine::start(nodes::engine_options(&workspace::root().join(".wharf"))?)?;
    images::ensure_on_incus(&client, project, &names, Some(&engine.client()))?;
    engine.stop()
}

/// Makes the named images, or all, in the engine at `endpoint` or else in that of `up`.
pub(super) fn run(mut names: Vec<String>, endpoint: Option<&str>) -> Result<()> {
    if names.is_empty() {
        names = images::recipes().names()?;
    }
    if let Some(endpoint) = endpoint {
        return images::ensure(&HttpClient::new(Endpoint::parse(endpoint)?), &names);
    }
    let options = nodes::engine_options(&workspace::root().join(".wharf"))?;
    let engine = PrivateEngine::start(options)?;
    images::ensure(&engine.client(), &names)?;
    engine.stop()
}
