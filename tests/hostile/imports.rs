//! Plugins with forbidden imports: Wharf does not start, and names the plugin and the import.

use crate::fixtures::Plugins;
use wharf_tests::{Ports, Server, simulated_node};

#[test]
fn the_startup_error_names_plugin_and_interface() {
    for (name, import) in [
        ("driver-greedy", "wharf:plugin/secrets@0.1.0"),
        ("driver-greedy", "vendor:devices/raw@1.0.0"),
        ("driver-greedy", "wharf:plugin/log@0.9.0"),
        ("driver-greedy", "wasi:http/outgoing-handler@0.2.0"),
        ("flavors-greedy", "wharf:plugin/engine@0.1.0"),
    ] {
        let plugins = Plugins::none();
        let file = plugins.path().join(format!("{name}.wasm"));
        std::fs::write(file, component_with(import)).unwrap();
        let settings = format!(
            "plugins_dir = \"{}\"\n{}{}",
            plugins.path().display(),
            Ports::take().settings(),
            simulated_node("well", "")
        );
        let Err(error) = Server::start(&settings) else {
            panic!("Wharf accepted {name} with {import}");
        };
        let error = error.to_string();
        let interface = import.split('@').next().unwrap();
        assert!(error.contains(&format!("plugin {name}")), "{error}");
        assert!(error.contains(interface), "{error}");
    }
}

/// `(component (import "NAME" (instance (export "f" (func)))))`
fn component_with(import: &str) -> Vec<u8> {
    let section = |id: u8, content: &[u8]| [&[id, length(content)], content].concat();
    // One type: an instance whose function `f` has no parameters and no result.
    let function = [0x01, 0x40, 0x00, 0x01, 0x00];
    let export = [0x04, 0x00, 0x01, b'f', 0x01, 0x00];
    let types = [&[0x01, 0x42, 0x02][..], &function, &export].concat();
    let name = import.as_bytes();
    let imports = [&[0x01, 0x00, length(name)], name, &[0x05, 0x00]].concat();
    [
        &b"\0asm\x0d\0\x01\0"[..],
        &section(7, &types),
        &section(10, &imports),
    ]
    .concat()
}

/// Numbers below 128 are one byte.
fn length(bytes: &[u8]) -> u8 {
    u8::try_from(bytes.len()).unwrap()
}
