//! The checkout that tests and tools work on.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The variable that names the root of the checkout; `cargo xtask` sets it.
const ROOT: &str = "WHARF_WORKSPACE";
/// A file of the checkout's root.
const MARK: &str = "xtask/Cargo.toml";
/// Prefixes of the variables in which cargo describes the package that it runs.
const PACKAGE: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// The root of the checkout, found when the program runs: checkouts are copied and moved with their
/// `target`.
///
/// It is the directory in `WHARF_WORKSPACE`; else the checkout around the package that cargo tests or
/// runs; else the one around the current directory.
pub fn root() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        let named = env::var_os(ROOT).map(PathBuf::from);
        let package = || env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let current = || env::current_dir().unwrap_or_default();
        named.unwrap_or_else(|| around(&package().unwrap_or_else(current)))
    })
}

/// The nearest checkout at or above `start`; `start` itself where there is none, so that messages name
/// the directory that was searched.
fn around(start: &Path) -> PathBuf {
    let mut directories = start.ancestors();
    let root = directories.find(|directory| directory.join(MARK).is_file());
    root.unwrap_or(start).to_owned()
}

/// Cargo's target directory of this workspace.
pub fn target() -> PathBuf {
    let directory = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root().join(directory)
}

/// The server that `cargo xtask build` makes, or the one that `WHARF_BIN` names.
pub fn wharf_binary() -> PathBuf {
    env::var_os("WHARF_BIN").map_or_else(|| target().join("release/wharf"), PathBuf::from)
}

/// The component of a plugin that only tests load, which `cargo xtask test` builds.
pub fn plugin_of_tests(file: &str) -> PathBuf {
    target()
        .join("plugins/wasm32-wasip2/test-plugin")
        .join(file)
}

/// Cargo in this workspace, without cargo's description of the package that calls this. Build scripts
/// that read such a variable would run again, and everything that depends on them would be compiled
/// again.
pub fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.filter(|name| PACKAGE.iter().any(|prefix| name.starts_with(prefix))) {
        cargo.env_remove(name);
    }
    cargo
}

#[cfg(test)]
mod tests {
    use super::{MARK, around, cargo};
    use std::fs;

    #[test]
    fn the_nearest_checkout_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let package = dir.path().join("copy/tests");
        fs::create_dir_all(&package).unwrap();
        assert_eq!(around(&package), package);
        let root = dir.path().join("copy");
        fs::create_dir(root.join("xtask")).unwrap();
        fs::write(root.join(MARK), "").unwrap();
        assert_eq!(around(&package), root);
    }

    /// Cargo has set these variables for the test itself.
    #[test]
    fn the_package_that_cargo_runs_is_not_passed_on() {
        let cargo = cargo();
        let removed = |name: &str| {
            let mut variables = cargo.get_envs();
            variables.any(|(variable, value)| variable == name && value.is_none())
        };
        assert!(removed("CARGO_PKG_NAME") && removed("CARGO_MANIFEST_DIR") && !removed("PATH"));
    }
}
