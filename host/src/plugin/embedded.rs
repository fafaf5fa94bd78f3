//! The plugins in the binary.

/// Name and component.
pub const EMBEDDED: &[(&str, &[u8])] = &[
    ("driver-docker", include_bytes!(env!("WHARF_PLUGIN_DOCKER"))),
    (
        "driver-simulated",
        include_bytes!(env!("WHARF_PLUGIN_SIMULATED")),
    ),
    (
        "flavors-standard",
        include_bytes!(env!("WHARF_PLUGIN_FLAVORS")),
    ),
];
