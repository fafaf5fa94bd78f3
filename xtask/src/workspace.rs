//! The checkout that a task works on.

use anyhow::{Context, Result};
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Prefixes of the variables in which cargo describes the package that it runs.
const PACKAGE: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// A checkout of the project.
#[derive(Debug, PartialEq, Eq)]
pub struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// Finds the checkout of the package that cargo runs; without cargo, the one around the current
    /// directory. No path is compiled in, because checkouts are copied and moved with their `target`.
    pub fn find() -> Result<Self> {
        let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let start = package.map_or_else(env::current_dir, Ok)?;
        Self::around(&start)
    }

    fn around(start: &Path) -> Result<Self> {
        let mut directories = start.ancestors();
        let root = directories.find(|directory| directory.join("xtask/Cargo.toml").is_file());
        let root = root.with_context(|| format!("{} is in no checkout", start.display()))?;
        Ok(Self {
            root: root.to_owned(),
        })
    }

    /// The top directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Cargo's target directory.
    pub fn target(&self) -> PathBuf {
        let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
        self.root.join(target)
    }

    /// A program in the target directory.
    pub fn binary(&self, name: &str) -> PathBuf {
        self.target().join("release").join(name)
    }

    /// Cargo in this workspace.
    pub fn cargo(&self) -> Command {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut cargo = Command::new(cargo);
        without_package(cargo.current_dir(&self.root));
        cargo
    }
}

/// Removes cargo's description of this package. Build scripts that read such a variable would run
/// again, and everything that depends on them would be compiled again.
pub fn without_package(command: &mut Command) -> &mut Command {
    let is_package = |name: &OsString| {
        let name = name.to_string_lossy();
        PACKAGE.iter().any(|prefix| name.starts_with(prefix))
    };
    for (name, _) in env::vars_os().filter(|(name, _)| is_package(name)) {
        command.env_remove(name);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::{Workspace, without_package};
    use std::fs;
    use std::process::Command;

    /// Cargo has set these variables for the test itself.
    #[test]
    fn the_package_that_cargo_runs_is_not_passed_on() {
        let mut command = Command::new("true");
        let removed: Vec<_> = without_package(&mut command)
            .get_envs()
            .filter_map(|(name, value)| value.is_none().then_some(name))
            .collect();
        for name in ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR"] {
            assert!(removed.iter().any(|removed| *removed == name), "{name}");
        }
        assert!(removed.iter().all(|name| *name != "PATH"));
    }

    #[test]
    fn the_nearest_checkout_around_a_directory_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("checkout");
        let inside = root.join("host/src");
        fs::create_dir_all(&inside).unwrap();
        assert!(Workspace::around(&inside).is_err());
        fs::create_dir(root.join("xtask")).unwrap();
        fs::write(root.join("xtask/Cargo.toml"), "").unwrap();
        for start in [&inside, &root, &root.join("xtask")] {
            assert_eq!(Workspace::around(start).unwrap().root(), root);
        }
    }
}
