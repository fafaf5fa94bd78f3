//! The capacity of the machine, and its free ports and networks.

use anyhow::{Context, Result};
use std::net::TcpListener;
use std::path::Path;
use wharf_testkit::process::{command, output};

/// Reserved for the machine itself, GiB.
const RAM_KEPT_GIB: u64 = 1;
const DISK_KEPT_GIB: u64 = 10;
/// Room for two instances of the smallest disk, 10 GiB.
const DISK_LEAST_GIB: u64 = 24;
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
    Ok(free.saturating_sub(DISK_KEPT_GIB).max(DISK_LEAST_GIB))
}

/// Finds `count` networks for instances that overlap neither the machine's routes nor these subnets.
pub(super) fn free_networks(count: usize, subnets: &[String]) -> Vec<String> {
    let routes = output(command("ip").args(["-4", "route", "show"])).unwrap_or_default();
    let known = routes.lines().chain(subnets.iter().map(String::as_str));
    let taken = |network: &str| known.clone().any(|route| route.starts_with(network));
    let all = (80..=127).map(|second| format!("10.{second}."));
    let free = all
        .filter(|network| !taken(network))
        .map(|network| format!("{network}0.0/16"));
    free.take(count).collect()
}

/// The address to listen on: the usual port, or any port if it is taken or `any` is set.
pub(super) fn listen(any: bool) -> &'static str {
    const USUAL: &str = "127.0.0.1:8080";
    if !any && TcpListener::bind(USUAL).is_ok() {
        USUAL
    } else {
        "127.0.0.1:0"
    }
}

/// Whether all name servers of the machine are link-local, as in some clouds. The node's rules keep
/// instances from such addresses.
pub(super) fn name_servers_are_link_local() -> bool {
    let files = ["/run/systemd/resolve/resolv.conf", "/etc/resolv.conf"];
    let text = files
        .iter()
        .find_map(|file| std::fs::read_to_string(file).ok());
    let text = text.unwrap_or_default();
    let mut servers = text
        .lines()
        .filter_map(|line| line.strip_prefix("nameserver "))
        .peekable();
    servers.peek().is_some() && servers.all(|server| server.trim().starts_with("169.254."))
}

#[cfg(test)]
mod tests {
    use super::Room;

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
