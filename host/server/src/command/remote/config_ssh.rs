//! `wharf config-ssh`: entries for OpenSSH's configuration, so that `ssh NAME.wharf` and editors work.

use super::connection::Connection;
use super::known_hosts::{self, Keys};
use super::output::{field, line, note};
use super::profiles::home;
use super::ssh::{Address, is_safe};
use anyhow::{Context, Result};
use clap::Args;
use serde_json::Value;
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
        let mut keys = Keys::new();
        let (entries, after) = match self.remove {
            true => (None, without_include(&before)),
            false => (Some(self.entries(&mut keys).await?), with_include(&before)),
        };
        if self.dry_run {
            let file = known_hosts::file()?;
            for (alias, key) in keys
                .iter()
                .flat_map(|(a, keys)| keys.iter().map(move |k| (a, k)))
            {
                line(&format!("{} would have: {alias} {key}", file.display()))?;
            }
            return print_changes(&own, entries.as_deref(), &config, &before, &after);
        }
        wharf_secure_fs::make_dir(&directory)?;
        known_hosts::remember(&keys)?;
        match &entries {
            Some(text) => write(&own, text)?,
            None if own.exists() => fs::remove_file(&own)?,
            None => {}
        }
        if before != after {
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
    async fn entries(&self, keys: &mut Keys) -> Result<String> {
        let client = self.connection.client()?;
        let list = client.list_instances(None, None).send().await?.into_value();
        let mut text = "# Written by `wharf config-ssh`, which replaces this file.\n".to_owned();
        let with_ssh =
            |instance: &&Value| instance.get("ssh_command").is_some_and(Value::is_string);
        for instance in list.as_array().into_iter().flatten().filter(with_ssh) {
            let name = field(instance, "name");
            if !is_safe(&name) {
                continue;
            }
            text.push_str(&format!("\nHost {name}.{DOMAIN}\n"));
            let address = Address::of(instance)?;
            let known = known_hosts::of(&client, &field(instance, "uuid")).await?;
            for option in address.options(!known.is_empty())? {
                text.push_str(&format!("    {option}\n"));
            }
            keys.insert(address.alias, known);
        }
        Ok(text)
    }
}

/// The file behind a link: a configuration may be kept elsewhere.
fn target_of(path: PathBuf) -> PathBuf {
    fs::canonicalize(&path).unwrap_or(path)
}

fn read(path: &Path) -> Result<String> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    wharf_secure_fs::write(path, &[text.as_bytes()])
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The configuration with the line. It is the first one: further down it would belong to a `Host`.
fn with_include(text: &str) -> String {
    match text.lines().any(|line| line.trim() == INCLUDE) {
        true => text.to_owned(),
        false => format!("{INCLUDE}\n{text}"),
    }
}

fn without_include(text: &str) -> String {
    let lines = text.split_inclusive('\n');
    lines.filter(|line| line.trim() != INCLUDE).collect()
}

fn print_changes(
    own: &Path,
    entries: Option<&str>,
    config: &Path,
    before: &str,
    after: &str,
) -> Result<()> {
    match entries {
        Some(text) => line(&format!("{} would be:\n{text}", own.display()))?,
        None => line(&format!("{} would be removed.", own.display()))?,
    }
    let change = match (before == after, entries.is_some()) {
        (true, _) => "would stay as it is.".to_owned(),
        (false, true) => format!("would begin with: {INCLUDE}"),
        (false, false) => format!("would lose the line: {INCLUDE}"),
    };
    line(&format!("{} {change}", config.display()))
}

#[cfg(test)]
mod tests {
    use super::{with_include, without_include};

    #[test]
    fn the_line_is_added_once_and_removed_without_a_trace() {
        for text in ["", "Host a\n  User b\n", "# no newline at the end"] {
            let with = with_include(text);
            assert!(with.starts_with("Include wharf_config\n"));
            assert_eq!(with_include(&with), with);
            assert_eq!(without_include(&with), text);
        }
    }
}
