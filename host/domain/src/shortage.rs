//! Shortages: resources of which a node has less than its configured capacity. The driver reports
//! them, the event log stores them, and the user sees them.

use super::capacity::Size;
use super::driver::ReportedShortage;
use super::error::Shortfall;
use super::placement::Allocation;
use serde::{Deserialize, Serialize};

/// A field of a request that can exceed a node's resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Quantity {
    Vcpus,
    Mem,
    Disk,
    Gpus,
    SshPort,
    WebPort,
    LanAddress,
    PublicAddress,
}

/// A quantity of which the node has too little.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortage {
    pub quantity: Quantity,
    /// Requested amount.
    pub requested: u64,
    /// Available amount.
    pub available: u64,
}

/// Returns the shortages that prevent a running instance from being resized.
///
/// The current size always counts as available, whatever the driver reports. If the driver names no
/// field, every growing field is short. A shrinking field is never short.
pub fn of_resize(reported: &[ReportedShortage], from: Size, to: Size) -> Vec<Shortage> {
    let rows = [
        (Quantity::Vcpus, to.n_vcpus, from.n_vcpus),
        (Quantity::Mem, to.mem_gib, from.mem_gib),
        (Quantity::Disk, to.disk_size_gib, from.disk_size_gib),
    ];
    named(reported, &rows).unwrap_or_else(|| all(&rows))
}

/// Returns the shortages that prevent a stopped instance from starting.
///
/// If the driver names no field, none of the vCPUs and RAM count as available.
pub fn of_restart(reported: &[ReportedShortage], size: Size, gpus: usize) -> Vec<Shortage> {
    let compute = [
        (Quantity::Vcpus, size.n_vcpus, 0),
        (Quantity::Mem, size.mem_gib, 0),
    ];
    let others = [
        (Quantity::Disk, size.disk_size_gib, 0),
        (Quantity::Gpus, u32::try_from(gpus).unwrap_or(u32::MAX), 0),
    ];
    named(reported, &[compute, others].concat()).unwrap_or_else(|| all(&compute))
}

/// Returns the shortages of an instance whose allocations something outside Wharf holds.
pub fn of_lost(lost: &[Allocation]) -> Vec<Shortage> {
    let short = |what: &Allocation| Shortage {
        quantity: match what {
            Allocation::SshPort(_) => Quantity::SshPort,
            Allocation::WebPort(_) => Quantity::WebPort,
            Allocation::LanAddress(..) | Allocation::LanSubnet(..) => Quantity::LanAddress,
            Allocation::PublicAddress(_) => Quantity::PublicAddress,
            Allocation::Gpu(_) => Quantity::Gpus,
        },
        requested: 1,
        available: 0,
    };
    lost.iter().map(short).collect()
}

/// A quantity, its requested amount, and the amount that is certainly available.
type Row = (Quantity, u32, u32);

/// Returns the shortages among the rows that the driver names, or `None` if there are none.
fn named(reported: &[ReportedShortage], rows: &[Row]) -> Option<Vec<Shortage>> {
    let short: Vec<Shortage> = rows
        .iter()
        .filter_map(|(quantity, requested, certain)| {
            let found = reported.iter().find(|s| s.field == quantity.as_str())?;
            let available = found.available.max(u64::from(*certain));
            quantity.short(u64::from(*requested), available)
        })
        .collect();
    (!short.is_empty()).then_some(short)
}

fn all(rows: &[Row]) -> Vec<Shortage> {
    rows.iter()
        .filter_map(|(quantity, requested, certain)| {
            quantity.short(u64::from(*requested), u64::from(*certain))
        })
        .collect()
}

impl Quantity {
    /// Returns the spelling of the REST interface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vcpus => "n_vcpus",
            Self::Mem => "mem_gib",
            Self::Disk => "disk_size_gib",
            Self::Gpus => "n_gpus",
            Self::SshPort => "wan_ssh_port",
            Self::WebPort => "webapp_url",
            Self::LanAddress => "lan_ipv4",
            Self::PublicAddress => "public_ipv4",
        }
    }

    /// Returns whether Wharf allocates it from its own books.
    pub fn is_allocated(self) -> bool {
        matches!(
            self,
            Self::SshPort | Self::WebPort | Self::LanAddress | Self::PublicAddress
        )
    }

    fn short(self, requested: u64, available: u64) -> Option<Shortage> {
        (available < requested).then_some(Shortage {
            quantity: self,
            requested,
            available,
        })
    }
}

impl From<Vec<Shortage>> for Shortfall {
    fn from(short: Vec<Shortage>) -> Self {
        let row = |s: Shortage| (s.quantity.as_str(), s.requested, s.available);
        short.into_iter().map(row).collect::<Vec<_>>().into()
    }
}

#[cfg(test)]
mod tests {
    use super::{Shortage, of_resize, of_restart};
    use crate::capacity::Size;
    use crate::driver::ReportedShortage;
    use crate::error::Shortfall;

    fn size(n_vcpus: u32, mem_gib: u32, disk_size_gib: u32) -> Size {
        Size {
            n_vcpus,
            mem_gib,
            disk_size_gib,
        }
    }

    fn report(field: &str, available: u64) -> ReportedShortage {
        ReportedShortage {
            field: field.to_owned(),
            requested: 7,
            available,
        }
    }

    fn fields(short: Vec<Shortage>) -> Vec<(&'static str, u64, u64)> {
        Shortfall::from(short).fields
    }

    #[test]
    fn a_resize_is_short_of_the_fields_that_the_driver_names() {
        let (from, to) = (size(2, 4, 10), size(8, 16, 10));
        let short = |reported: &[ReportedShortage]| fields(of_resize(reported, from, to));
        assert_eq!(short(&[report("mem_gib", 9)]), [("mem_gib", 16, 9)]);
        // The current size counts as available.
        assert_eq!(short(&[report("mem_gib", 1)]), [("mem_gib", 16, 4)]);
        // No report, an unknown field, and a field that is not short.
        let grown = [("n_vcpus", 8, 2), ("mem_gib", 16, 4)];
        for useless in [&[][..], &[report("luck", 0)], &[report("n_vcpus", 8)]] {
            assert_eq!(short(useless), grown);
        }
        assert!(of_resize(&[report("n_vcpus", 0)], to, from).is_empty());
    }

    #[test]
    fn a_restart_is_short_of_the_fields_that_the_driver_names() {
        let short = |reported: &[ReportedShortage], gpus| {
            fields(of_restart(reported, size(2, 4, 10), gpus))
        };
        assert_eq!(short(&[report("n_vcpus", 1)], 0), [("n_vcpus", 2, 1)]);
        assert_eq!(short(&[report("n_gpus", 0)], 1), [("n_gpus", 1, 0)]);
        let compute = [("n_vcpus", 2, 0), ("mem_gib", 4, 0)];
        assert_eq!(short(&[report("n_gpus", 0)], 0), compute);
        assert_eq!(short(&[], 1), compute);
    }
}
