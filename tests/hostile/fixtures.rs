//! The hostile plugins as components, which `cargo xtask test` builds.

use std::path::Path;
use tempfile::TempDir;

/// A directory with plugins.
pub struct Plugins(TempDir);

impl Plugins {
    /// Creates an empty directory.
    pub fn none() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Creates one with the hostile driver.
    pub fn driver() -> Self {
        let plugins = Self::none();
        plugins.copy("hostile_driver.wasm", "driver-hostile.wasm");
        plugins
    }

    /// Creates one with the hostile driver for Incus.
    pub fn of_incus() -> Self {
        let plugins = Self::none();
        plugins.copy("hostile_incus.wasm", "driver-hostile-incus.wasm");
        plugins
    }

    /// Creates one with the hostile flavors.
    pub fn flavors() -> Self {
        let plugins = Self::none();
        plugins.copy("hostile_flavors.wasm", "flavors-hostile.wasm");
        plugins
    }

    /// Returns the directory.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    fn copy(&self, built: &str, name: &str) {
        let component = wharf_testkit::workspace::plugin_of_tests(built);
        std::fs::copy(component, self.path().join(name)).unwrap();
    }
}
