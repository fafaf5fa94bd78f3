//! `wharf ssh`, and the address of an instance for OpenSSH.

use crate::ask_password;
use crate::connection::Connection;
use crate::known_hosts;
use crate::names;
use anyhow::{Context, Error, Result, bail, ensure};
use clap::Args;
use std::env;
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
    /// Connect through the server; the default for an instance without a public SSH port
    #[arg(long)]
    tunnel: bool,
    #[command(flatten)]
    connection: Connection,
    /// Command to run instead of a shell
    #[arg(last = true)]
    command: Vec<String>,
}

/// The SSH server of an instance.
pub struct SshAddress {
    user: String,
    route: SshRoute,
    /// The name of the host key, unique for each instance: ports are used again.
    pub alias: String,
}

/// The route to an SSH server.
#[derive(Debug, PartialEq, Eq)]
enum SshRoute {
    Port {
        host: String,
        port: u16,
    },
    /// A command of OpenSSH that connects its stdin and stdout.
    Proxy(String),
}

impl SshAddress {
    /// The address through a tunnel.
    pub fn of_tunnel(connection: &Connection, uuid: &str, user: &str) -> Result<Self> {
        ensure!(
            [uuid, user].iter().all(|part| is_safe(part)),
            "the server names a strange user: {user:?}"
        );
        let profile = connection.profile.as_deref();
        Ok(Self {
            user: user.to_owned(),
            route: SshRoute::Proxy(proxy_command(uuid, profile)?),
            alias: format!("wharf-{uuid}"),
        })
    }

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
            route: SshRoute::Port {
                // A URL has an IPv6 address in brackets, and OpenSSH has it without.
                host: host.trim_matches(['[', ']']).to_owned(),
                port: port.parse().with_context(strange)?,
            },
            alias: format!("wharf-{uuid}"),
        })
    }

    /// Options of OpenSSH, as `Name Value`. A host key that Wharf does not know is accepted once.
    fn options(&self, is_known: bool) -> Result<Vec<String>> {
        let known_hosts = known_hosts::file()?;
        let known_hosts = known_hosts.to_str().context("the path of known_hosts")?;
        let strict = if is_known { "yes" } else { "accept-new" };
        let mut options = match &self.route {
            SshRoute::Port { host, port } => {
                vec![format!("HostName {host}"), format!("Port {port}")]
            }
            SshRoute::Proxy(command) => vec![format!("ProxyCommand {command}")],
        };
        options.extend([
            format!("User {}", self.user),
            format!("HostKeyAlias {}", self.alias),
            format!("UserKnownHostsFile \"{known_hosts}\""),
            format!("StrictHostKeyChecking {strict}"),
        ]);
        Ok(options)
    }
}

/// A command of OpenSSH for a tunnel to the SSH server of an instance. It has the full path of this program,
/// because editors start OpenSSH without the path of a shell.
pub fn proxy_command(instance: &str, profile: Option<&str>) -> Result<String> {
    let own = env::current_exe().context("the path of this program")?;
    let own = own.to_str().context("the path of this program")?;
    let profile = profile.map_or(String::new(), |name| format!(" --profile {}", quoted(name)));
    Ok(format!(
        "{} tunnel {instance} 22 --stdio{profile}",
        quoted(own)
    ))
}

/// Quotes a word for the shell that OpenSSH starts. OpenSSH replaces a single `%` and its next letter.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''").replace('%', "%%"))
}

/// OpenSSH's client with the options for an address. It asks this program for the password.
pub fn command(
    connection: &Connection,
    address: &SshAddress,
    uuid: &str,
    is_known: bool,
) -> Result<Command> {
    let mut ssh = Command::new("ssh");
    for option in address.options(is_known)? {
        ssh.arg("-o").arg(option);
    }
    ask_password::prepare(&mut ssh, connection, uuid)?;
    Ok(ssh)
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
        let address = match &instance.ssh_command {
            Some(command) if !self.tunnel => SshAddress::of(&instance.uuid, command)?,
            _ => {
                // Its refusal has the reason; OpenSSH would only tell of a closed connection.
                client.check_tunnel(&instance.uuid).await?;
                let user = client.get_session().fetch().await?.login_user;
                SshAddress::of_tunnel(&self.connection, &instance.uuid, &user)?
            }
        };
        let is_known = !keys.is_empty();
        known_hosts::remember(&[(address.alias.clone(), keys)].into())?;
        let mut ssh = command(&self.connection, &address, &instance.uuid, is_known)?;
        if let Some(identity) = &self.identity {
            ssh.arg("-i").arg(identity);
        }
        if self.identity.is_some() || is_agent_full() {
            ssh.arg("-o").arg(FILES_ONLY);
        }
        ssh.arg("--").arg(&address.alias).args(&self.command);
        let error = Error::new(ssh.exec());
        Err(error.context("cannot run ssh; install OpenSSH's client"))
    }
}

#[cfg(test)]
mod tests {
    use super::{SshAddress, SshRoute, is_safe, quoted};

    #[test]
    fn an_address_has_nothing_that_openssh_would_interpret() {
        let of = |command: &str| SshAddress::of("0f8f", command);
        let route = |host: &str, port| {
            let host = host.to_owned();
            SshRoute::Port { host, port }
        };
        let address = of("ssh -p 20001 user@ssh.example.org").unwrap();
        assert_eq!(address.route, route("ssh.example.org", 20001));
        for host in ["2001:db8::1", "[2001:db8::1]"] {
            let address = of(&format!("ssh -p 1 user@{host}")).unwrap();
            assert_eq!(address.route, route("2001:db8::1", 1));
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
        assert_eq!(quoted("/a b/it's 5%"), r"'/a b/it'\''s 5%%'");
        assert!(is_safe("[::1]") && !is_safe("a b") && !is_safe("a;b"));
    }
}
