//! `wharf ssh`, and the address of an instance for OpenSSH.

use crate::ask_password;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::known_hosts;
use crate::names;
use anyhow::{Context, Error, Result, bail};
use clap::Args;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use wharf_client::types::State;

/// Log in to an instance with OpenSSH
#[derive(Args)]
pub struct Ssh {
    /// Name or UUID of the instance
    #[arg(add = names::instances())]
    name: String,
    /// Private key to log in with; without it OpenSSH's own choice, then the password of the instance
    #[arg(short, long, value_name = "FILE")]
    identity: Option<PathBuf>,
    #[command(flatten)]
    connection: Connection,
    /// Command to run instead of a shell
    #[arg(last = true)]
    command: Vec<String>,
}

/// The SSH server of an instance.
pub struct SshAddress {
    pub user: String,
    pub host: String,
    pub port: u16,
    /// The name of the host key, unique for each instance: ports are used again.
    pub alias: String,
}

impl SshAddress {
    /// Reads the address from the SSH command of an instance. The parts go to OpenSSH, so they have safe
    /// characters only.
    pub fn of(uuid: &str, shown: &str) -> Result<Self> {
        let strange = || format!("the server's SSH command is not understood: {shown:?}");
        let words: Vec<_> = shown.split_whitespace().collect();
        let ["ssh", "-p", port, destination] = words.as_slice() else {
            bail!(strange());
        };
        let (user, host) = destination.split_once('@').with_context(strange)?;
        if ![user, host, uuid].iter().all(|part| is_safe(part)) {
            bail!(strange());
        }
        Ok(Self {
            user: user.to_owned(),
            // A URL has an IPv6 address in brackets, and OpenSSH has it without.
            host: host.trim_matches(['[', ']']).to_owned(),
            port: port.parse().with_context(strange)?,
            alias: format!("wharf-{uuid}"),
        })
    }

    /// Options of OpenSSH, as `Name Value`. A host key that Wharf does not know is accepted once.
    pub fn options(&self, is_known: bool) -> Result<[String; 6]> {
        let known_hosts = known_hosts::file()?;
        let known_hosts = known_hosts.to_str().context("the path of known_hosts")?;
        let strict = if is_known { "yes" } else { "accept-new" };
        Ok([
            format!("HostName {}", self.host),
            format!("Port {}", self.port),
            format!("User {}", self.user),
            format!("HostKeyAlias {}", self.alias),
            format!("UserKnownHostsFile \"{known_hosts}\""),
            format!("StrictHostKeyChecking {strict}"),
        ])
    }
}

/// The keys of an ssh-agent that leave room for those in files and for the password. A server counts each
/// offered key as a failure, and ends the connection after six.
pub const AGENT_KEYS: usize = 3;

/// The option with which OpenSSH offers no keys of an ssh-agent but those that are in files too.
pub const FILES_ONLY: &str = "IdentitiesOnly yes";

/// Whether the ssh-agent has more keys than a server takes.
fn is_agent_full() -> bool {
    let keys = Command::new("ssh-add").arg("-L").output();
    keys.is_ok_and(|keys| keys.stdout.split(|byte| *byte == b'\n').count() > AGENT_KEYS + 1)
}

/// Whether a part of an address is safe in arguments and configurations of OpenSSH.
pub fn is_safe(part: &str) -> bool {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_.:[]".contains(c);
    !part.is_empty() && !part.starts_with('-') && part.chars().all(is_safe)
}

impl Ssh {
    pub async fn run(self) -> Result<()> {
        let client = self.connection.client()?;
        let instance = client.get_instance(&self.name).fetch().await?;
        let keys = known_hosts::of(&client, &instance.uuid).await?;
        let name = &instance.name;
        match instance.state {
            State::Running => {}
            State::Provisioning => {
                bail!("{name} is provisioning; `wharf wait {name}` waits until it runs")
            }
            state => bail!("{name} is {state}; start it with `wharf restart {name}`"),
        }
        let Some(command) = &instance.ssh_command else {
            let flavor = &instance.flavor;
            let message = format!("{name} has the flavor {flavor}, which has no SSH");
            return Err(Failure::Usage(message).into());
        };
        let address = SshAddress::of(&instance.uuid, command)?;
        let is_known = !keys.is_empty();
        known_hosts::remember(&[(address.alias.clone(), keys)].into())?;
        let mut ssh = Command::new("ssh");
        for option in address.options(is_known)? {
            ssh.arg("-o").arg(option);
        }
        if let Some(identity) = &self.identity {
            ssh.arg("-i").arg(identity);
        }
        if self.identity.is_some() || is_agent_full() {
            ssh.arg("-o").arg(FILES_ONLY);
        }
        ask_password::prepare(&mut ssh, &self.connection, &instance.uuid)?;
        ssh.arg("--").arg(&address.alias).args(&self.command);
        let error = Error::new(ssh.exec());
        Err(error.context("cannot run ssh; install OpenSSH's client"))
    }
}

#[cfg(test)]
mod tests {
    use super::{SshAddress, is_safe};

    #[test]
    fn an_address_has_nothing_that_openssh_would_interpret() {
        let of = |command: &str| SshAddress::of("0f8f", command);
        let address = of("ssh -p 20001 user@ssh.example.org").unwrap();
        assert_eq!(
            (address.port, address.host.as_str()),
            (20001, "ssh.example.org")
        );
        for host in ["2001:db8::1", "[2001:db8::1]"] {
            let address = of(&format!("ssh -p 1 user@{host}")).unwrap();
            assert_eq!(address.host, "2001:db8::1");
        }
        for strange in [
            "ssh -p 20001 user@-oProxyCommand=x",
            "ssh -p 20001 user@a\nProxyCommand x",
            "ssh -o ProxyCommand=x -p 20001 user@a",
            "ssh -p x user@a",
            "",
        ] {
            assert!(of(strange).is_err(), "{strange}");
        }
        assert!(is_safe("[::1]") && !is_safe("a b") && !is_safe("a;b"));
    }
}
