//! Networks for the instances of a test's server.

use anyhow::{Context, Result};
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};
use wharf_testkit::process::output;

const FIRST: u8 = 100;
const COUNT: u8 = 150;

static NEXT: AtomicU8 = AtomicU8::new(0);

/// Returns a number n such that 10.n.0.0/16 is unused: no other server of this process has it, and
/// the machine has no route to it. Processes begin with different numbers, because other test runs
/// may be active.
pub fn free_network() -> Result<u8> {
    let routes = output(Command::new("ip").args(["-4", "route", "show"]))?;
    let taken = |prefix: &str| routes.lines().any(|route| route.starts_with(prefix));
    let start = u8::try_from(std::process::id() % u32::from(COUNT)).unwrap_or(0);
    let next = || {
        let n = u16::from(start) + u16::from(NEXT.fetch_add(1, Ordering::Relaxed));
        FIRST + u8::try_from(n % u16::from(COUNT)).unwrap_or(0)
    };
    let free = (0..COUNT)
        .map(|_| next())
        .find(|n| !taken(&format!("10.{n}.")));
    free.context("the machine has routes into all networks of the tests")
}
