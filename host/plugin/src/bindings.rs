//! Generated from `wit/v0.1`.
#![allow(
    missing_docs,
    unused_qualifications,
    clippy::all,
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "generated code"
)]

/// World `node-driver`, and the types of all worlds.
pub mod node_driver {
    wasmtime::component::bindgen!({
        path: "../../wit/v0.1",
        world: "node-driver",
        imports: { default: async },
        exports: { default: async },
    });
}

/// A world with an optional interface: its additions to `node-driver`.
macro_rules! optional {
    ($module:ident: $world:tt) => {
        #[doc = concat!("World `", $world, "`: its additions to `node-driver`.")]
        pub mod $module {
            wasmtime::component::bindgen!({
                path: "../../wit/v0.1",
                world: $world,
                imports: { default: async },
                exports: { default: async },
                with: {
                    "wharf:plugin/types": super::node_driver::wharf::plugin::types,
                    "wharf:plugin/log": super::node_driver::wharf::plugin::log,
                    "wharf:plugin/engine": super::node_driver::wharf::plugin::engine,
                    "wharf:plugin/driver-types": super::node_driver::wharf::plugin::driver_types,
                },
            });
        }
    };
}

optional!(with_ports: "node-driver-with-ports");
optional!(with_identity: "node-driver-with-identity");
optional!(with_survey: "node-driver-with-survey");
optional!(with_moves: "node-driver-with-moves");
optional!(with_content: "node-driver-with-content");
optional!(with_volumes: "node-driver-with-volumes");
optional!(with_snapshots: "node-driver-with-snapshots");

/// World `flavor-provider`.
pub mod flavor_provider {
    wasmtime::component::bindgen!({
        path: "../../wit/v0.1",
        world: "flavor-provider",
        imports: { default: async },
        exports: { default: async },
        with: {
            "wharf:plugin/types": super::node_driver::wharf::plugin::types,
            "wharf:plugin/log": super::node_driver::wharf::plugin::log,
        },
    });
}

pub use flavor_provider::exports::wharf::plugin::flavors;
pub use flavor_provider::{FlavorProvider, FlavorProviderPre};
pub use node_driver::wharf::plugin::{driver_types, engine, log, types};
pub use node_driver::{NodeDriver, NodeDriverPre};
pub use with_content::NodeDriverWithContentPre;
pub use with_identity::NodeDriverWithIdentityPre;
pub use with_moves::NodeDriverWithMovesPre;
pub use with_ports::NodeDriverWithPortsPre;
pub use with_snapshots::NodeDriverWithSnapshotsPre;
pub use with_snapshots::exports::wharf::plugin::snapshots;
pub use with_survey::NodeDriverWithSurveyPre;
pub use with_survey::exports::wharf::plugin::survey;
pub use with_volumes::NodeDriverWithVolumesPre;
pub use with_volumes::exports::wharf::plugin::volumes;
