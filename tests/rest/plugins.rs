//! Plugins from a directory, beside and in place of the built-in ones.

use crate::running;
use std::fs;
use std::path::{Path, PathBuf};
use wharf_testkit::workspace::root;
use wharf_tests::{Ports, simulated_node};

fn built(component: &str) -> PathBuf {
    root()
        .join("target/plugins/wasm32-wasip2/plugin")
        .join(component)
}

fn settings(dir: &Path, node: &str) -> String {
    format!(
        "plugins_dir = \"{}\"\n{}{node}",
        dir.display(),
        Ports::take().settings()
    )
}

#[test]
fn a_driver_from_the_directory_has_the_name_of_its_file() {
    let dir = tempfile::tempdir().unwrap();
    fs::copy(
        built("driver_simulated.wasm"),
        dir.path().join("driver-mine.wasm"),
    )
    .unwrap();
    let node = simulated_node("one", "").replace("driver = \"simulated\"", "driver = \"mine\"");
    let server = crate::serve(&settings(dir.path(), &node));
    let api = server.user("ann@example.com").unwrap();
    running(&api);
}
