//! Loading: accepted and refused plugins, and the cache.

use crate::{Scratch, faults};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use wasmtime::Engine;
use wasmtime::component::Component;
use wharf_domain::ids::NodeId;
use wharf_plugin::{
    CallLimits, DriverNodeConfig, EMBEDDED, LoadError, NodeLimits, OwnFlavor, Plugins,
    PluginsConfig,
};

#[tokio::test]
async fn compiled_plugins_are_kept_and_damage_is_seen() {
    let scratch = Scratch::new();
    let files = || {
        let mut files: Vec<_> = std::fs::read_dir(scratch.0.join("cache"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        files
    };
    Plugins::load(scratch.without_shipped(CallLimits::default()))
        .await
        .unwrap();
    let kept = files();
    assert_eq!(kept.len(), EMBEDDED.len());
    assert_eq!(
        std::fs::metadata(scratch.0.join("cache"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o700
    );
    let mut damaged = std::fs::read(&kept[0]).unwrap();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    std::fs::write(&kept[0], damaged).unwrap();
    std::fs::write(&kept[1], "short").unwrap();
    Plugins::load(scratch.without_shipped(CallLimits::default()))
        .await
        .unwrap();
    assert_eq!(files(), kept);
}

#[tokio::test]
async fn a_directory_that_others_can_write_to_is_not_used() {
    let scratch = Scratch::new();
    let cache = scratch.0.join("cache");
    std::fs::create_dir(&cache).unwrap();
    std::fs::write(cache.join("something"), "x").unwrap();
    std::fs::set_permissions(&cache, std::fs::Permissions::from_mode(0o777)).unwrap();
    Plugins::load(scratch.without_shipped(CallLimits::default()))
        .await
        .unwrap();
    assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 1);
}

async fn refusal(scratch: &Scratch) -> LoadError {
    Plugins::load(scratch.config(CallLimits::default()))
        .await
        .unwrap_err()
}

#[tokio::test]
async fn what_does_not_fit_is_named() {
    let scratch = Scratch::new();
    let file = |name: &str| scratch.0.join("plugins").join(name);
    std::fs::write(file("something.wasm"), "").unwrap();
    assert!(
        matches!(refusal(&scratch).await, LoadError::Name { name } if name == "something.wasm")
    );
    std::fs::remove_file(file("something.wasm")).unwrap();

    std::fs::write(file("driver-x.wasm"), "no component").unwrap();
    assert!(
        matches!(refusal(&scratch).await, LoadError::Component { plugin, .. } if plugin == "driver-x")
    );
    std::fs::remove_file(file("driver-x.wasm")).unwrap();

    // A driver in a provider's place asks for the engine.
    std::fs::copy(faults::component(), file("flavors-x.wasm")).unwrap();
    let error = refusal(&scratch).await;
    assert!(matches!(&error, LoadError::Import { .. }), "{error}");
    assert!(error.to_string().contains("wharf:plugin/"), "{error}");
    std::fs::remove_file(file("flavors-x.wasm")).unwrap();

    // A provider in a driver's place offers no driver.
    let flavors = flavors_of_the_program();
    std::fs::write(file("driver-x.wasm"), flavors).unwrap();
    let error = refusal(&scratch).await;
    assert!(
        matches!(
            &error,
            LoadError::Export {
                interface: "wharf:plugin/driver",
                ..
            }
        ),
        "{error}"
    );
    std::fs::remove_file(file("driver-x.wasm")).unwrap();

    std::fs::write(file("flavors-again.wasm"), flavors).unwrap();
    assert!(matches!(
        refusal(&scratch).await,
        LoadError::DuplicateFlavor { .. }
    ));
}

#[tokio::test]
async fn a_node_that_does_not_fit_is_named() {
    let scratch = Scratch::new();
    let plugins = Plugins::load(scratch.config(CallLimits::default()))
        .await
        .unwrap();
    let open = |driver: &str, endpoint: &str, settings: Value| {
        let transport = crate::transport(endpoint, &settings).unwrap();
        let config = DriverNodeConfig {
            name: NodeId("n1".into()),
            driver: driver.into(),
            installation: "home".into(),
            transport,
            settings,
            limits: NodeLimits::default(),
        };
        let error = plugins.node(config).map(|_| ()).unwrap_err();
        let cause = std::error::Error::source(&error);
        format!(
            "{error}: {}",
            cause.map(ToString::to_string).unwrap_or_default()
        )
    };
    for (error, names) in [
        (open("none", "unix:///x", json!({})), "\"none\""),
        (open("docker", "simulated:", json!({})), "endpoint"),
        (open("simulated", "unix:///x", json!({})), "endpoint"),
        (
            open("docker", "unix:///x", json!({ "pids_limit": "many" })),
            "pids_limit",
        ),
    ] {
        assert!(error.contains("\"n1\"") && error.contains(names), "{error}");
    }
}

#[tokio::test]
async fn images_of_installed_plugins_are_not_trusted() {
    let scratch = Scratch::new();
    let plugins = Plugins::load(scratch.config(CallLimits::default()))
        .await
        .unwrap();
    let mut flavor = (*plugins.flavors()[0]).clone();
    "tools".clone_into(&mut flavor.name);
    let own = OwnFlavor {
        flavor,
        image: "localhost/team/tools:1".to_owned(),
        ssh: true,
        web: None,
        command: Vec::new(),
    };
    let config = || PluginsConfig {
        flavors: vec![own.clone()],
        ..scratch.config(CallLimits::default())
    };
    let trusted = |plugins: &Plugins| {
        let names = ["base", "tools", "none"];
        names.map(|name| plugins.has_trusted_images(name))
    };
    let plugins = Plugins::load(config()).await.unwrap();
    assert_eq!(trusted(&plugins), [true, true, false]);
    // Another component of this name, as an empty section of its own makes one, takes the program's place.
    let mut other = flavors_of_the_program().to_vec();
    other.extend([0, 2, 1, b'x']);
    std::fs::write(scratch.0.join("plugins/flavors-standard.wasm"), other).unwrap();
    let plugins = Plugins::load(config()).await.unwrap();
    assert_eq!(trusted(&plugins), [false, true, false]);
}

fn flavors_of_the_program() -> &'static [u8] {
    let mut embedded = EMBEDDED.iter();
    let found = embedded.find(|(name, _)| *name == "flavors-standard");
    found.unwrap().1
}

/// The imports of the shipped plugins: their own interfaces, and the part of WASI that Rust's standard
/// library always imports. Without files, sockets, clocks and randomness an answer depends on the
/// arguments alone.
#[test]
fn the_shipped_plugins_import_this_and_no_more() {
    let engine = Engine::default();
    for (name, wasm) in EMBEDDED {
        let component = Component::from_binary(&engine, wasm).unwrap();
        let mut own = Vec::new();
        for (import, _) in component.component_type().imports(&engine) {
            match import.strip_prefix("wharf:plugin/") {
                Some(interface) => own.push(interface.to_owned()),
                None => assert!(
                    import.starts_with("wasi:cli/") || import.starts_with("wasi:io/"),
                    "{name} imports {import}"
                ),
            }
        }
        own.sort();
        let driver = [
            "driver-types@0.1.0",
            "engine@0.1.0",
            "log@0.1.0",
            "types@0.1.0",
        ];
        match *name {
            "driver-docker" | "driver-incus" => assert_eq!(own, driver),
            "driver-simulated" => {
                assert_eq!(own, ["driver-types@0.1.0", "engine@0.1.0", "types@0.1.0"]);
            }
            _ => assert_eq!(own, ["types@0.1.0"]),
        }
    }
}
