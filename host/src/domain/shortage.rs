//! What a node turned out to have less of than its capacity said: a driver's word for it, as the
//! event log keeps it and the user is told.

use super::capacity::Size;
use super::driver::Shortage;
use super::error::Shortfall;
use serde::{Deserialize, Serialize};

/// A field of a request that a node can be short of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Quantity {
    /// `n_vcpus`
    Vcpus,
    /// `mem_gib`
    Mem,
    /// `disk_size_gib`
    Disk,
    /// `n_gpus`
    Gpus,
}

/// One limiting field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Short {
    /// Which.
    pub quantity: Quantity,
    /// What the instance was to have.
    pub requested: u64,
    /// What it can have.
    pub available: u64,
}

/// Why a running instance does not get from one size to another. What it has it can have, whatever
/// the driver says; where the driver names nothing, that is all that is known. Nothing is short of
/// what only shrinks.
pub fn of_resize(said: &[Shortage], from: Size, to: Size) -> Vec<Short> {
    let rows = [
        (Quantity::Vcpus, to.n_vcpus, from.n_vcpus),
        (Quantity::Mem, to.mem_gib, from.mem_gib),
        (Quantity::Disk, to.disk_size_gib, from.disk_size_gib),
    ];
    named(said, &rows).unwrap_or_else(|| all(&rows))
}

/// Why a stopped instance does not start. Where the driver names nothing, nothing is known to be
/// there.
pub fn of_restart(said: &[Shortage], size: Size, gpus: usize) -> Vec<Short> {
    let compute = [
        (Quantity::Vcpus, size.n_vcpus, 0),
        (Quantity::Mem, size.mem_gib, 0),
    ];
    let others = [
        (Quantity::Disk, size.disk_size_gib, 0),
        (Quantity::Gpus, u32::try_from(gpus).unwrap_or(u32::MAX), 0),
    ];
    named(said, &[compute, others].concat()).unwrap_or_else(|| all(&compute))
}

/// A quantity, what is asked for, and what can be had for certain.
type Row = (Quantity, u32, u32);

/// The rows that the driver names and that are short indeed; none if there is no such row.
fn named(said: &[Shortage], rows: &[Row]) -> Option<Vec<Short>> {
    let short: Vec<Short> = rows
        .iter()
        .filter_map(|(quantity, requested, certain)| {
            let found = said.iter().find(|s| s.field == quantity.as_str())?;
            let available = found.available.max(u64::from(*certain));
            quantity.short(u64::from(*requested), available)
        })
        .collect();
    (!short.is_empty()).then_some(short)
}

fn all(rows: &[Row]) -> Vec<Short> {
    rows.iter()
        .filter_map(|(quantity, requested, certain)| {
            quantity.short(u64::from(*requested), u64::from(*certain))
        })
        .collect()
}

impl Quantity {
    /// As the wire spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vcpus => "n_vcpus",
            Self::Mem => "mem_gib",
            Self::Disk => "disk_size_gib",
            Self::Gpus => "n_gpus",
        }
    }

    fn short(self, requested: u64, available: u64) -> Option<Short> {
        (available < requested).then_some(Short {
            quantity: self,
            requested,
            available,
        })
    }
}

impl From<Vec<Short>> for Shortfall {
    fn from(short: Vec<Short>) -> Self {
        let row = |s: Short| (s.quantity.as_str(), s.requested, s.available);
        Self {
            fields: short.into_iter().map(row).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Short, of_resize, of_restart};
    use crate::domain::capacity::Size;
    use crate::domain::driver::Shortage;
    use crate::domain::error::Shortfall;

    fn size(n_vcpus: u32, mem_gib: u32, disk_size_gib: u32) -> Size {
        Size {
            n_vcpus,
            mem_gib,
            disk_size_gib,
        }
    }

    fn said(field: &str, available: u64) -> Shortage {
        Shortage {
            field: field.to_owned(),
            requested: 7,
            available,
        }
    }

    fn fields(short: Vec<Short>) -> Vec<(&'static str, u64, u64)> {
        Shortfall::from(short).fields
    }

    #[test]
    fn a_resize_is_short_of_what_the_driver_names() {
        let (from, to) = (size(2, 4, 10), size(8, 16, 10));
        let short = |said: &[Shortage]| fields(of_resize(said, from, to));
        assert_eq!(short(&[said("mem_gib", 9)]), [("mem_gib", 16, 9)]);
        // What it has it can keep.
        assert_eq!(short(&[said("mem_gib", 1)]), [("mem_gib", 16, 4)]);
        // Nothing, nothing known, nothing that is short.
        let grown = [("n_vcpus", 8, 2), ("mem_gib", 16, 4)];
        for nothing in [&[][..], &[said("luck", 0)], &[said("n_vcpus", 8)]] {
            assert_eq!(short(nothing), grown);
        }
        assert!(of_resize(&[said("n_vcpus", 0)], to, from).is_empty());
    }

    #[test]
    fn a_restart_is_short_of_what_the_driver_names() {
        let short = |said: &[Shortage], gpus| fields(of_restart(said, size(2, 4, 10), gpus));
        assert_eq!(short(&[said("n_vcpus", 1)], 0), [("n_vcpus", 2, 1)]);
        assert_eq!(short(&[said("n_gpus", 0)], 1), [("n_gpus", 1, 0)]);
        let nothing = [("n_vcpus", 2, 0), ("mem_gib", 4, 0)];
        assert_eq!(short(&[said("n_gpus", 0)], 0), nothing);
        assert_eq!(short(&[], 1), nothing);
    }
}
