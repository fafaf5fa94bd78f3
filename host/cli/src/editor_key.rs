//! The key with which OpenSSH logs in to instances by itself. Editors cannot use the pipe through which
//! `wharf ssh` gets passwords.

use crate::connection::Connection;
use crate::known_hosts;
use crate::profiles;
use crate::ssh::{self, SshAddress};
use anyhow::{Context, Result, bail, ensure};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tokio::time::sleep;
use wharf_client::Client;
use wharf_client::types::SshKeyRequest;

/// Time for the login that adds the key. An instance whose shell hangs must not hold up the others.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(30);

/// The private key. OpenSSH reads it.
pub fn file() -> Result<PathBuf> {
    Ok(profiles::directory()?.join("id_ed25519"))
}

/// The public key, if there is one.
pub fn public() -> Result<Option<String>> {
    if !file()?.exists() {
        return Ok(None);
    }
    let mut keygen = Command::new("ssh-keygen");
    keygen.arg("-y").arg("-f").arg(file()?);
    let shown = keygen
        .stdin(Stdio::null())
        .output()
        .context("cannot run ssh-keygen; install OpenSSH's client")?;
    let words = String::from_utf8_lossy(&shown.stderr);
    ensure!(shown.status.success(), "{}", words.trim());
    Ok(Some(String::from_utf8(shown.stdout)?.trim().to_owned()))
}

/// The public key, which is made if there is none.
pub fn load_or_create() -> Result<String> {
    if let Some(key) = public()? {
        return Ok(key);
    }
    wharf_secure_fs::make_dir(&profiles::directory()?)?;
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", "wharf", "-f"]);
    let ended = keygen.arg(file()?).stdin(Stdio::null()).status();
    let ended = ended.context("cannot run ssh-keygen; install OpenSSH's client")?;
    ensure!(ended.success(), "ssh-keygen made no key");
    public()?.context("ssh-keygen made no key")
}

/// Saves the key on the server, so that the console offers it for new instances.
pub async fn save(client: &Client, key: &str) -> Result<()> {
    let material = |key: &str| key.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let saved = client.list_ssh_keys().fetch().await?.0;
    if saved
        .iter()
        .any(|saved| material(&saved.public_key) == material(key))
    {
        return Ok(());
    }
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let name = format!("wharf on {host}");
    let number = saved
        .iter()
        .filter(|key| key.name.starts_with(&name))
        .count();
    let name = if number == 0 {
        name
    } else {
        format!("{name} ({})", number + 1)
    };
    let body = SshKeyRequest::new(name, key.to_owned());
    client.save_ssh_key(&body).send().await?;
    Ok(())
}

/// Adds the key to an instance by one login, with the key itself or with the instance's password. Notes the
/// host keys first that the server knows of the instance.
pub async fn append(
    connection: &Connection,
    client: &Client,
    uuid: &str,
    user: &str,
    key: &str,
) -> Result<()> {
    ensure!(
        key.chars()
            .all(|c| c.is_ascii_alphanumeric() || "+/=-_.@ ".contains(c)),
        "the public key is not in OpenSSH's format"
    );
    let address = SshAddress::of_tunnel(connection, uuid, user)?;
    let keys = known_hosts::of(client, uuid).await?;
    known_hosts::replace(&address.alias, keys)?;
    let mut ssh = ssh::command(connection, &address, uuid, true)?;
    ssh.arg("-i").arg(file()?);
    ssh.args(["-o", ssh::FILES_ONLY, "-o", "ConnectTimeout=20", "--"]);
    ssh.arg(&address.alias).arg(format!(
        "exec sh -c 'umask 077; f=$HOME/.ssh/authorized_keys; mkdir -p \"$HOME/.ssh\"; touch \"$f\"; \
         grep -qxF \"$0\" \"$f\" || {{ [ -z \"$(tail -c1 \"$f\")\" ] || echo >> \"$f\"; echo \"$0\" >> \"$f\"; }}' '{key}'"
    ));
    ssh.stdin(Stdio::null()).stdout(Stdio::null());
    ssh.stderr(Stdio::piped());
    let mut ssh = ssh
        .spawn()
        .context("cannot run ssh; install OpenSSH's client")?;
    let begun = Instant::now();
    while ssh.try_wait()?.is_none() {
        if begun.elapsed() > LOGIN_TIMEOUT {
            ssh.kill()?;
            ssh.wait()?;
            bail!("the login took longer than {} s", LOGIN_TIMEOUT.as_secs());
        }
        sleep(Duration::from_millis(20)).await;
    }
    let ended = ssh.wait_with_output()?;
    if !ended.status.success() {
        let words = String::from_utf8_lossy(&ended.stderr);
        bail!("{}", words.lines().last().unwrap_or("ssh failed"));
    }
    Ok(())
}
