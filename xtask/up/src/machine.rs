//! The capacity of the machine, and its free ports and networks.

use anyhow::{Context, Result};
use std::net::TcpListener;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use wharf_subnets::{InUse, Ipv4Net, Reservation, free, overlap};
use wharf_testkit::engine::short_hash;
use wharf_testkit::process::{command, output};

/// Reserved for the machine itself, GiB.
const RAM_KEPT_GIB: u64 = 1;
const DISK_KEPT_GIB: u64 = 10;
/// Room for the first day's instance, also while its disk of 12 GiB is made beside that of 10 GiB.
/// The storage is sparse: it takes what its content takes.
const DISK_LEAST_GIB: u64 = 32;
/// Reserved for images in an engine's storage, GiB.
pub(super) const IMAGES_GIB: u64 = 4;

/// The capacity of a node for instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    pub n_vcpus: u64,
    pub mem_gib: u64,
    pub disk_gib: u64,
}

impl Room {
    /// The capacity of this machine, with storage of this size.
    pub fn of_machine(disk_gib: u64) -> Self {
        let n_vcpus = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        Self::of(n_vcpus, ram_bytes(), disk_gib)
    }

    /// A capacity, less what the machine itself needs.
    pub fn of(n_vcpus: u64, ram_bytes: u64, disk_gib: u64) -> Self {
        Self {
            n_vcpus: n_vcpus.max(1),
            mem_gib: (ram_bytes >> 30).saturating_sub(RAM_KEPT_GIB).max(1),
            disk_gib,
        }
    }

    /// One of `count` equal shares.
    pub fn share(self, count: u64) -> Self {
        let count = count.max(1);
        Self {
            n_vcpus: (self.n_vcpus / count).max(1),
            mem_gib: (self.mem_gib / count).max(1),
            disk_gib: self.disk_gib / count,
        }
    }
}

fn ram_bytes() -> u64 {
    let table = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = table
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// The largest size of an engine's storage in this directory.
pub(super) fn disk_gib(dir: &Path) -> Result<u64> {
    let mut df = command("df");
    df.args(["--output=avail", "--block-size=1G"]).arg(dir);
    let table = output(&mut df)?;
    let free: u64 = table
        .lines()
        .nth(1)
        .context("df")?
        .trim()
        .parse()
        .context("df")?;
    Ok(storage_gib(free))
}

/// The size of an engine's storage on a disk with this much free.
fn storage_gib(free_gib: u64) -> u64 {
    free_gib.saturating_sub(DISK_KEPT_GIB).max(DISK_LEAST_GIB)
}

/// Networks for instances, each of one node, that nothing else on the machine uses.
pub(super) struct Networks {
    in_use: Vec<InUse>,
    /// The data directory, which holds the reservations.
    holder: PathBuf,
    reservations: Vec<Reservation>,
}

/// The second numbers of the networks to choose from, `10.N.0.0/16`.
const SECONDS: RangeInclusive<u8> = 80..=127;

impl Networks {
    /// Reads the machine's networks. Those of its engines are the installation's own, or others'.
    pub fn read(own: &[Ipv4Net], others: &[InUse], holder: &Path) -> Self {
        let is_own = |found: &InUse| own.iter().any(|own| own.contains(&found.subnet));
        let mut in_use = wharf_subnets::in_use(holder);
        in_use.retain(|found| !is_own(found));
        in_use.extend_from_slice(others);
        Self {
            in_use,
            holder: holder.to_owned(),
            reservations: Vec::new(),
        }
    }

    /// The owner of a network with some of these addresses.
    pub fn owner(&self, network: &str) -> Option<&InUse> {
        let network = network.parse().ok()?;
        self.in_use
            .iter()
            .find(|found| overlap(&found.subnet, &network))
    }

    /// Picks a network and reserves it, until this value is dropped. Different directories begin their
    /// search at different networks, because an installation may be stopped.
    pub fn pick(&mut self) -> Result<String> {
        let hash = short_hash(self.holder.as_os_str().as_encoded_bytes());
        let start = usize::from_str_radix(&hash, 16).unwrap_or(0) % SECONDS.len();
        let all = SECONDS.cycle().skip(start).take(SECONDS.len());
        let network = free(all, &self.in_use).context(NO_NETWORK)?.to_string();
        self.reserve(&network)?;
        Ok(network)
    }

    /// Reserves a network.
    pub fn reserve(&mut self, network: &str) -> Result<()> {
        let subnet = network.parse()?;
        self.reservations
            .push(Reservation::of_subnet(&subnet, &self.holder)?);
        let owner = "another node of this installation".to_owned();
        self.in_use.push(InUse { subnet, owner });
        Ok(())
    }
}

const NO_NETWORK: &str =
    "the machine has routes to, or its engines networks in, all of 10.80.0.0 to 10.127.255.255";

/// The addresses to listen on, of the REST interface and of pages.
#[derive(Clone, Copy)]
pub(super) struct Listen {
    pub rest: &'static str,
    pub pages: &'static str,
}

impl Listen {
    /// The usual ports, or any port for one that is taken or if `any` is set.
    pub fn new(any: bool) -> Self {
        let free = |usual| {
            if !any && TcpListener::bind(usual).is_ok() {
                usual
            } else {
                "127.0.0.1:0"
            }
        };
        Self {
            rest: free("127.0.0.1:8080"),
            pages: free("127.0.0.1:8081"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{IMAGES_GIB, InUse, Networks, Room, storage_gib};
    use std::path::Path;

    #[test]
    fn the_first_day_has_room_on_a_nearly_full_disk() {
        let page = include_str!("../../../docs/first-day.md");
        let after = page.split("--disk ").skip(1);
        // The old disk and the larger one are there together while the content moves.
        let sizes = after.map(|rest| {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u64>().unwrap()
        });
        let sizes: Vec<u64> = sizes.collect();
        assert_eq!(sizes, [10, 12]);
        assert!(storage_gib(0) - IMAGES_GIB >= sizes.iter().sum());
        assert_eq!(storage_gib(100), 90);
    }

    #[test]
    fn a_network_is_picked_that_nothing_else_has() {
        let all = |second| InUse {
            subnet: format!("10.{second}.7.0/24").parse().unwrap(),
            owner: "x".to_owned(),
        };
        // All but one.
        let others: Vec<_> = (80..127).map(all).collect();
        let mut networks = Networks::read(&[], &others, Path::new("/no/such/data"));
        networks.in_use = others;
        assert_eq!(networks.owner("10.80.0.0/16").unwrap().owner, "x");
        assert_eq!(networks.pick().unwrap(), "10.127.0.0/16");
        // Another node of this installation has it now.
        assert!(networks.pick().is_err());
    }

    #[test]
    fn engines_share_and_none_has_nothing() {
        let room = Room::of(4, 8 << 30, 100);
        let (n_vcpus, mem_gib) = (room.n_vcpus, room.mem_gib);
        assert_eq!((n_vcpus, mem_gib, room.disk_gib), (4, 7, 100));
        let third = room.share(3);
        assert_eq!((third.n_vcpus, third.mem_gib, third.disk_gib), (1, 2, 33));
        let least = Room::of(0, 0, 24);
        assert_eq!((least.n_vcpus, least.mem_gib), (1, 1));
    }
}
