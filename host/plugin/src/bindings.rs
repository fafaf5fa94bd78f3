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

/// World `node-driver-with-ports`: its additions to `node-driver`.
pub mod with_ports {
    wasmtime::component::bindgen!({
        path: "../../wit/v0.1",
        world: "node-driver-with-ports",
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

/// World `node-driver-with-identity`: its additions to `node-driver`.
pub mod with_identity {
    wasmtime::component::bindgen!({
        path: "../../wit/v0.1",
        world: "node-driver-with-identity",
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

/// World `node-driver-with-survey`: its additions to `node-driver`.
pub mod with_survey {
    wasmtime::component::bindgen!({
        path: "../../wit/v0.1",
        world: "node-driver-with-survey",
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

/// World `node-driver-with-moves`: its additions to `node-driver`.
pub mod with_moves {
    wasmtime::component::bindgen!({
        path: "../../wit/v0.1",
        world: "node-driver-with-moves",
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

/// World `node-driver-with-volumes`: its additions to `node-driver`.
pub mod with_volumes {
    wasmtime::component::bindgen!({
        path: "../../wit/v0.1",
        world: "node-driver-with-volumes",
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
pub use with_identity::NodeDriverWithIdentityPre;
pub use with_moves::NodeDriverWithMovesPre;
pub use with_ports::NodeDriverWithPortsPre;
pub use with_survey::NodeDriverWithSurveyPre;
pub use with_survey::exports::wharf::plugin::survey;
pub use with_volumes::NodeDriverWithVolumesPre;
pub use with_volumes::exports::wharf::plugin::volumes;
