//! Invalid plugins: Wharf does not start, and names the plugin and the reason.

use crate::{built, start};
use std::path::Path;

/// Starts a server with these files as plugins and returns its error.
fn refused(files: &[(&Path, &str)]) -> String {
    let plugins = tempfile::tempdir().unwrap();
    for (component, name) in files {
        std::fs::copy(component, plugins.path().join(name)).unwrap();
    }
    match start(plugins.path()) {
        Ok(_) => panic!("Wharf started with {files:?}"),
        Err(error) => format!("{error:#}"),
    }
}

#[test]
fn two_providers_of_one_flavor_are_both_named() {
    let error = refused(&[
        (built::rust(), "flavors-team.wasm"),
        (built::rust(), "flavors-other.wasm"),
    ]);
    let expected = "flavor \"team\" is offered by both flavors-other and flavors-team";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_name_without_a_kind_is_refused() {
    for name in ["team.wasm", "flavors-.wasm", "flavors-Team.wasm"] {
        let error = refused(&[(built::rust(), name)]);
        let expected = format!("plugins_dir: {name}: a plugin is called driver-NAME.wasm or");
        assert!(error.contains(&expected), "{error}");
    }
}

#[test]
fn a_provider_is_refused_as_a_driver() {
    let error = refused(&[(built::rust(), "driver-team.wasm")]);
    assert!(error.contains("plugin driver-team"), "{error}");
    assert!(error.contains("wharf:plugin/driver"), "{error}");
}

#[test]
fn the_examples_have_the_imports_of_the_readme() {
    let ours = ["wharf:plugin/types@0.1.0", "wharf:plugin/log@0.1.0"];
    let wasi = |name: &str| name.starts_with("wasi:");
    let of_rust = imports(built::rust());
    assert!(
        of_rust
            .iter()
            .all(|name| ours.contains(&name.as_str()) || wasi(name)),
        "{of_rust:?}"
    );
    // With --stub-wasi, no WASI import is left.
    let of_python = imports(built::python());
    assert!(
        of_python.iter().all(|name| ours.contains(&name.as_str())),
        "{of_python:?}"
    );
    assert!(!of_python.is_empty());
}

/// Returns the names of a component's imported interfaces.
fn imports(component: &Path) -> Vec<String> {
    let bytes = std::fs::read(component).unwrap();
    let mut names = Vec::new();
    for payload in wasmparser::Parser::new(0).parse_all(&bytes) {
        match payload.unwrap() {
            // Only the imports of the outermost component.
            wasmparser::Payload::ComponentImportSection(section) if names.is_empty() => {
                for import in section {
                    names.push(import.unwrap().name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    names
}
