//! Incus from Debian's packages. Debian 12 has it in its backports.

use crate::engine::{NEEDS as OF_ANY, userns};
use crate::packages::{self, Need};
use crate::process::{find, is_root};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

/// The daemon, which is not in PATH.
pub(super) const DAEMON: &str = "/usr/libexec/incus/incusd";
/// The source that this module adds to the machine.
const SOURCE: &str = "/etc/apt/sources.list.d/wharf-backports.sources";
/// The release of Debian without a package of its own.
const WITHOUT: &str = "bookworm";
/// The subordinate ids of root, which instances have.
const IDS: u64 = 1_000_000_000;
/// Incus and its client.
const PACKAGES: [&str; 2] = ["incus-base", "incus-client"];
/// The programs that Incus starts, besides those of any private engine.
const NEEDS: [Need; 3] = [
    Need {
        program: "dnsmasq",
        package: "dnsmasq-base",
        why: "gives instances of Incus addresses and names",
    },
    Need {
        program: "setfattr",
        package: "attr",
        why: "Incus copies attributes of files with it",
    },
    Need {
        program: "rsync",
        package: "rsync",
        why: "Incus copies disks with it",
    },
];

/// Whether this process may start a private Incus, which is installed or offered by Debian.
pub fn can_install() -> bool {
    let platform = wharf_images::platform().unwrap_or_default();
    let suite = platform.split('-').next().unwrap_or_default();
    is_root() && (Path::new(DAEMON).is_file() || matches!(suite, WITHOUT | "trixie"))
}

/// Installs Incus. Its own service is not started where the machine starts no services.
pub fn install() -> Result<()> {
    packages::ensure(&[NEEDS.as_slice(), &OF_ANY].concat())?;
    if !Path::new(DAEMON).is_file() || find("incus").is_none() {
        install_packages()?;
    }
    // Debian's package gives them only when its group is new, and therefore not at its second installation.
    userns::add_ranges("root", IDS)
}

fn install_packages() -> Result<()> {
    if !is_root() {
        bail!(
            "missing on this machine: Incus.\nInstall with: sudo apt-get install {}",
            PACKAGES.join(" ")
        );
    }
    crate::progress::step("Installing Incus");
    let backports = format!("{WITHOUT}-backports");
    let is_without = wharf_images::platform()?.starts_with(&format!("{WITHOUT}-"));
    if is_without {
        add_source(&backports)?;
    }
    let from = is_without.then_some(backports.as_str());
    packages::install(PACKAGES.into_iter(), from)?;
    if !Path::new(DAEMON).is_file() {
        bail!("the package incus-base is installed but has no {DAEMON}");
    }
    Ok(())
}

/// Adds a source for the backports, on the mirror that the machine uses.
fn add_source(suite: &str) -> Result<()> {
    let lines = wharf_images::apt_sources(suite);
    let end = format!(" {suite} main");
    let line = lines.iter().find(|line| line.ends_with(&end));
    let line = line.context("no mirror of Debian in /etc/apt")?;
    fs::write(SOURCE, stanza(line, suite)?).context(SOURCE)
}

/// `deb [signed-by=/key] http://mirror/debian SUITE main` as a stanza.
fn stanza(line: &str, suite: &str) -> Result<String> {
    let words = line.split_whitespace();
    let mirror = words.clone().find(|word| word.contains("://"));
    let key = line
        .split_once("signed-by=")
        .and_then(|(_, rest)| rest.split([']', ' ']).next());
    let mut text = format!(
        "Types: deb\nURIs: {}\nSuites: {suite}\nComponents: main\n",
        mirror.with_context(|| format!("no mirror in {line:?}"))?
    );
    if let Some(key) = key {
        text.push_str(&format!("Signed-By: {key}\n"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::stanza;

    #[test]
    fn a_line_becomes_a_stanza() {
        let line =
            "deb [signed-by=/usr/share/key.gpg] http://mirror.example/debian b-backports main";
        assert_eq!(
            stanza(line, "b-backports").unwrap(),
            "Types: deb\nURIs: http://mirror.example/debian\nSuites: b-backports\nComponents: main\n\
             Signed-By: /usr/share/key.gpg\n"
        );
        assert!(
            !stanza("deb http://m/debian x main", "x")
                .unwrap()
                .contains("Signed")
        );
    }
}
