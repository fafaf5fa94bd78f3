//! The approval of a driver's request file by its hash.

use crate::celld::{Celld, REQUESTS, hash, is_possible};
use std::fs;
use wharf_tests::Server;

/// Starts a server with a `[plugins]` table, and returns the error.
fn refused(celld: &Celld, plugins: &str) -> String {
    let settings = format!(
        "plugins_dir = \"{}\"\n[plugins]\n{plugins}{}",
        celld.plugins().display(),
        celld.node()
    );
    Server::refused(&settings).unwrap()
}

#[test]
fn a_request_file_needs_its_hash() {
    if !is_possible() {
        return;
    }
    let celld = Celld::start();
    let plugins = celld.plugins();
    let file = plugins.join(REQUESTS);
    let right = hash(&file);
    let error = refused(&celld, "");
    assert!(error.contains(REQUESTS), "{error}");
    assert!(error.contains(&right), "{error}");
    let other = format!(
        "\"driver-cells.wasm\" = \"{}\"\n\"{REQUESTS}\" = \"sha256:{}\"\n",
        hash(&plugins.join("driver-cells.wasm")),
        "0".repeat(64)
    );
    let error = refused(&celld, &other);
    assert!(error.contains(&right), "{error}");
    // Without the file, the driver has no requests.
    fs::remove_file(file).unwrap();
    let settings = format!("plugins_dir = \"{}\"\n{}", plugins.display(), celld.node());
    let Err(error) = Server::start(&settings) else {
        panic!("Wharf started without the file");
    };
    let error = format!("{error:#}");
    assert!(
        error.contains("no request file for \"cells\" engines"),
        "{error}"
    );
}
