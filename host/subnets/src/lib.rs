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

/// A range in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InUse {
    /// The range.
    pub subnet: Ipv4Net,
    /// Its owner, for people.
    pub owner: String,
}

/// Whether two ranges have an address in common.
#[must_use]
pub fn overlap(one: &Ipv4Net, other: &Ipv4Net) -> bool {
    one.contains(other) || other.contains(one)
}
