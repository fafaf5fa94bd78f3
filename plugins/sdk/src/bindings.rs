//! The generated bindings of all worlds.
//!
//! All worlds use the types of `node_driver`, so that helpers and traits share one `Error` and one
//! `Blueprint`.

#![expect(missing_docs, reason = "generated from the documented WIT")]
#![allow(
    unsafe_code,
    clippy::all,
    clippy::pedantic,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "generated code, and only on the wasm target"
)]

/// Bindings of the world `node-driver`.
pub mod node_driver {
    wit_bindgen::generate!({
        path: "../../wit/v0.1",
        world: "node-driver",
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_node_driver",
        default_bindings_module: "wharf_guest::export::node_driver",
    });
}

/// The part of the world `node-driver-with-ports` that `node-driver` lacks. The linker merges both
/// into one component.
pub mod ports {
    wit_bindgen::generate!({
        inline: "package wharf:guest; world ports { export wharf:plugin/ports@0.1.0; }",
        path: "../../wit/v0.1",
        with: {
            "wharf:plugin/types@0.1.0": crate::bindings::node_driver::wharf::plugin::types,
            "wharf:plugin/driver-types@0.1.0": crate::bindings::node_driver::wharf::plugin::driver_types,
        },
        pub_export_macro: true,
        export_macro_name: "export_ports",
        default_bindings_module: "wharf_guest::export::ports",
    });
}

/// The part of the world `node-driver-with-identity` that `node-driver` lacks.
pub mod identity {
    wit_bindgen::generate!({
        inline: "package wharf:guest; world identity { export wharf:plugin/identity@0.1.0; }",
        path: "../../wit/v0.1",
        with: {
            "wharf:plugin/types@0.1.0": crate::bindings::node_driver::wharf::plugin::types,
            "wharf:plugin/driver-types@0.1.0": crate::bindings::node_driver::wharf::plugin::driver_types,
        },
        pub_export_macro: true,
        export_macro_name: "export_identity",
        default_bindings_module: "wharf_guest::export::identity",
    });
}

/// The part of the world `node-driver-with-survey` that `node-driver` lacks.
pub mod survey {
    wit_bindgen::generate!({
        inline: "package wharf:guest; world survey { export wharf:plugin/survey@0.1.0; }",
        path: "../../wit/v0.1",
        with: {
            "wharf:plugin/types@0.1.0": crate::bindings::node_driver::wharf::plugin::types,
            "wharf:plugin/driver-types@0.1.0": crate::bindings::node_driver::wharf::plugin::driver_types,
        },
        pub_export_macro: true,
        export_macro_name: "export_survey",
        default_bindings_module: "wharf_guest::export::survey",
    });
}

/// The part of the world `node-driver-with-moves` that `node-driver` lacks.
pub mod moves {
    wit_bindgen::generate!({
        inline: "package wharf:guest; world moves { export wharf:plugin/moves@0.1.0; }",
        path: "../../wit/v0.1",
        with: {
            "wharf:plugin/types@0.1.0": crate::bindings::node_driver::wharf::plugin::types,
            "wharf:plugin/driver-types@0.1.0": crate::bindings::node_driver::wharf::plugin::driver_types,
        },
        pub_export_macro: true,
        export_macro_name: "export_moves",
        default_bindings_module: "wharf_guest::export::moves",
    });
}

/// The part of the world `node-driver-with-volumes` that `node-driver` lacks.
pub mod volumes {
    wit_bindgen::generate!({
        inline: "package wharf:guest; world volumes { export wharf:plugin/volumes@0.1.0; }",
        path: "../../wit/v0.1",
        with: {
            "wharf:plugin/types@0.1.0": crate::bindings::node_driver::wharf::plugin::types,
            "wharf:plugin/driver-types@0.1.0": crate::bindings::node_driver::wharf::plugin::driver_types,
        },
        pub_export_macro: true,
        export_macro_name: "export_volumes",
        default_bindings_module: "wharf_guest::export::volumes",
    });
}

/// Bindings of the world `flavor-provider`.
pub mod flavor_provider {
    wit_bindgen::generate!({
        path: "../../wit/v0.1",
        world: "flavor-provider",
        with: {
            "wharf:plugin/types@0.1.0": crate::bindings::node_driver::wharf::plugin::types,
            "wharf:plugin/log@0.1.0": crate::bindings::node_driver::wharf::plugin::log,
        },
        pub_export_macro: true,
        export_macro_name: "export_flavor_provider",
        default_bindings_module: "wharf_guest::export::flavor_provider",
    });
}
