//! The hostile plugins as components, which `cargo xtask test` builds.

use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use wharf_testkit::workspace::root;
use wharf_tests::succeed;

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

    /// Creates one with the hostile flavors.
    pub fn flavors() -> Self {
        let plugins = Self::none();
        plugins.add_flavors();
        plugins
    }

    /// Adds the hostile flavors.
    pub fn add_flavors(&self) {
        self.copy("hostile_flavors.wasm", "flavors-hostile.wasm");
    }

    /// Returns the directory.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Gives the hostile driver the request file of another driver, and returns the table of the
    /// configuration that approves it.
    pub fn with_requests_of(&self, driver: &str) -> String {
        const NAME: &str = "driver-hostile.requests.toml";
        let file = format!("plugins/driver-{driver}/requests.toml");
        let file = std::fs::read_to_string(root().join(file)).unwrap();
        let kind = format!("kind = \"{driver}\"");
        assert!(file.contains(&kind));
        let path = self.path().join(NAME);
        std::fs::write(&path, file.replacen(&kind, "kind = \"docker\"", 1)).unwrap();
        let hash = succeed(Command::new("sha256sum").arg(path)).unwrap();
        let hash = hash.split(' ').next().unwrap();
        format!("[plugins]\n\"{NAME}\" = \"sha256:{hash}\"\n")
    }

    fn copy(&self, built: &str, name: &str) {
        let component = wharf_testkit::workspace::plugin_of_tests(built);
        std::fs::copy(component, self.path().join(name)).unwrap();
    }
}
