//! Logins to containers of the tests.

use crate::container::USER;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use wharf_testkit::process::output;
use wharf_testkit::ssh::{Destination, KeyPair as Pair};

/// A key pair in a directory, which is removed when dropped.
pub struct KeyPair {
    pub directory: PathBuf,
    pub public: String,
    pair: Pair,
}

impl KeyPair {
    pub fn make(directory: &Path) -> Result<Self> {
        let pair = Pair::in_directory(directory)?;
        Ok(Self {
            directory: directory.to_owned(),
            public: pair.public()?,
            pair,
        })
    }

    /// Runs `script` as the container's user, logged in by key.
    pub fn run(&self, port: u16, script: &str) -> Result<String> {
        self.pair.run(at(USER, port), script)
    }

    pub fn run_as(&self, user: &str, port: u16, script: &str) -> Result<String> {
        self.pair.run(at(user, port), script)
    }

    /// Runs `script`, logged in by password.
    pub fn run_with_password(
        &self,
        user: &str,
        port: u16,
        password: &str,
        script: &str,
    ) -> Result<String> {
        self.pair
            .run_with_password(at(user, port), password, script)
    }
}

impl Drop for KeyPair {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn at(user: &str, port: u16) -> Destination<'_> {
    Destination {
        user,
        host: "127.0.0.1",
        port,
    }
}

pub fn wait_for_banner(port: u16) -> Result<()> {
    wharf_testkit::ssh::wait_for_banner("127.0.0.1", port, Duration::from_secs(20))
}

/// The host key of a server.
pub fn host_key(port: u16) -> Result<String> {
    let mut scan = Command::new("ssh-keyscan");
    scan.args(["-t", "ed25519", "-p", &port.to_string(), "127.0.0.1"]);
    output(&mut scan)?
        .split_whitespace()
        .last()
        .map(str::to_owned)
        .context("no host key")
}
