//! The users that instances' users really are: root inside is an account of no rights outside.

use crate::process::{command, run, succeeds};
use anyhow::{Context, Result};
use std::fs::{self, File};

/// An account whose subordinate ids an engine maps to.
#[derive(Debug)]
pub(super) struct Account {
    /// Its name; not one that a user's own engines may have.
    pub name: &'static str,
    ids: u64,
}

/// Ids of a whole system inside.
pub(super) const WHOLE_SYSTEM: u64 = 65_536;

/// dockerd gives all its containers the same range.
pub(super) const DOCKERD: Account = Account {
    name: "wharf-remap",
    ids: WHOLE_SYSTEM,
};
/// Podman gives each container a range of its own.
pub(super) const PODMAN: Account = Account {
    name: "wharf-podman",
    ids: 1024 * WHOLE_SYSTEM,
};

/// Lowest first id; below lie the ranges that `useradd` gives to people.
const LOWEST: u64 = 100_000;

/// Makes the account and its ranges, once per machine.
pub(super) fn ensure(account: &Account) -> Result<()> {
    let Account { name, ids } = *account;
    // Engines that start at the same time would otherwise each take a range.
    let lock = File::open("/etc/passwd")?;
    lock.lock()?;
    if !succeeds(command("getent").args(["passwd", name])) {
        run(command("useradd")
            .args(["--system", "--no-create-home", "--home-dir", "/nonexistent"])
            .args(["--user-group", "--shell", "/usr/sbin/nologin", name]))?;
    }
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
