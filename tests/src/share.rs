//! The share of a process in the ports and networks of all tests. Several processes of tests run beside each
//! other.

use std::sync::OnceLock;
use wharf_subnets::Reservation;

/// The number of shares.
const COUNT: u8 = 5;

/// Returns this process's share of `all` consecutive numbers: the first number, and the count.
///
/// # Panics
/// When other processes have all shares.
#[allow(clippy::expect_used, reason = "a test fails by panicking")]
pub fn of(all: u16) -> (u16, u16) {
    static OWN: OnceLock<(u8, Reservation)> = OnceLock::new();
    let (number, _) = OWN.get_or_init(|| {
        let reserve = |number| {
            let name = format!("tests-{number}");
            Reservation::of_ports(&name).expect("a socket for a reservation")
        };
        let mut free = (0..COUNT).filter_map(|number| Some((number, reserve(number)?)));
        free.next().expect("fewer than six processes of tests")
    });
    let each = all / u16::from(COUNT);
    (u16::from(*number) * each, each)
}
