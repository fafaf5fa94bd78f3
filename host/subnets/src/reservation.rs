//! Reservations: Unix sockets with abstract names. The kernel shows them to every process with this
//! machine's network, and removes them with the process, however it ends.

use super::InUse;
use ipnet::Ipv4Net;
use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

/// The list of sockets.
const SOCKETS: &str = "/proc/net/unix";
/// The first part of a reservation's name.
const PREFIX: &str = "wharf-reserves/";
/// Most bytes of the holder in a name. A name of a socket has 107 bytes.
const HOLDER: usize = 64;

/// A range or a set of ports, reserved until it is dropped.
#[derive(Debug)]
pub struct Reservation {
    /// None if another process of this holder has the reservation.
    _socket: Option<UnixDatagram>,
}

impl Reservation {
    /// Reserves a range for the holder, which is a data directory. Reservations of others do not prevent
    /// it: see [`reserved`].
    ///
    /// # Errors
    /// When the kernel refuses the socket.
    pub fn of_subnet(subnet: &Ipv4Net, holder: &Path) -> io::Result<Self> {
        Self::of(&format!("{subnet}/{}", short(holder)))
    }

    /// Reserves a set of ports that has a name. None if another program has it.
    ///
    /// # Errors
    /// When the kernel refuses the socket.
    pub fn of_ports(name: &str) -> io::Result<Option<Self>> {
        let taken = Self::of(&format!("ports/{name}"))?;
        Ok(taken._socket.is_some().then_some(taken))
    }

    fn of(what: &str) -> io::Result<Self> {
        let name = SocketAddr::from_abstract_name(format!("{PREFIX}{what}"))?;
        let _socket = match UnixDatagram::bind_addr(&name) {
            Ok(socket) => Some(socket),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => None,
            Err(error) => return Err(error),
        };
        Ok(Self { _socket })
    }
}

/// Lists the ranges that others have reserved.
#[must_use]
pub fn reserved(holder: &Path) -> Vec<InUse> {
    let text = fs::read_to_string(SOCKETS).unwrap_or_default();
    let own = short(holder);
    let found = text.lines().filter_map(range);
    let others = found.filter(|(_, holder)| *holder != own);
    others
        .map(|(subnet, holder)| InUse {
            subnet,
            owner: format!("the Wharf with the data in {holder}"),
        })
        .collect()
}

/// The range and the holder in a line of the list.
fn range(line: &str) -> Option<(Ipv4Net, &str)> {
    let (_, what) = line.split_once(&format!(" @{PREFIX}"))?;
    let mut parts = what.splitn(3, '/');
    let subnet = format!("{}/{}", parts.next()?, parts.next()?)
        .parse()
        .ok()?;
    Some((subnet, parts.next()?))
}

/// The end of a path, which tells holders apart.
fn short(holder: &Path) -> String {
    let path = holder.to_string_lossy();
    let start = (0..=path.len()).find(|at| path.len() - at <= HOLDER && path.is_char_boundary(*at));
    path.get(start.unwrap_or(0)..)
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Reservation, range, reserved, short};
    use std::path::Path;

    #[test]
    fn a_reservation_is_seen_by_others_until_it_is_dropped() {
        let subnet = "198.51.100.8/29".parse().unwrap();
        let (own, other) = (Path::new("/a/data"), Path::new("/b/data"));
        let seen = |by| reserved(by).iter().any(|found| found.subnet == subnet);
        let held = Reservation::of_subnet(&subnet, own).unwrap();
        assert!(seen(other) && !seen(own));
        let again = Reservation::of_subnet(&subnet, own).unwrap();
        drop(again);
        assert!(seen(other));
        drop(held);
        assert!(!seen(other));
    }

    #[test]
    fn a_set_of_ports_has_one_holder() {
        let held = Reservation::of_ports("test").unwrap();
        assert!(held.is_some() && Reservation::of_ports("test").unwrap().is_none());
        drop(held);
        assert!(Reservation::of_ports("test").unwrap().is_some());
    }

    #[test]
    fn a_line_names_range_and_holder() {
        let line =
            "0000: 00000002 00000000 00000000 0002 01 4 @wharf-reserves/10.80.0.0/16//w/data";
        let (subnet, holder) = range(line).unwrap();
        assert_eq!(
            (subnet.to_string().as_str(), holder),
            ("10.80.0.0/16", "/w/data")
        );
        assert_eq!(range("0000: 2 @wharf-reserves/ports/0"), None);
        assert_eq!(short(Path::new(&"/ä".repeat(60))).len(), 63);
    }
}
