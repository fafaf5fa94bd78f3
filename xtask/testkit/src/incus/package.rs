//! Incus from Debian's packages. Debian 12 has it in its backports.

use crate::engine::LXCFS;
use crate::packages::{self, Need};
use crate::process::{find, is_root};
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

/// The daemon, which is not in PATH.
pub(super) const DAEMON: &str = "/usr/libexec/incus/incusd";
/// The source that this module adds to the machine.
const SOURCE: &str = "/etc/apt/sources.list.d/wharf-backports.sources";
/// The release of Debian without a package of its own.
const WITHOUT: &str = "bookworm";
/// The tables of subordinate users and groups.
const TABLES: [&str; 2] = ["/etc/subuid", "/etc/subgid"];
/// The line of Debian's package.
const ROOT_IDS: &str = "root:1000000:1000000000";
/// Incus and its client.
const PACKAGES: [&str; 2] = ["incus-base", "incus-client"];
/// The programs that Incus starts.
const NEEDS: [Need; 7] = [
    LXCFS,
    Need {
        program: "ip",
        package: "iproute2",
        why: "makes the network of Incus",
    },
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
    Need {
        program: "nft",
        package: "nftables",
        why: "Incus forwards ports with it",
    },
    Need {
        program: "mkfs.btrfs",
        package: "btrfs-progs",
        why: "storage that enforces disk sizes",
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
    packages::ensure(&NEEDS)?;
    if !Path::new(DAEMON).is_file() || find("incus").is_none() {
        install_packages()?;
    }
    TABLES.into_iter().try_for_each(give_ids)
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

/// Gives root subordinate ids, which instances of Incus have. Debian's package does so only when its group is
/// new, and therefore not at its second installation.
fn give_ids(table: &'static str) -> Result<()> {
    let text = match fs::read_to_string(table) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        read => read.context(table)?,
    };
    let Some(addition) = ids_to_add(&text) else {
        return Ok(());
    };
    let file = File::options().create(true).append(true).open(table);
    let written = file.and_then(|mut file| file.write_all(addition.as_bytes()));
    written.with_context(|| format!("{table} needs the line {ROOT_IDS}"))
}

/// The text to append to a table of subordinate ids, unless root has ids in it.
fn ids_to_add(table: &str) -> Option<String> {
    let mut names = table.lines().filter_map(|line| line.split(':').next());
    if names.any(|name| name == "root") {
        return None;
    }
    let end = match table.is_empty() || table.ends_with('\n') {
        true => "",
        false => "\n",
    };
    Some(format!("{end}{ROOT_IDS}\n"))
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
    use super::{ids_to_add, stanza};

    #[test]
    fn root_gets_ids_once() {
        let added = |table: &str| ids_to_add(table).unwrap_or_default();
        assert_eq!(added(""), "root:1000000:1000000000\n");
        assert_eq!(added("a:100000:65536\n"), "root:1000000:1000000000\n");
        assert_eq!(added("roots:1:1"), "\nroot:1000000:1000000000\n");
        assert_eq!(added(&added("")), "");
        assert_eq!(added("a:100000:65536\nroot:200000:65536\n"), "");
    }

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
