//! Builds of a Containerfile in the engine.

use super::build_output::follow;
use super::recipe::{INPUTS_LABEL, Recipe};
use super::rootfs::percent_encode;
use super::sources::Settings;
use crate::http::{Body, HttpClient, Request};
use anyhow::Result;
use serde_json::{Value, json};
use std::time::Duration;

/// The timeout of a query to a registry; without a network, name resolution may hang.
const QUERY_LIMIT: Duration = Duration::from_secs(8);
/// Enough for a large image on a slow machine.
const BUILD_LIMIT: Duration = Duration::from_secs(3600);
/// The network of builds, in engines that have no default one.
const BUILD_NETWORK: &str = "wharf-build";

/// Whether the engine has the image.
pub(crate) fn has(engine: &HttpClient, image: &str) -> bool {
    answers(engine, &format!("/images/{image}/json"))
}

/// Whether a registry that the engine reaches has the image.
pub(crate) fn offers(engine: &HttpClient, image: &str) -> bool {
    answers(engine, &format!("/distribution/{image}/json"))
}

fn answers(engine: &HttpClient, path: &str) -> bool {
    let answer = engine.send(Request::new("GET", path).timeout(QUERY_LIMIT));
    answer.is_ok_and(|response| response.status == 200)
}

/// Builds the image from its Containerfile.
pub(crate) fn run(engine: &HttpClient, recipe: &Recipe) -> Result<()> {
    let has_network = engine.send(Request::new("GET", "/networks/bridge"))?.status == 200;
    if has_network {
        return run_in(engine, recipe, "default");
    }
    let network = json!({
        "Name": BUILD_NETWORK,
        "CheckDuplicate": true,
        "Options": {"com.docker.network.bridge.name": "whfbuild"},
    });
    engine.send(Request::new("POST", "/networks/create").json(network))?;
    let built = run_in(engine, recipe, BUILD_NETWORK);
    let path = format!("/networks/{BUILD_NETWORK}");
    engine.send(Request::new("DELETE", &path))?;
    built
}

fn run_in(engine: &HttpClient, recipe: &Recipe, network: &str) -> Result<()> {
    let machine = Settings::read()?;
    let mut arguments = machine.proxies();
    arguments.extend(recipe.base().map(|base| ("BASE".to_owned(), base.into())));
    let labels = json!({ INPUTS_LABEL: recipe.hash() }).to_string();
    let path = format!(
        "/build?dockerfile=Containerfile&t={}&networkmode={network}&forcerm=true&labels={}&buildargs={}",
        recipe.reference(),
        percent_encode(&labels),
        percent_encode(&Value::Object(arguments).to_string()),
    );
    let body = Body::Tar(recipe.tar_with(".", Some(machine.directory()))?);
    let request = Request::new("POST", &path).body(body).timeout(BUILD_LIMIT);
    follow(engine, request.header(recipe.accounts().header_of_builds()))
}
