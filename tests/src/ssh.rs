//! Logging in, with the ordinary client.

use crate::until;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A fresh key pair.
pub struct KeyPair {
    dir: TempDir,
    /// The line for `public_key`.
    pub public: String,
}

impl KeyPair {
    /// Makes one.
    pub fn new() -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("wharf-ssh-").tempdir()?;
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"])
            .arg(dir.path().join("key"))
            .status()
            .context("ssh-keygen")?;
        ensure!(made.success(), "ssh-keygen: {made}");
        let public = std::fs::read_to_string(dir.path().join("key.pub"))?;
        Ok(Self {
            public: public.trim().to_owned(),
            dir,
        })
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("key")
    }
}

/// How to log in.
pub enum Login<'a> {
    /// With a key only.
    Key(&'a KeyPair),
    /// With a password only.
    Password(&'a str),
}

impl Login<'_> {
    /// Runs a command inside an instance, given as the interface shows it.
    pub fn run(&self, instance: &Value, command: &str) -> Result<Output> {
        let shown = instance["ssh_command"].as_str().context("no ssh_command")?;
        let user_at = shown
            .split_whitespace()
            .last()
            .context("empty ssh_command")?;
        self.run_as(instance, user_at, command)
    }

    /// The same as another user: `root@HOST`.
    pub fn run_as(&self, instance: &Value, user_at: &str, command: &str) -> Result<Output> {
        let port = instance["wan_ssh_port"].to_string();
        let mut ssh = match self {
            Self::Key(pair) => {
                let mut ssh = Command::new("ssh");
                ssh.args(["-o", "BatchMode=yes", "-i"]).arg(pair.path());
                ssh
            }
            Self::Password(password) => {
                let mut ssh = Command::new("sshpass");
                // Through the environment: an argument would show in the process list.
                ssh.env("SSHPASS", password).args(["-e", "ssh"]);
                ssh.args(["-o", "PubkeyAuthentication=no"]);
                ssh.args(["-o", "NumberOfPasswordPrompts=1"]);
                ssh
            }
        };
        ssh.args(["-o", "StrictHostKeyChecking=no"])
            .args(["-o", "UserKnownHostsFile=/dev/null"])
            .args(["-o", "LogLevel=ERROR", "-o", "ConnectTimeout=10"])
            .args(["-p", &port, user_at, command])
            .output()
            .context("ssh")
    }

    /// Waits for the first login after a restart, whose answer does not wait as long for a slow boot.
    pub fn comes_back(&self, instance: &Value) -> Result<()> {
        until("a login after the restart", || {
            Ok(self.run(instance, "true")?.status.success().then_some(()))
        })
    }

    /// The standard output of a command that must succeed.
    pub fn output(&self, instance: &Value, command: &str) -> Result<String> {
        let output = self.run(instance, command)?;
        ensure!(
            output.status.success(),
            "`{command}`: {}: {}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}
