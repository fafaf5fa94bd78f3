//! A client that a public generator creates from the document, and a program that uses it.

use crate::{python, source};
use std::fs;
use wharf_tests::succeed;

#[test]
fn a_generated_client_creates_lists_and_deletes() {
    let python = python();
    let server = crate::start();
    let ann = server.user("ann@example.com").unwrap();
    let document = ann.get("/api/openapi.json").unwrap().expect(200).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("openapi.json");
    fs::write(&file, document.to_string()).unwrap();
    let mut generate = python.program("openapi-python-client");
    generate.args(["generate", "--meta", "none", "--fail-on-warning"]);
    generate.arg("--config").arg(source("client.yaml"));
    generate.arg("--path");
    generate
        .arg(&file)
        .arg("--output-path")
        .arg(dir.path().join("wharf_client"));
    succeed(&mut generate).unwrap();
    let said = succeed(
        python
            .program("python")
            .arg(source("client.py"))
            .env("PYTHONPATH", dir.path())
            .env("WHARF_URL", server.base_url())
            .env("WHARF_KEY", ann.key()),
    );
    println!("{}", said.unwrap());
    assert!(ann.list().unwrap().is_empty());
    server.finish().unwrap();
}
