//! A user, an API key in a file that only its owner reads, and an SSH key pair.

use crate::http::Request;
use crate::process::output;
use crate::server::Server;
use crate::ssh::KeyPair;
use crate::{say, workspace};
use anyhow::{Context, Result};
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const EMAIL: &str = "you@example.org";

/// Who asks for instances.
pub(super) struct Account {
    /// The API key.
    pub key: String,
    /// Where it is kept.
    pub key_file: PathBuf,
    /// For logging in.
    pub ssh: KeyPair,
}

impl Account {
    /// The one of an earlier run if its key is still good, else a new key.
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
        say::step(&format!("Making the user {EMAIL} and an API key"));
        let mut wharf = Command::new(workspace::wharf_binary());
        wharf.args(["key", "new", EMAIL, "--config"]).arg(config);
        let key = output(&mut wharf)
            .context("wharf key new")?
            .trim()
            .to_owned();
        let mut options = fs::OpenOptions::new();
        let file = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&key_file);
        writeln!(file?, "{key}")?;
        say::note(&format!("The key is in {}.", key_file.display()));
        Ok(Self { key, key_file, ssh })
    }
}
