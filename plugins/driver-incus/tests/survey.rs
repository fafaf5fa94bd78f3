//! The images of a project.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "a survey is about no instance")]
mod sample;

use driver_incus::context::Context;
use driver_incus::survey;
use sample::node;
use serde_json::json;
use wharf_guest::fake::{Host, Http, Sent};
use wharf_guest::{EngineError, Response};

const FILE: &str = include_str!("../requests.toml");

/// An engine that lists images.
struct Images;

impl Http for Images {
    fn send(&self, request: &Sent) -> Result<Response, EngineError> {
        assert_eq!(request.name, "images");
        let image = |names: &[&str], properties| {
            let names = names
                .iter()
                .map(|name| json!({ "name": name, "description": "" }));
            json!({ "aliases": names.collect::<Vec<_>>(), "properties": properties })
        };
        let images = [
            image(
                &["other", "localhost/wharf/rserver:1"],
                json!({ "io.wharf.content": "JupyterLab with R" }),
            ),
            image(&["localhost/wharf/base:1"], json!(null)),
            // The content of an instance that moves.
            json!({ "aliases": null, "properties": { "wharf.content": "wh-1" } }),
        ];
        let body = json!({ "type": "sync", "metadata": images });
        Ok(Response {
            status: 200,
            headers: Vec::new(),
            body: body.to_string().into(),
        })
    }
}

#[test]
fn images_are_known_by_their_names_and_have_contents() {
    let node = node();
    let images = ["base", "rserver", "marimo"].map(|name| format!("localhost/wharf/{name}:1"));
    let host = Host::look(FILE, &node, &images, &Images);
    let found = survey::look(&Context::new(&node, &host).unwrap(), &images).unwrap();
    let [_, rserver, marimo] = images;
    assert_eq!(found.missing_images, [marimo]);
    let contents = found.image_contents.into_iter();
    let contents: Vec<_> = contents.map(|found| (found.image, found.content)).collect();
    assert_eq!(contents, [(rserver, "JupyterLab with R".to_owned())]);
}
