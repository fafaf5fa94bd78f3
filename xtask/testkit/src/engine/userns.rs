//! User namespaces: root inside an instance is an account without rights on the node.

use crate::process::{command, run, succeeds};
use anyhow::{Context, Result};
use std::fs::{self, File};

/// An account with subordinate ids, which an engine maps users to.
#[derive(Debug)]
pub(super) struct Account {
    /// The name, which other engines do not use.
    pub name: &'static str,
    ids: u64,
}

/// The number of ids of a whole system.
pub const WHOLE_SYSTEM: u64 = 65_536;

/// dockerd maps all containers to one range.
pub(super) const DOCKERD: Account = Account {
    name: "wharf-remap",
    ids: WHOLE_SYSTEM,
};
/// Podman maps each container to its own range.
pub(super) const PODMAN: Account = Account {
    name: "wharf-podman",
    ids: 1024 * WHOLE_SYSTEM,
};

/// The lowest first id; `useradd` gives lower ones to people.
const LOWEST: u64 = 100_000;

/// Creates the account and its ranges, unless they exist.
pub(super) fn ensure(account: &Account) -> Result<()> {
    let Account { name, ids } = *account;
    let lock = lock()?;
    if !succeeds(command("getent").args(["passwd", name])) {
        run(command("useradd")
            .args(["--system", "--no-create-home", "--home-dir", "/nonexistent"])
            .args(["--user-group", "--shell", "/usr/sbin/nologin", name]))?;
    }
    drop(lock);
    add_ranges(name, ids)
}

/// Engines that start concurrently would each make the account, or take a range.
fn lock() -> Result<File> {
    let lock = File::open("/etc/passwd")?;
    lock.lock()?;
    Ok(lock)
}

/// Gives an account a range of subordinate users and one of groups, unless it has them.
///
/// `useradd` gives none where another package has taken all ids up to its limit, as that of Incus does.
pub fn add_ranges(name: &str, ids: u64) -> Result<()> {
    let _lock = lock()?;
    for (file, option) in [
        ("/etc/subuid", "--add-subuids"),
        ("/etc/subgid", "--add-subgids"),
    ] {
        let table = fs::read_to_string(file).unwrap_or_default();
        if table
            .lines()
            .any(|line| line.split(':').next() == Some(name))
        {
            continue;
        }
        let first = first_free(&table);
        let range = format!("{first}-{}", first + ids - 1);
        run(command("usermod").args([option, &range, name]))
            .with_context(|| format!("no range for {name} in {file}"))?;
    }
    Ok(())
}

/// The first id above all ranges of the table.
fn first_free(table: &str) -> u64 {
    let ends = table.lines().filter_map(|line| {
        let mut fields = line.split(':').skip(1).map(str::parse::<u64>);
        Some(fields.next()?.ok()? + fields.next()?.ok()?)
    });
    ends.fold(LOWEST, u64::max)
}

#[cfg(test)]
mod tests {
    use super::first_free;

    #[test]
    fn a_new_range_lies_above_all_others() {
        assert_eq!(first_free(""), 100_000);
        assert_eq!(
            first_free("a:100000:65536\nb:300000:65536\nbroken\n"),
            365_536
        );
    }
}
