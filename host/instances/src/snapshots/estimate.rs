//! `snapshot-estimate/`: the time that a snapshot will take, and its price, without the snapshot.

use crate::App;
use crate::find::{Selector, find};
use wharf_db::{Changes, Read as _};
use wharf_domain::driver::SnapshotKind;
use wharf_domain::error::Error;
use wharf_domain::money::Rate;
use wharf_domain::snapshot::Snapshot;
use wharf_domain::state::InstanceState;
use wharf_ground::caller::Caller;

const GIB: u64 = 1 << 30;

/// The time in which engines copy a GiB, in seconds.
const SECONDS_A_GIB: u64 = 6;

/// The time that a snapshot will take, and its price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotEstimate {
    pub seconds: u64,
    /// Whether the instance stands still for that time.
    pub frozen: bool,
    pub size_gib: u32,
    pub rate: Rate,
}

impl App {
    /// Estimates a snapshot of an instance. Fails if none can be taken of it, whatever its number of snapshots.
    pub async fn estimate_snapshot(
        &self,
        caller: &Caller,
        selector: &Selector,
    ) -> Result<SnapshotEstimate, Error> {
        let (owner, named, taking) = (caller.user, selector.clone(), self.taking()?);
        let decided = self.db.write_essential(move |view| {
            let instance = find(view.rows, owner, &named)?;
            let kind = taking.check(view, &instance)?;
            Ok(((instance, kind), Changes::none()))
        });
        let (instance, kind) = decided.await?;
        let disk = instance.size.disk_size_gib;
        let used = match instance.state() {
            InstanceState::Running => {
                let stats = self.stats(caller, &Selector::Id(instance.id)).await;
                stats.ok().map(|stats| stats.disk_used_bytes)
            }
            _ => None,
        };
        let size_gib = copied_gib(disk, used);
        let copies = kind == SnapshotKind::Copied;
        Ok(SnapshotEstimate {
            seconds: if copies {
                SECONDS_A_GIB * u64::from(size_gib)
            } else {
                1
            },
            frozen: copies && instance.state() == InstanceState::Running,
            size_gib,
            rate: self.config().rates.rates(instance.cpu_tier, None).disk,
        })
    }

    /// The seconds that a snapshot takes, as [`Self::estimate_snapshot`] tells them before; none if it copies
    /// nothing.
    pub(crate) fn copy_seconds(&self, snapshot: &Snapshot) -> Option<u64> {
        let features = self.nodes.features(&snapshot.node)?;
        if features.snapshots != SnapshotKind::Copied {
            return None;
        }
        let of = snapshot.of.instance;
        let instance = self.db.read(|rows| rows.instance(of)).ok().flatten()?;
        let used = self.samples.disk_used(&instance);
        let size_gib = copied_gib(snapshot.of.disk_size_gib, used);
        Some(SECONDS_A_GIB * u64::from(size_gib))
    }
}

/// The size of a copy of a disk, of which this many bytes are in use.
fn copied_gib(disk_gib: u32, used: Option<u64>) -> u32 {
    // Without a measurement the whole disk is the most that it can be.
    let used = used.map_or(disk_gib, |bytes| {
        u32::try_from(bytes.div_ceil(GIB)).unwrap_or(disk_gib)
    });
    used.clamp(1, disk_gib.max(1))
}
