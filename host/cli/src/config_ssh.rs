//! `wharf config-ssh`: an entry of OpenSSH's configuration, so that `ssh NAME.wharf` and editors work.

use crate::connection::Connection;
use crate::editor_key;
use crate::failure::failure_message;
use crate::known_hosts;
use crate::output::{line, note};
use crate::profiles::home;
use crate::ssh::{AGENT_KEYS, FILES_ONLY, is_safe, proxy_command};
use anyhow::{Context, Error, Result, ensure};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};
use wharf_client::Client;
use wharf_client::types::{InstanceFields, State};

/// The file of the entries, beside OpenSSH's own.
const OWN: &str = "wharf_config";
/// The line of OpenSSH's configuration that reads the entries.
const INCLUDE: &str = "Include wharf_config";
/// The domain of the names.
pub const DOMAIN: &str = "wharf";

/// Make your instances known to OpenSSH as NAME.wharf, also those of later
///
/// Makes a key, saves it on the server, and adds it to your running instances by one login each, so that
/// editors can log in without a password.
#[derive(Args)]
pub struct ConfigSsh {
    /// Print the changes instead of making them
    #[arg(long)]
    dry_run: bool,
    /// Remove the entry; the key stays
    #[arg(long)]
    remove: bool,
    #[command(flatten)]
    connection: Connection,
}

impl ConfigSsh {
    pub async fn run(self) -> Result<()> {
        let directory = home()?.join(".ssh");
        let (own, config) = (directory.join(OWN), target_of(directory.join("config")));
        let before = read(&config)?;
        if self.remove {
            let after = without_include(&before);
            if self.dry_run {
                return print_changes(&own, None, &config, before != after);
            }
            if own.exists() {
                fs::remove_file(&own)?;
            }
            if before != after {
                write(&config, &after)?;
            }
            note("OpenSSH's configuration has no entries of Wharf.");
            return Ok(());
        }
        let (client, target) = (self.connection.client()?, self.connection.target()?);
        let user = client.get_session().fetch().await?.login_user;
        let text = entry(&user, target.profile.as_deref())?;
        let after = with_include(&before);
        if self.dry_run {
            return print_changes(&own, Some(&text), &config, before != after);
        }
        let key = editor_key::load_or_create()?;
        wharf_secure_fs::make_dir(&directory)?;
        write(&own, text.as_bytes())?;
        if before != after {
            write(&config, &after)?;
        }
        editor_key::save(&client, &key).await?;
        if target.profile.is_none() {
            note(
                "The server is that of WHARF_URL and WHARF_API_KEY, which OpenSSH needs too; \
                 `wharf login` makes a profile instead.",
            );
        }
        self.add(&client, &user, &key).await?;
        note(&format!(
            "{} is written; try `ssh NAME.{DOMAIN}`.",
            own.display()
        ));
        Ok(())
    }

    /// Adds the key to the running instances. Some may have no SSH server, or another password.
    async fn add(&self, client: &Client, user: &str, key: &str) -> Result<()> {
        let list = client.list_instances(None, None).fetch().await?;
        let running = |instance: &&InstanceFields| instance.state == State::Running;
        for instance in list.iter().map(|instance| &**instance).filter(running) {
            let uuid = &instance.uuid;
            let added = match client.check_tunnel(uuid).await {
                Ok(()) => editor_key::append(&self.connection, client, uuid, user, key).await,
                Err(error) => Err(error.into()),
            };
            if let Err(error) = added {
                let why = failure_message(&error).unwrap_or_default();
                note(&format!("{} did not get the key: {why}", instance.name));
            }
        }
        Ok(())
    }
}

/// The entry for all instances. `profile` is that of the server.
fn entry(user: &str, profile: Option<&str>) -> Result<String> {
    ensure!(is_safe(user), "the server names a strange user: {user:?}");
    let file = |path: PathBuf| Ok::<_, Error>(path.to_str().context("a path")?.replace('%', "%%"));
    let (known_hosts, key) = (file(known_hosts::file()?)?, file(editor_key::file()?)?);
    // Older versions of OpenSSH pass on a host name with a quote, which would end the quotes around it.
    let proxy = proxy_command("'%n'", profile)?;
    Ok(format!(
        "# Written by `wharf config-ssh`, which replaces this file.\n\n\
         Host *.{DOMAIN} \"!*'*\"\n    \
             ProxyCommand {proxy}\n    \
             User {user}\n    \
             IdentityFile \"{key}\"\n    \
             UserKnownHostsFile \"{known_hosts}\"\n    \
             StrictHostKeyChecking accept-new\n\n\
         # A server ends the connection after six keys, and the password needs its turn.\n\
         Match originalhost *.{DOMAIN} exec \"sh -c 'test $(ssh-add -L 2>/dev/null | wc -l) -gt \
         {AGENT_KEYS}'\"\n    {FILES_ONLY}\n"
    ))
}

