//! The library's SSH client, for containers of the test.

use crate::container::USER;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use xtask::process::output;
use xtask::ssh::{Destination, KeyPair as Pair};

/// A user's key, and a directory for what goes with it; removed when dropped.
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

    /// Runs `script` in the instance as its user, logged in by key.
    pub fn run(&self, port: u16, script: &str) -> Result<String> {
        self.pair.run(at(USER, port), script)
    }

    pub fn run_as(&self, user: &str, port: u16, script: &str) -> Result<String> {
        self.pair.run(at(user, port), script)
    }

    /// The same by password.
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
    xtask::ssh::wait_for_banner("127.0.0.1", port, Duration::from_secs(20))
}

/// The host key that a server shows.
pub fn host_key(port: u16) -> Result<String> {
    let mut scan = Command::new("ssh-keyscan");
    scan.args(["-t", "ed25519", "-p", &port.to_string(), "127.0.0.1"]);
    output(&mut scan)?
        .split_whitespace()
        .last()
        .map(str::to_owned)
        .context("no host key")
}
