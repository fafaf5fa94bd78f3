//! Builds of a Containerfile in the engine.

use super::build_output::follow;
use super::download::Downloaded;
use super::recipe::Recipe;
use super::rootfs::percent_encode;
use super::settings::Settings;
use crate::http::{Body, HttpClient, Request};
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::env;
use std::time::Duration;
use tempfile::NamedTempFile;

/// Enough for a large image on a slow machine.
const BUILD_LIMIT: Duration = Duration::from_secs(3600);

/// A build from a Containerfile.
pub(crate) struct Build<'a> {
    pub recipe: &'a Recipe,
    /// The name of the image.
    pub reference: &'a str,
    /// The image in place of the Containerfile's base.
    pub base: &'a str,
    pub labels: Map<String, Value>,
    pub downloads: &'a [Downloaded],
}

impl Build<'_> {
    /// Builds the image.
    pub fn run(self, engine: &HttpClient) -> Result<()> {
        let has_network = engine.send(Request::new("GET", "/networks/bridge"))?.status == 200;
        if has_network {
            return self.run_in(engine, "default");
        }
        // Another process may build, and removes its own.
        let process = std::process::id();
        let name = format!("wharf-build-{process}");
        let network = json!({
            "Name": name,
            "CheckDuplicate": true,
            "Options": {"com.docker.network.bridge.name": format!("whfb{process}")},
        });
        engine.send(Request::new("POST", "/networks/create").json(network))?;
        let built = self.run_in(engine, &name);
        let path = format!("/networks/{name}");
        engine.send(Request::new("DELETE", &path))?;
        built
    }

    fn run_in(self, engine: &HttpClient, network: &str) -> Result<()> {
        let machine = Settings::read()?;
        for download in self.downloads {
            machine.add(download)?;
        }
        let mut arguments = machine.proxies();
        arguments.insert("BASE".to_owned(), self.base.into());
        let path = format!(
            "/build?dockerfile=Containerfile&t={}&networkmode={network}&forcerm=true&labels={}&buildargs={}",
            self.reference,
            percent_encode(&Value::Object(self.labels).to_string()),
            percent_encode(&Value::Object(arguments).to_string()),
        );
        // Downloads are larger than some directories for temporary files.
        let place = if self.downloads.is_empty() {
            &env::temp_dir()
        } else {
            self.recipe.cache()
        };
        let context = NamedTempFile::new_in(place)?;
        self.recipe
            .tar(".", Some(machine.directory()), context.reopen()?)?;
        let body = Body::TarFile(context.path().to_owned());
        let request = Request::new("POST", &path).body(body).timeout(BUILD_LIMIT);
        follow(
            engine,
            request.header(self.recipe.accounts().header_of_builds()),
        )
    }
}
