//! Builds of the workspace, all in release.

use crate::process::{run, step};
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

const WASM_TARGET: &str = "wasm32-wasip2";
const PLUGINS_OF_TESTS: [&str; 3] = ["faulty-driver", "hostile-driver", "hostile-flavors"];

/// Builds the server, with its plugins embedded.
pub fn wharf(workspace: &Workspace) -> Result<()> {
    step("Building wharf (release)", || {
        binaries(workspace, &["wharf"])
    })
}

/// Builds the plugins that only tests load.
pub fn plugins_of_tests(workspace: &Workspace) -> Result<()> {
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--locked", "--lib", "--target", WASM_TARGET]);
    cargo
        .args(["--profile", "test-plugin", "--target-dir"])
        .arg(workspace.target().join("plugins"));
    for package in PLUGINS_OF_TESTS {
        cargo.args(["--package", package]);
    }
    run(&mut cargo)
}

/// Builds programs of the workspace.
///
/// The whole workspace is selected: cargo gives a library the features that the selected packages
/// want, and would compile it again for each other selection.
pub fn binaries(workspace: &Workspace, names: &[&str]) -> Result<()> {
    ensure_wasm_target(workspace)?;
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--release", "--locked", "--workspace"]);
    for name in names {
        cargo.args(["--bin", name]);
    }
    run(&mut cargo)?;
    if names.contains(&"wharf") {
        precompile(workspace)
    } else {
        Ok(())
    }
}

/// Lets the server compile its plugins into `target/lib`, where it finds them at a start, and links the recipes
/// of images to where `wharf images` looks for them.
pub fn precompile(workspace: &Workspace) -> Result<()> {
    let recipes = workspace.root().join("plugins/flavors-standard/images");
    link(&recipes, &workspace.target().join("share/wharf/images"))?;
    let wharf = workspace.binary("wharf");
    let plugins = wharf.with_file_name("../lib/wharf/plugins");
    run(Command::new(&wharf)
        .args(["plugin", "precompile"])
        .arg(plugins))
}

/// Makes a symbolic link, also in place of one of an earlier place of the checkout.
fn link(directory: &Path, at: &Path) -> Result<()> {
    if fs::read_link(at).is_ok_and(|earlier| earlier == directory) {
        return Ok(());
    }
    let make = || -> std::io::Result<()> {
        at.parent().map_or(Ok(()), fs::create_dir_all)?;
        if at.is_symlink() {
            fs::remove_file(at)?;
        }
        symlink(directory, at)
    };
    make().with_context(|| format!("cannot link {}", at.display()))
}

/// Installs the target that the plugins are compiled for, where rustup does not do it by itself.
pub fn ensure_wasm_target(workspace: &Workspace) -> Result<()> {
    let output = Command::new("rustc")
        .current_dir(workspace.root())
        .args(["--print", "target-libdir", "--target", WASM_TARGET])
        .output()
        .context("cannot run rustc; install Rust with rustup")?;
    let directory = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && Path::new(directory.trim()).is_dir() {
        return Ok(());
    }
    step(&format!("Installing the Rust target {WASM_TARGET}"), || {
        run(Command::new("rustup").current_dir(workspace.root()).args([
            "target",
            "add",
            WASM_TARGET,
        ]))
        .context("the plugins need this target")
    })
}

#[cfg(test)]
mod tests {
    use super::link;
    use std::fs;

    #[test]
    fn a_link_follows_the_checkout() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().join("share/images");
        for checkout in ["one", "one", "two"] {
            let checkout = directory.path().join(checkout);
            link(&checkout, &at).unwrap();
            assert_eq!(fs::read_link(&at).unwrap(), checkout);
        }
    }
}
