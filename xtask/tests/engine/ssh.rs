//! OpenSSH's client, as a user runs it.

use crate::container::USER;
use anyhow::{Context, Result, ensure};
use std::io::Read;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use xtask::process::{output, wait_until};

/// A user's key.
pub struct KeyPair {
    pub directory: PathBuf,
    pub public: String,
}

impl KeyPair {
    pub fn make(directory: &Path) -> Result<Self> {
        let _ = std::fs::remove_dir_all(directory);
        std::fs::create_dir_all(directory)?;
        let file = directory.join("id");
        output(
            Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(&file),
        )?;
        let public = std::fs::read_to_string(file.with_extension("pub"))?;
        Ok(Self {
            directory: directory.to_owned(),
            public,
        })
    }

    /// Runs `script` in the instance as its user, logged in by key.
    pub fn run(&self, port: u16, script: &str) -> Result<String> {
        self.run_as(USER, port, script)
    }

    pub fn run_as(&self, user: &str, port: u16, script: &str) -> Result<String> {
        let mut ssh = ssh(user, port);
        ssh.args(["-o", "BatchMode=yes", "-i"])
            .arg(self.directory.join("id"))
            .arg(script);
        output(&mut ssh).map(|text| text.trim().to_owned())
    }

    /// The same by password.
    pub fn run_with_password(
        &self,
        user: &str,
        port: u16,
        password: &str,
        script: &str,
    ) -> Result<String> {
        let ask = self.directory.join("askpass");
        std::fs::write(&ask, "#!/bin/sh\nprintf '%s\\n' \"$TEST_PASSWORD\"\n")?;
        output(Command::new("chmod").arg("700").arg(&ask))?;
        let mut ssh = ssh(user, port);
        ssh.args([
            "-o",
            "PubkeyAuthentication=no",
            "-o",
            "NumberOfPasswordPrompts=1",
        ])
        .env("SSH_ASKPASS", &ask)
        .env("SSH_ASKPASS_REQUIRE", "force")
        .env("TEST_PASSWORD", password)
        .arg(script);
        output(&mut ssh).map(|text| text.trim().to_owned())
    }
}

impl Drop for KeyPair {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn ssh(user: &str, port: u16) -> Command {
    let mut ssh = Command::new("ssh");
    ssh.args([
        "-F",
        "none",
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        "UserKnownHostsFile=/dev/null",
    ])
    .args([
        "-o",
        "LogLevel=ERROR",
        "-o",
        "ConnectTimeout=5",
        "-o",
        "IdentitiesOnly=yes",
    ])
    .args(["-p", &port.to_string(), &format!("{user}@127.0.0.1")]);
    ssh
}

pub fn wait_for_banner(port: u16) -> Result<()> {
    let banner = || {
        let mut start = [0; 4];
        TcpStream::connect(("127.0.0.1", port)).is_ok_and(|mut stream| {
            let limit = Some(Duration::from_secs(1));
            stream.set_read_timeout(limit).is_ok()
                && stream.read_exact(&mut start).is_ok()
                && start == *b"SSH-"
        })
    };
    ensure!(
        wait_until(Duration::from_secs(20), banner),
        "no SSH banner on port {port}"
    );
    Ok(())
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
