//! Networks for the instances of a test's server.

use crate::share;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use wharf_subnets::reserved;
use wharf_testkit::process::output;

const FIRST: u16 = 100;
const COUNT: u16 = 150;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// Returns a number n such that 10.n.0.0/16 is unused: no other server of a test has it, the machine has no
/// route to it, and no other Wharf has reserved it.
pub fn free_network() -> Result<u8> {
    free_network_beside(Vec::new())
}

/// [`free_network`] that overlaps none of these ranges. Podman has no route to a network without containers.
pub fn free_network_beside(ranges: Vec<String>) -> Result<u8> {
    let routes = output(Command::new("ip").args(["-4", "route", "show"]))?;
    let mut taken = ranges;
    taken.extend(routes.lines().map(str::to_owned));
    taken.extend(
        reserved(Path::new(""))
            .iter()
            .map(|at| at.subnet.to_string()),
    );
    let taken = |prefix: &str| taken.iter().any(|range| range.starts_with(prefix));
    let (first, count) = share::of(COUNT);
    let next = || FIRST + first + NEXT.fetch_add(1, Ordering::Relaxed) % count;
    let free = (0..count)
        .map(|_| next())
        .find(|n| !taken(&format!("10.{n}.")));
    let free = free.and_then(|n| u8::try_from(n).ok());
    free.context("the machine has routes into all networks of the tests")
}
