//! Networks for the instances of a test's server.

use crate::share;
use anyhow::{Context, Result};
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use wharf_subnets::{InUse, Ipv4Net, free, in_use};

const FIRST: u16 = 100;
const COUNT: u16 = 150;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// Returns a number n such that 10.n.0.0/16 is unused: no other server of a test has it, the machine has no
/// route to it, and no other Wharf has reserved it.
pub fn free_network() -> Result<u8> {
    free_network_beside(Vec::new())
}

/// [`free_network`] that overlaps none of these ranges. Podman has no route to a network without containers.
pub fn free_network_beside(ranges: Vec<Ipv4Net>) -> Result<u8> {
    let owner = String::new();
    let beside = ranges.into_iter().map(|subnet| InUse {
        subnet,
        owner: owner.clone(),
    });
    let on_machine = in_use(Path::new("")).into_iter();
    // A route to a whole organization yields to the more specific routes of the tests.
    let on_machine = on_machine.filter(|found| found.subnet.prefix_len() >= 16);
    let taken: Vec<_> = on_machine.chain(beside).collect();
    let (first, count) = share::of(COUNT);
    let next = |_| FIRST + first + NEXT.fetch_add(1, Ordering::Relaxed) % count;
    // Networks of a long run that stay on the machine may use up a share. Those of others are mostly free.
    let numbers = (0..count).map(next).chain(FIRST..FIRST + COUNT);
    let numbers = numbers.filter_map(|n| u8::try_from(n).ok());
    let free = free(numbers, &taken).map(|network| network.addr().octets()[1]);
    free.context("the machine has routes into all networks of the tests")
}
