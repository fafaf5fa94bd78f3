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

/// The part of a world with an optional interface that `node-driver` lacks. The linker merges both into one
/// component.
macro_rules! optional {
    ($module:ident, $inline:tt, $export:tt, $bindings:tt) => {
        pub mod $module {
            wit_bindgen::generate!({
                inline: $inline,
                path: "../../wit/v0.1",
                with: {
                    "wharf:plugin/types@0.1.0": crate::bindings::node_driver::wharf::plugin::types,
                    "wharf:plugin/driver-types@0.1.0": crate::bindings::node_driver::wharf::plugin::driver_types,
                },
                pub_export_macro: true,
                export_macro_name: $export,
                default_bindings_module: $bindings,
            });
        }
    };
}

optional!(
    ports,
    "package wharf:guest; world ports { export wharf:plugin/ports@0.1.0; }",
    "export_ports",
    "wharf_guest::export::ports"
);
optional!(
    identity,
    "package wharf:guest; world identity { export wharf:plugin/identity@0.1.0; }",
    "export_identity",
    "wharf_guest::export::identity"
);
optional!(
    survey,
    "package wharf:guest; world survey { export wharf:plugin/survey@0.1.0; }",
    "export_survey",
    "wharf_guest::export::survey"
);
optional!(
    moves,
    "package wharf:guest; world moves { export wharf:plugin/moves@0.1.0; }",
    "export_moves",
    "wharf_guest::export::moves"
);
optional!(
    content,
    "package wharf:guest; world content { export wharf:plugin/content@0.1.0; }",
    "export_content",
    "wharf_guest::export::content"
);
optional!(
    volumes,
    "package wharf:guest; world volumes { export wharf:plugin/volumes@0.1.0; }",
    "export_volumes",
    "wharf_guest::export::volumes"
);
optional!(
    snapshots,
    "package wharf:guest; world snapshots { export wharf:plugin/snapshots@0.1.0; }",
    "export_snapshots",
    "wharf_guest::export::snapshots"
);

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
