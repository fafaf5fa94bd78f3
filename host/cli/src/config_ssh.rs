//! `wharf config-ssh`: entries for OpenSSH's configuration, so that `ssh NAME.wharf` and editors work.

use crate::connection::Connection;
use crate::known_hosts::{self, KnownHosts};
use crate::output::{line, note};
use crate::profiles::home;
use crate::ssh::{AGENT_KEYS, FILES_ONLY, SshAddress, is_safe};
use anyhow::{Context, Result};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};

/// The file of the entries, beside OpenSSH's own.
const OWN: &str = "wharf_config";
/// The line of OpenSSH's configuration that reads the entries.
const INCLUDE: &str = "Include wharf_config";
/// The domain of the names.
const DOMAIN: &str = "wharf";

/// Make your instances known to OpenSSH as NAME.wharf
#[derive(Args)]
pub struct ConfigSsh {
    /// Print the changes instead of making them
    #[arg(long)]
    dry_run: bool,
    /// Remove the entries
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
        let mut keys = KnownHosts::new();
        let (entries, after) = if self.remove {
            (None, without_include(&before))
        } else {
            (Some(self.entries(&mut keys).await?), with_include(&before))
        };
        let is_changed = before != after;
        if self.dry_run {
            let file = known_hosts::file()?;
            for (alias, key) in keys
                .iter()
                .flat_map(|(a, keys)| keys.iter().map(move |k| (a, k)))
            {
                line(&format!("{} would have: {alias} {key}", file.display()))?;
            }
            return print_changes(&own, entries.as_deref(), &config, is_changed);
        }
        wharf_secure_fs::make_dir(&directory)?;
        known_hosts::remember(&keys)?;
        match &entries {
            Some(text) => write(&own, text.as_bytes())?,
            None if own.exists() => fs::remove_file(&own)?,
            None => {}
        }
        if is_changed {
            write(&config, &after)?;
        }
        match entries {
            Some(text) => {
                let number = text
                    .lines()
                    .filter(|line| line.starts_with("Host "))
                    .count();
                note(&format!(
                    "{} has {number} instances; try `ssh NAME.{DOMAIN}`.",
                    own.display()
                ));
            }
            None => note("OpenSSH's configuration has no entries of Wharf."),
        }
        Ok(())
    }

    /// An entry for each instance with SSH. Collects their host keys.
    async fn entries(&self, keys: &mut KnownHosts) -> Result<String> {
        let client = self.connection.client()?;
        let list = client.list_instances(None, None).fetch().await?;
        let mut text = "# Written by `wharf config-ssh`, which replaces this file.\n".to_owned();
        for instance in list.iter().filter(|instance| is_safe(&instance.name)) {
            let Some(command) = &instance.ssh_command else {
                continue;
            };
            text.push_str(&format!("\nHost {}.{DOMAIN}\n", instance.name));
            let address = SshAddress::of(&instance.uuid, command)?;
            let known = known_hosts::of(&client, &instance.uuid).await?;
            for option in address.options(!known.is_empty())? {
                text.push_str(&format!("    {option}\n"));
            }
            keys.insert(address.alias, known);
        }
        text.push_str(&format!(
            "\n# A server ends the connection after six keys, and the password needs its turn.\n\
             Match originalhost *.{DOMAIN} exec \"sh -c 'test $(ssh-add -L 2>/dev/null | wc -l) -gt \
             {AGENT_KEYS}'\"\n    {FILES_ONLY}\n"
        ));
        Ok(text)
    }
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
