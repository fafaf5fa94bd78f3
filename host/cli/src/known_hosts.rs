//! Host keys of instances for OpenSSH. Wharf learned them from the instances, so OpenSSH does not have
//! to accept the first key that it is shown.

use crate::profiles;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use wharf_client::Client;

/// Host keys by the alias of their instance.
pub type KnownHosts = BTreeMap<String, Vec<String>>;

/// The file of the keys, apart from OpenSSH's own.
pub fn file() -> Result<PathBuf> {
    Ok(profiles::directory()?.join("known_hosts"))
}

/// The host keys that Wharf knows of an instance.
pub async fn of(client: &Client, uuid: &str) -> Result<Vec<String>> {
    let keys = client.list_host_keys(uuid).fetch().await?.0.into_iter();
    let texts = keys.map(|key| key.public_key);
    Ok(texts.filter(|key| is_safe(key)).collect())
}

/// Whether a key is one line of two words.
fn is_safe(key: &str) -> bool {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "+/=@.- ".contains(c);
    key.split(' ').count() == 2 && key.chars().all(is_safe)
}

/// Replaces the keys of instances in the file. Instances without keys stay as they are.
pub fn remember(keys: &KnownHosts) -> Result<()> {
    change(|before| with(before, keys))
}

/// Replaces the keys of one alias in the file, also by none.
pub fn replace(alias: &str, keys: Vec<String>) -> Result<()> {
    let others = |before: &str| {
        let is_other = |line: &&str| line.split(' ').next() != Some(alias);
        let others = before.lines().filter(is_other);
        others
            .map(|line| line.to_owned() + "\n")
            .collect::<String>()
    };
    let keys = [(alias.to_owned(), keys)].into();
    change(|before| with(&others(before), &keys))
}

fn change(after: impl FnOnce(&str) -> String) -> Result<()> {
    let file = file()?;
    wharf_secure_fs::make_dir(&profiles::directory()?)?;
    // Two commands at once do not lose each other's keys.
    let lock = wharf_secure_fs::open(&file.with_extension("lock"))?;
    lock.lock()?;
    let before = match fs::read_to_string(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read.with_context(|| format!("cannot read {}", file.display()))?,
    };
    let after = after(&before);
    if after == before {
        return Ok(());
    }
    wharf_secure_fs::write(&file, &[after.as_bytes()])
        .with_context(|| format!("cannot write {}", file.display()))
}

fn with(text: &str, keys: &KnownHosts) -> String {
    let is_other = |line: &&str| {
        let alias = line.split(' ').next().unwrap_or_default();
        keys.get(alias).is_none_or(Vec::is_empty)
    };
    let others = text.lines().filter(is_other).map(str::to_owned);
    let own = keys
        .iter()
        .flat_map(|(alias, keys)| keys.iter().map(move |key| format!("{alias} {key}")));
    let mut lines: Vec<_> = others.chain(own).collect();
    // An unchanged set of keys is an unchanged file.
    lines.sort();
    lines.into_iter().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::{KnownHosts, is_safe, with};

    #[test]
    fn keys_replace_those_of_their_instance_only() {
        let keys = |alias: &str, list: &[&str]| -> KnownHosts {
            let list = list.iter().map(|key| (*key).to_owned()).collect();
            [(alias.to_owned(), list)].into()
        };
        let first = with("", &keys("wharf-b", &["ssh-ed25519 AAAA"]));
        assert_eq!(first, "wharf-b ssh-ed25519 AAAA\n");
        let both = with(&first, &keys("wharf-a", &["ssh-ed25519 BBBB"]));
        assert_eq!(both, "wharf-a ssh-ed25519 BBBB\nwharf-b ssh-ed25519 AAAA\n");
        assert_eq!(with(&both, &keys("wharf-a", &[])), both);
        assert_eq!(with(&both, &keys("wharf-a", &["ssh-ed25519 BBBB"])), both);
        let changed = with(&both, &keys("wharf-a", &["ssh-rsa CCCC"]));
        assert_eq!(changed, "wharf-a ssh-rsa CCCC\nwharf-b ssh-ed25519 AAAA\n");
    }

    #[test]
    fn a_key_cannot_add_lines_or_names() {
        assert!(is_safe("ssh-ed25519 AAAAC3+/="));
        for strange in [
            "",
            "AAAA",
            "ssh-ed25519 AAAA\n* ssh-rsa B",
            "@revoked * ssh-rsa B",
        ] {
            assert!(!is_safe(strange), "{strange}");
        }
    }
}
