//! Logins with OpenSSH's client.

use crate::process::{output, wait_until};
use anyhow::{Result, bail};
use std::io::Read;
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A key pair, `id_ed25519` in a directory.
pub struct KeyPair {
    directory: PathBuf,
}

/// An account, and the address of its SSH server.
#[derive(Clone, Copy)]
pub struct Destination<'a> {
    /// The login user.
    pub user: &'a str,
    /// The login host.
    pub host: &'a str,
    /// `wan_ssh_port`.
    pub port: u16,
}

impl KeyPair {
    /// Returns the key pair in the directory, or makes one.
    pub fn in_directory(directory: &Path) -> Result<Self> {
        let pair = Self {
            directory: directory.to_owned(),
        };
        if !pair.path().is_file() {
            std::fs::create_dir_all(directory)?;
            output(
                Command::new("ssh-keygen")
                    .args(["-q", "-t", "ed25519", "-N", "", "-C", "wharf", "-f"])
                    .arg(pair.path()),
            )?;
        }
        Ok(pair)
    }

    /// The private key's file.
    pub fn path(&self) -> PathBuf {
        self.directory.join("id_ed25519")
    }

    /// The public key, one line.
    pub fn public(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.path().with_extension("pub"))?
            .trim()
            .to_owned())
    }

    /// Logs in by key, runs `script`, and returns its output.
    pub fn run(&self, to: Destination<'_>, script: &str) -> Result<String> {
        let mut ssh = ssh(to);
        ssh.args(["-o", "BatchMode=yes", "-i"])
            .arg(self.path())
            .arg(script);
        output(&mut ssh).map(|text| text.trim().to_owned())
    }

    /// Logs in by password, runs `script`, and returns its output. The password is in the environment,
    /// because the arguments of a process are public.
    pub fn run_with_password(
        &self,
        to: Destination<'_>,
        password: &str,
        script: &str,
    ) -> Result<String> {
        let mut ssh = ssh(to);
        ssh.args([
            "-o",
            "PubkeyAuthentication=no",
            "-o",
            "NumberOfPasswordPrompts=1",
        ])
        .env("SSH_ASKPASS", self.askpass()?)
        .env("SSH_ASKPASS_REQUIRE", "force")
        .env("WHARF_SSH_PASSWORD", password)
        .arg(script);
        output(&mut ssh).map(|text| text.trim().to_owned())
    }

    /// The program that OpenSSH runs to get the password.
    fn askpass(&self) -> Result<PathBuf> {
        let path = self.directory.join("askpass");
        if !path.exists() {
            let mut options = std::fs::OpenOptions::new();
            let file = options.write(true).create_new(true).mode(0o700).open(&path);
            std::io::Write::write_all(
                &mut file?,
                b"#!/bin/sh\nprintf '%s\\n' \"$WHARF_SSH_PASSWORD\"\n",
            )?;
        }
        Ok(path)
    }
}

fn ssh(to: Destination<'_>) -> Command {
    let mut ssh = Command::new("ssh");
    ssh.args(["-F", "none", "-o", "StrictHostKeyChecking=no"])
        .args(["-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"])
        .args(["-o", "ConnectTimeout=60", "-o", "IdentitiesOnly=yes"])
        .args([
            "-p",
            &to.port.to_string(),
            &format!("{}@{}", to.user, to.host),
        ]);
    ssh
}

/// Waits for the banner of an SSH server.
pub fn wait_for_banner(host: &str, port: u16, limit: Duration) -> Result<()> {
    if !wait_until(limit, || has_banner(host, port)) {
        bail!("no SSH banner from {host}:{port} within {limit:?}");
    }
    Ok(())
}

/// Whether an SSH server sends its banner. An open port alone may be a proxy's.
pub fn has_banner(host: &str, port: u16) -> bool {
    let mut start = [0; 4];
    TcpStream::connect((host, port)).is_ok_and(|mut stream| {
        stream
            .set_read_timeout(Some(Duration::from_secs(1)))
            .is_ok()
            && stream.read_exact(&mut start).is_ok()
            && start == *b"SSH-"
    })
}
