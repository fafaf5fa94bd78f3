//! Logins with OpenSSH's client.

use crate::{eventually, until};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;
use tempfile::TempDir;
use wharf_testkit::packages::{self, Need};

/// The exit code of `ssh` itself.
const SSH_FAILED: i32 = 255;
/// The deadline of a login to an emulated machine.
const EMULATED: Duration = Duration::from_secs(300);

/// Installs the programs of logins that are missing.
pub fn install() -> Result<()> {
    packages::ensure(&[
        Need {
            program: "ssh",
            package: "openssh-client",
            why: "the tests log in with it",
        },
        Need {
            program: "sshpass",
            package: "sshpass",
            why: "the tests log in with passwords",
        },
    ])
}

/// A key pair.
pub struct KeyPair {
    dir: TempDir,
    /// The public key, one line.
    pub public: String,
}

impl KeyPair {
    /// Generates a key pair.
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

    /// The file of the private key.
    pub fn path(&self) -> PathBuf {
        self.dir.path().join("key")
    }
}

/// The credential of a login.
pub enum Login<'a> {
    /// A key, and no password.
    Key(&'a KeyPair),
    /// A password, and no key.
    Password(&'a str),
}

impl Login<'_> {
    /// Runs a command in an instance, given as its JSON object.
    pub fn run(&self, instance: &Value, command: &str) -> Result<Output> {
        let shown = instance["ssh_command"].as_str().context("no ssh_command")?;
        let user_at = shown
            .split_whitespace()
            .last()
            .context("empty ssh_command")?;
        self.run_as(instance, user_at, command)
    }

    /// Runs a command as another user, `root@HOST`.
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
                // The password is in the environment, because the arguments of a process are
                // public.
                ssh.env("SSHPASS", password).args(["-e", "ssh"]);
                ssh.args(["-o", "PubkeyAuthentication=no"]);
                ssh.args(["-o", "NumberOfPasswordPrompts=1"]);
                ssh
            }
        };
        ssh.args(["-o", "StrictHostKeyChecking=no"])
            .args(["-o", "UserKnownHostsFile=/dev/null"])
            .args(["-o", "LogLevel=ERROR", "-o", "ConnectTimeout=60"])
            .args(["-p", &port, user_at, command])
            .output()
            .context("ssh")
    }

    /// Repeats a login that breaks off. On a busy node, an emulated machine exceeds its SSH server's own limit.
    fn run_in_emulated(&self, instance: &Value, command: &str) -> Result<Output> {
        eventually("a login to the machine", EMULATED, || {
            let output = self.run(instance, command)?;
            Ok((output.status.code() != Some(SSH_FAILED)).then_some(output))
        })
    }

    /// Waits for the first login after a restart, whose response does not wait for a slow boot.
    pub fn wait_for_login(&self, instance: &Value) -> Result<()> {
        until("a login after the restart", || {
            Ok(self.run(instance, "true")?.status.success().then_some(()))
        })
    }

    /// Runs a command that must succeed, and returns its stdout.
    pub fn output(&self, instance: &Value, command: &str) -> Result<String> {
        let output = if instance["resource_type"] == "vm" {
            self.run_in_emulated(instance, command)?
        } else {
            self.run(instance, command)?
        };
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
