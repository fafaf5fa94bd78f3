//! `snapshot-estimate/`: the time that a snapshot will take, and its price, without the snapshot.

use crate::App;
use crate::find::{Selector, find};
use wharf_db::Changes;
use wharf_domain::driver::SnapshotKind;
use wharf_domain::error::Error;
use wharf_domain::money::Rate;
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
        // Without a measurement the whole disk is the most that it can be.
        let used = used.map_or(disk, |bytes| {
            u32::try_from(bytes.div_ceil(GIB)).unwrap_or(disk)
        });
        let size_gib = used.clamp(1, disk.max(1));
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
}
