//! A clock for one server. The machine's own is untouched.

use crate::{Ports, Server, simulated_node};
use anyhow::{Context, Result};
use std::path::PathBuf;
use tempfile::TempDir;
use wharf_testkit::packages::{Need, ensure as installed};

/// The wall clock of servers with [`Self::environment`].
pub struct FakeClock {
    dir: TempDir,
    library: PathBuf,
}

impl FakeClock {
    /// A clock that is right. Installs the program `faketime` if it is missing, which needs root.
    pub fn new() -> Result<Self> {
        let clock = Self {
            dir: tempfile::tempdir()?,
            library: library()?,
        };
        clock.set("+0")?;
        Ok(clock)
    }

    /// Sets the clock: an offset in seconds, or with a unit such as `-70d`.
    pub fn set(&self, offset: &str) -> Result<()> {
        let new = self.dir.path().join("new");
        std::fs::write(&new, format!("{offset}\n"))?;
        Ok(std::fs::rename(&new, self.offset())?)
    }

    /// Starts a server with these settings and one simulated node under this clock.
    pub fn server(&self, settings: &str) -> Result<Server> {
        let (node, ports) = (simulated_node("one", ""), Ports::take().settings());
        Server::start_in(&format!("{settings}{ports}{node}"), &self.environment())
    }

    /// The environment of a server that sees this clock. The monotonic clocks never change.
    pub fn environment(&self) -> Vec<(String, String)> {
        let path = |path: PathBuf| path.to_string_lossy().into_owned();
        [
            ("LD_PRELOAD", path(self.library.clone())),
            ("FAKETIME_TIMESTAMP_FILE", path(self.offset())),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }

    fn offset(&self) -> PathBuf {
        self.dir.path().join("offset")
    }
}

/// The library of the program `faketime`.
fn library() -> Result<PathBuf> {
    installed(&[Need {
        program: "faketime",
        package: "faketime",
        why: "the tests show Wharf another clock",
    }])?;
    let directories = std::fs::read_dir("/usr/lib")?.filter_map(Result::ok);
    let mut found = directories.map(|d| d.path().join("faketime/libfaketimeMT.so.1"));
    found
        .find(|path| path.is_file())
        .context("libfaketimeMT.so.1")
}
