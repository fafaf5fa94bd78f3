//! What `cargo xtask` runs: builds `xtask`, and becomes it.
//!
//! Cargo gives libraries the features that the selected packages want. `cargo run` selects one, so for
//! `xtask` by itself it compiles 43 libraries another time than for the server and the tests, two
//! minutes of two cores. `cargo build` can select all.

use std::convert::Infallible;
use std::env;
use std::io::{Error, Result};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let Err(error) = launch();
    eprintln!("error: xtask does not start: {error}");
    ExitCode::FAILURE
}

fn launch() -> Result<Infallible> {
    // Both are built into the same directory.
    let xtask = env::current_exe()?.with_file_name("xtask");
    let mut build = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--release", "--workspace", "--bin", "xtask"]);
    build.arg("--manifest-path").arg(MANIFEST);
    // The first time takes minutes, in which there should be something to see.
    if xtask.exists() {
        build.arg("--quiet");
    }
    if !without_package(&mut build).status()?.success() {
        return Err(Error::other("it cannot be built"));
    }
    let mut started = Command::new(&xtask);
    let why = without_package(started.args(env::args_os().skip(1))).exec();
    Err(Error::other(format!("{}: {why}", xtask.display())))
}

/// Without what cargo says of the package that it runs: build scripts that look at it would run again
/// for each package from which cargo is called, and all that depends on them be compiled again.
fn without_package(command: &mut Command) -> &mut Command {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.filter(|name| PACKAGE.iter().any(|prefix| name.starts_with(prefix))) {
        command.env_remove(name);
    }
    command
}

/// How the names of these variables begin.
const PACKAGE: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];
/// Of a package in this workspace, wherever the command is given.
const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");

#[cfg(test)]
mod tests {
    use super::without_package;
    use std::process::Command;

    /// Cargo has set these for the test itself.
    #[test]
    fn what_cargo_says_of_the_package_that_it_runs_is_not_passed_on() {
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
}
