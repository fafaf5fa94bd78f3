//! A user with an API key, in a file that only its owner can read, and an SSH key pair.

use anyhow::Result;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use wharf_testkit::http::Request;
use wharf_testkit::process::output;
use wharf_testkit::server::Server;
use wharf_testkit::ssh::KeyPair;
use wharf_testkit::{progress, workspace};

const EMAIL: &str = "you@example.org";

/// Invites the user to the console, and returns the link.
pub(super) fn invite(config: &Path) -> Result<String> {
    wharf(&["user", "invite", EMAIL], config)
}

/// Runs a command of the operator's, and returns its output.
pub(super) fn wharf(words: &[&str], config: &Path) -> Result<String> {
    let mut wharf = Command::new(workspace::wharf_binary());
    let output = output(wharf.args(words).arg("--config").arg(config))?;
    Ok(output.trim().to_owned())
}

/// The user who creates instances.
pub(super) struct Account {
    /// The API key.
    pub key: String,
    /// The file of the API key.
    pub key_file: PathBuf,
    /// The key pair for logins.
    pub ssh: KeyPair,
}

impl Account {
    /// Opens the account of an earlier run if its key still works; else makes a new key.
    pub fn open(dir: &Path, config: &Path, server: &Server) -> Result<Self> {
        let key_file = dir.join("api-key");
        let ssh = KeyPair::in_directory(&dir.join("ssh"))?;
        let earlier = fs::read_to_string(&key_file)
            .unwrap_or_default()
            .trim()
            .to_owned();
        let list = Request::new("GET", "/api/instance/").key(&earlier);
        if !earlier.is_empty() && server.client()?.send(list)?.status == 200 {
            return Ok(Self {
                key: earlier,
                key_file,
                ssh,
            });
        }
        progress::step(&format!("Creating the user {EMAIL} and an API key"));
        let key = wharf(&["key", "new", EMAIL], config)?;
        let mut options = fs::OpenOptions::new();
        let file = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&key_file);
        writeln!(file?, "{key}")?;
        progress::note(&format!("The key is in {}.", key_file.display()));
        Ok(Self { key, key_file, ssh })
    }
}
