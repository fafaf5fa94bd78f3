//! The sanity suite for drivers.

use crate::lab::IMAGE;
use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::path::Path;
use std::thread;
use wharf_testkit::workspace::root;
use wharf_tests::proof::prove;
use wharf_tests::until;

/// The tables of support, and the promises that prove the columns after the engine.
const TABLES: [(&str, &[&str]); 2] = [
    (
        "docs/data.md",
        &[
            "a snapshot is taken once",
            "a restore brings a snapshot back",
            "a clone outlives its source",
        ],
    ),
    (
        "docs/engines.md",
        &[
            "a volume is made once",
            "an instance gets and loses volumes",
        ],
    ),
];

/// The rows of an engine in the tables tell what the suite said.
fn is_documented(said: &str, rows: [&str; 2]) -> Result<()> {
    for ((page, promises), row) in TABLES.iter().zip(rows) {
        let text = fs::read_to_string(root().join(page))?;
        let start = format!("| {row} | ");
        let cells = text.lines().find_map(|line| line.strip_prefix(&start));
        let cells = cells.with_context(|| format!("{page} has no row {row}"))?;
        for (cell, promise) in cells.split(" | ").zip(*promises) {
            let is_kept = said.contains(&format!("pass  {promise}"));
            ensure!(
                cell.starts_with(if is_kept { "yes" } else { "no" }),
                "{page} has {cell:?} for {row}, and {promise:?} is proven: {is_kept}"
            );
        }
    }
    Ok(())
}

/// Checks the driver of a node of these settings, whose published ports are at `host`, and the rows of its engine in the
/// tables of snapshots and of volumes.
pub fn suite(driver: &str, settings: &str, [node, host]: [&str; 2], rows: [&str; 2]) -> Result<()> {
    // On a busy machine an instance is up late.
    let late = ["--deadline", "300"];
    let arguments = [&["--connect", host, "--image", IMAGE, "--ssh"], &late[..]].concat();
    let is_reserved = || {
        let reserved = wharf_subnets::reserved(Path::new(""));
        let mut reserved = reserved.iter();
        reserved.any(|range| settings.contains(&format!("lan_cidr = \"{}\"", range.subnet)))
    };
    let (ok, said) = thread::scope(|scope| {
        let proof = scope.spawn(|| prove(driver, node, settings, &arguments));
        // A node of Docker or Podman is on this machine. At times the proof has no network, whose range no server
        // may take.
        let reserved = driver != "docker"
            || until("the proof has reserved its range, or ended", || {
                let reserved = is_reserved();
                Ok((reserved || proof.is_finished()).then_some(reserved))
            })?;
        let proven = proof.join().expect("no panic")?;
        ensure!(reserved, "the range of a proof is not reserved");
        Ok(proven)
    })?;
    ensure!(ok && said.contains(" 0 failed"), "{said}");
    println!("{said}");
    is_documented(&said, rows)
}
