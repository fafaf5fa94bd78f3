//! The IPv4 ranges in use on this machine, and reservations by running programs of Wharf.
//!
//! - [`routes`]: the ranges of interfaces and routes.
//! - [`Reservation`]: a range or a set of ports that a program is about to use, before any interface
//!   has it.

mod reservation;
mod routes;

pub use reservation::{Reservation, reserved};
pub use routes::routes;

pub use ipnet::Ipv4Net;

use std::net::Ipv4Addr;
use std::path::Path;

/// A range in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InUse {
    /// The range.
    pub subnet: Ipv4Net,
    /// Its owner, for people.
    pub owner: String,
}

/// The ranges in use on this machine, without those that `holder` has reserved.
#[must_use]
pub fn in_use(holder: &Path) -> Vec<InUse> {
    routes().into_iter().chain(reserved(holder)).collect()
}

/// Finds a range `10.N.0.0/16` that overlaps no range in use, with the first N that has one.
#[must_use]
pub fn free(numbers: impl IntoIterator<Item = u8>, in_use: &[InUse]) -> Option<Ipv4Net> {
    let is_free = |range: &Ipv4Net| !in_use.iter().any(|found| overlap(&found.subnet, range));
    numbers
        .into_iter()
        .filter_map(|n| Ipv4Net::new(Ipv4Addr::new(10, n, 0, 0), 16).ok())
        .find(is_free)
}

/// Whether two ranges have an address in common.
#[must_use]
pub fn overlap(one: &Ipv4Net, other: &Ipv4Net) -> bool {
    one.contains(other) || other.contains(one)
}
