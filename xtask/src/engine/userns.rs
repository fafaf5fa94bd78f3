//! The users that instances' users really are: root inside is an account of no rights outside.

use crate::process::{command, run, succeeds};
use anyhow::{Context, Result};
use std::fs::{self, File};

/// The account whose subordinate ids the private engine maps to; not the `dockremap` that a
/// user's own Docker may have.
pub(super) const USER: &str = "wharf-remap";

/// Ids per range: what a whole system inside needs.
const RANGE: u64 = 65_536;
/// Lowest first id; below lie the ranges that `useradd` gives to people.
const LOWEST: u64 = 100_000;

/// Makes the account and its ranges, once per machine.
pub(super) fn ensure() -> Result<()> {
    // Engines that start at the same time would otherwise each take a range.
    let lock = File::open("/etc/passwd")?;
    lock.lock()?;
    if !succeeds(command("getent").args(["passwd", USER])) {
        run(command("useradd")
            .args(["--system", "--no-create-home", "--home-dir", "/nonexistent"])
            .args(["--user-group", "--shell", "/usr/sbin/nologin", USER]))?;
    }
    for (file, option) in [
        ("/etc/subuid", "--add-subuids"),
        ("/etc/subgid", "--add-subgids"),
    ] {
        let table = fs::read_to_string(file).unwrap_or_default();
        if table
            .lines()
            .any(|line| line.split(':').next() == Some(USER))
        {
            continue;
        }
        let first = first_free(&table);
        let range = format!("{first}-{}", first + RANGE - 1);
        run(command("usermod").args([option, &range, USER]))
            .with_context(|| format!("no range for {USER} in {file}"))?;
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