/// Links that lead to a file. The kernel follows as many.
const MAX_LINKS: usize = 40;

/// The file behind links: a configuration may be kept elsewhere, and may not be there yet.
fn target_of(path: PathBuf) -> PathBuf {
    let mut target = path;
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&target) else {
            break;
        };
        // A relative link begins at its own directory.
        target = match target.parent() {
            Some(directory) => directory.join(next),
            None => next,
        };
    }
    target
}

/// The bytes of a configuration, whose comments may be in any encoding.
fn read(path: &Path) -> Result<Vec<u8>> {
    match fs::read(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Replaces a file, which keeps its mode.
fn write(path: &Path, text: &[u8]) -> Result<()> {
    let mode = fs::metadata(path).map(|metadata| metadata.permissions());
    let written = wharf_secure_fs::write(path, &[text]).and_then(|()| match mode {
        Ok(mode) => fs::set_permissions(path, mode),
        Err(_) => Ok(()),
    });
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// The configuration with the line at its beginning. Below a `Host`, the line would belong to that host.
fn with_include(text: &[u8]) -> Vec<u8> {
    let for_all = lines(text).take_while(|line| !["host", "match"].contains(&&*keyword(line)));
    if { for_all }.any(is_include) {
        return text.to_owned();
    }
    [INCLUDE.as_bytes(), b"\n", text].concat()
}

fn without_include(text: &[u8]) -> Vec<u8> {
    let others: Vec<&[u8]> = lines(text).filter(|line| !is_include(line)).collect();
    others.concat()
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// The words of a line. OpenSSH takes a `=` after the keyword too.
fn words(line: &[u8]) -> Vec<String> {
    let line = String::from_utf8_lossy(line);
    let words = line.split(|c: char| c.is_whitespace() || c == '=');
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn keyword(line: &[u8]) -> String {
    let words = words(line);
    words
        .first()
        .map_or(String::new(), |word| word.to_lowercase())
}

fn is_include(line: &[u8]) -> bool {
    let words = words(line);
    matches!(words.as_slice(), [keyword, file] if keyword.eq_ignore_ascii_case("include") && file == OWN)
}

fn print_changes(own: &Path, entries: Option<&str>, config: &Path, is_changed: bool) -> Result<()> {
    match entries {
        Some(text) => line(&format!("{} would be:\n{text}", own.display()))?,
        None => line(&format!("{} would be removed.", own.display()))?,
    }
    let change = match (is_changed, entries.is_some()) {
        (false, _) => "would stay as it is.".to_owned(),
        (true, true) => format!("would begin with: {INCLUDE}"),
        (true, false) => format!("would lose the line: {INCLUDE}"),
    };
    line(&format!("{} {change}", config.display()))
}

#[cfg(test)]
mod tests {
    use super::{with_include, without_include};

    #[test]
    fn the_line_is_added_once_and_removed_without_a_trace() {
        for text in [
            &b""[..],
            b"Host a\n  User b\n",
            b"# no newline at the end",
            b"# caf\xe9\r\nHost a\r\n",
        ] {
            let with = with_include(text);
            assert!(with.starts_with(b"Include wharf_config\n"));
            assert_eq!(with_include(&with), with);
            assert_eq!(without_include(&with), text);
        }
    }

    #[test]
    fn a_line_below_a_host_is_for_that_host_only() {
        for below in [
            "Host a\n Include wharf_config\n",
            "match all\ninclude=wharf_config\n",
        ] {
            let with = with_include(below.as_bytes());
            assert!(with.starts_with(b"Include wharf_config\n"), "{below}");
            assert_eq!(with_include(&with), with);
        }
        let above = b"# mine\n\tinclude  wharf_config\nHost a\n";
        assert_eq!(with_include(above), above);
        assert_eq!(without_include(above), b"# mine\nHost a\n");
    }
}
