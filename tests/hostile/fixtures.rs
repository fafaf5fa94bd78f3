//! The hostile plugins, built as components.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

const TARGET: &str = "wasm32-wasip2";
const PACKAGES: [&str; 3] = ["hostile-driver", "hostile-flavors", "hostile-incus"];

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
        std::fs::copy(components().join(built), self.path().join(name)).unwrap();
    }
}

/// Builds the components once and returns their directory.
fn components() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = wharf_testkit::workspace::target().join("plugins");
        let mut cargo = wharf_testkit::workspace::cargo();
        cargo.args(["build", "--quiet", "--locked", "--lib", "--target", TARGET]);
        cargo
            .args(["--profile", "plugin", "--target-dir"])
            .arg(&target);
        for package in PACKAGES {
            cargo.args(["--package", package]);
        }
        assert!(cargo.status().unwrap().success());
        target.join(TARGET).join("plugin")
    })
}
