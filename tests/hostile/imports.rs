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
        let text = format!("(component (import \"{import}\" (instance (export \"f\" (func)))))");
        let plugins = Plugins::none();
        let file = plugins.path().join(format!("{name}.wasm"));
        std::fs::write(file, wat::parse_str(text).unwrap()).unwrap();
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
