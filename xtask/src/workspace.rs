//! Where things are.

use std::path::{Path, PathBuf};

/// The root of the checkout.
pub fn root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// Cargo's target directory of this workspace.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root().join(directory),
        None => root().join("target"),
    }
}

/// The release binary, after [`crate::build::wharf`]; or the one that `WHARF_BIN` names.
pub fn wharf_binary() -> PathBuf {
    std::env::var_os("WHARF_BIN").map_or_else(|| target().join("release/wharf"), PathBuf::from)
}
