//! The tables of instances, volumes, claims, events, the ledger and the audit log. Each feature declares its
//! own tables.
//!
//! Claims are in a group of their own, because a start reads all of them.

use super::key::{KeyPart, TableKey};
use super::rows::{AuditHead, AuditRow, BilledAs, EventRow, MoveRow, OwnerRow, ProvisioningSpec};
use super::table::Table;
use super::{audit, events, recorded};
use uuid::Uuid;
use wharf_domain::capacity::Claim;
use wharf_domain::ids::{InstanceId, SnapshotId, UserId, VolumeId};
use wharf_domain::instance::{Instance, Intent, Progress};
use wharf_domain::kept::{Kept, KeptKind};
use wharf_domain::ledger::{BillCorrection, LedgerCost, LedgerEntry};
use wharf_domain::secret::Fingerprint;
use wharf_domain::snapshot::{OfSnapshot, Snapshot};
use wharf_domain::volume::{OfVolume, Volume};

/// The bound of a table with one row of each user.
pub const OF_USER: &str = "One row of each user; the operator and the provider make users";
const ONE: &str = "One row";
const ALWAYS: &str = "Always";
const OF_VOLUMES: &str = "`[quota]`, and the disks of nodes";
const OF_SNAPSHOTS: &str = "32 of an instance, and the disks of nodes";
const UNMADE: &str = "Until the node was seen without the deleted volume";
const UNTAKEN: &str = "Until the node was seen without the deleted snapshot";
const OF_INSTANCES: &str = "`[quota]`, and the ports and addresses of nodes";
const SEEN: &str = "Until the node was seen without the deleted instance";
const BUDGET: &str = "The budget";
const EVENTS_KEPT: &str = "`retention.events_days` after the last one of a purged instance";
const LEDGER_KEPT: &str = "`retention.ledger_months` after the last entry of a purged instance";
const MONTHS: &str = "The budget: the months of instances with a ledger";

crate::tables! {
    /// The name of this installation towards engines.
    pub const INSTALLATION: Table<(), (), Uuid> = Table::bounded(b'#', 0, ONE, ALWAYS);
    /// The fingerprint of the key that encrypts secrets.
    pub const KEY_FINGERPRINT: Table<(), (), Fingerprint> = Table::bounded(b'#', 1, ONE, ALWAYS);

    /// Instances.
    pub const INSTANCES: Table<InstanceId, (), Instance> =
        Table::bounded(b'i', 0, OF_INSTANCES, SEEN).indexed(|id, (), row, entries| {
            if row.progress == Progress::Pending {
                entries.put(&PENDING, *id, &())?;
            }
            if row.intent == Intent::Delete {
                return Ok(());
            }
            entries.put(&OWNED, (row.owner, row.seq), id)?;
            // A change under way may reserve another name.
            let reserved = row.resize.as_ref().and_then(|resize| resize.name.as_ref());
            std::iter::once(&row.name)
                .chain(reserved)
                .try_for_each(|name| entries.put(&NAMES, name.as_str(), id))
        });
    /// Data that only the creation of an instance needs.
    pub const PROVISIONING_SPECS: Table<InstanceId, (), ProvisioningSpec> =
        Table::part_of(&INSTANCES, b'i', 1);
    /// Name → instance, of instances that are not deleted.
    pub const NAMES: Table<String, (), InstanceId> = Table::index_of(&INSTANCES, b'n', 0);
    /// Instances of an owner in order of creation, without deleted ones.
    pub const OWNED: Table<UserId, u64, InstanceId> = Table::index_of(&INSTANCES, b'o', 1);
    /// Instances whose node has not been seen to follow the intent.
    pub const PENDING: Table<InstanceId, (), ()> = Table::index_of(&INSTANCES, b'p', 0);
    /// Counters of an owner.
    pub const OWNERS: Table<UserId, (), OwnerRow> = Table::bounded(b'o', 0, OF_USER, ALWAYS);

    /// Volumes.
    pub const VOLUMES: Table<VolumeId, (), Volume> =
        Table::bounded(b'v', 0, OF_VOLUMES, UNMADE)
            .indexed(|id, (), row, entries| {
                entries.put(&VOLUME_PLACES, ((), row.seq), id)?;
                if !row.is_lost() {
                    entries.put(&VOLUMES_ON, (&*row.node.0, *id), &())?;
                }
                if row.deleted {
                    return Ok(());
                }
                let name = row.name.as_str().to_owned();
                entries.put(&VOLUME_NAMES, (row.owner, name), id)
            })
            .followed();
    /// Volumes of an owner by name, without deleted ones.
    pub const VOLUME_NAMES: Table<UserId, String, VolumeId> =
        Table::index_of(&VOLUMES, b'm', 0);
    /// Volumes in the order of creation.
    pub const VOLUME_PLACES: Table<(), u64, VolumeId> = Table::index_of(&VOLUMES, b'V', 0);
    /// Volumes by node, without lost ones.
    pub const VOLUMES_ON: Table<String, VolumeId, ()> = Table::index_of(&VOLUMES, b'W', 0);

    /// Snapshots.
    pub const SNAPSHOTS: Table<SnapshotId, (), Snapshot> =
        Table::bounded(b'd', 0, OF_SNAPSHOTS, UNTAKEN)
            .indexed(|id, (), row, entries| {
                entries.put(&SNAPSHOTS_OF, (row.of.instance, *id), &())?;
                if !row.is_lost() {
                    entries.put(&SNAPSHOTS_ON, (&*row.node.0, *id), &())?;
                }
                if row.deleted {
                    return Ok(());
                }
                entries.put(&SNAPSHOTS_OWNED, (row.owner, row.seq), id)
            })
            .followed();
    /// Snapshots of an instance, deleted ones included.
    pub const SNAPSHOTS_OF: Table<InstanceId, SnapshotId, ()> =
        Table::index_of(&SNAPSHOTS, b'd', 1);
    /// Snapshots of an owner in the order of creation, without deleted ones.
    pub const SNAPSHOTS_OWNED: Table<UserId, u64, SnapshotId> =
        Table::index_of(&SNAPSHOTS, b'o', 2);
    /// Snapshots by node, without lost ones.
    pub const SNAPSHOTS_ON: Table<String, SnapshotId, ()> = Table::index_of(&SNAPSHOTS, b'D', 0);

    /// Claims by node.
    pub const CLAIMS: Table<String, InstanceId, Claim> =
        Table::bounded(b'c', 0, OF_INSTANCES, SEEN).followed();
    /// Moves of instances to other nodes, with the claims that are reserved there.
    pub const MOVES: Table<(), InstanceId, MoveRow> =
        Table::part_of(&INSTANCES, b'x', 4).followed();
    /// Instances whose node was lost with their disk. They have no claim.
    pub const LOST: Table<(), InstanceId, ()> = Table::part_of(&INSTANCES, b'x', 5);

    /// Events of an instance by number. They outlive it.
    pub const EVENTS: Table<InstanceId, u32, EventRow> =
        Table::budgeted(b'i', 2, |_, _, row| Some(row.owner), BUDGET, EVENTS_KEPT)
            .checked(events::check);
    /// The events of an owner by number, without a gap: instance, and number within it.
    pub const OWNER_EVENTS: Table<UserId, u64, (InstanceId, u32)> =
        Table::bounded(b'E', 0, BUDGET, EVENTS_KEPT);
    /// The number of the last event that was removed from [`OWNER_EVENTS`].
    pub const TRIMMED_EVENTS: Table<UserId, (), u64> = Table::bounded(b'E', 1, OF_USER, ALWAYS);

    /// Ledger entries of an instance by number. They outlive it.
    pub const LEDGER: Table<InstanceId, u32, LedgerEntry> =
        Table::budgeted(b'i', 3, |_, _, row| Some(row.owner), BUDGET, LEDGER_KEPT);
    /// Corrections of an instance's bill by number. They outlive it.
    pub const CORRECTIONS: Table<InstanceId, u32, BillCorrection> =
        Table::bounded(b'i', 4, BUDGET, LEDGER_KEPT);
    /// Instances of an owner with a ledger or events, purged ones included.
    pub const RECORDED: Table<UserId, InstanceId, ()> =
        Table::bounded(b'r', 0, BUDGET, LEDGER_KEPT).checked(recorded::check);
    /// Whether [`RECORDED`] has the instances of earlier versions.
    pub const RECORDED_ALL: Table<(), (), ()> = Table::bounded(b't', 1, ONE, ALWAYS);
    /// Purged instances as their owners knew them, for as long as their costs are kept.
    pub const BILLED_AS: Table<InstanceId, (), BilledAs> = Table::bounded(b'i', 5, MONTHS, ALWAYS);
    /// Costs of an owner's instances whose ledger was closed, by [`Month`](wharf_domain::month::Month).
    pub const CLOSED: Table<UserId, (u32, InstanceId), LedgerCost> =
        Table::bounded(b'b', 0, MONTHS, ALWAYS);

    /// The audit log by number.
    pub const AUDIT: Table<(), u64, AuditRow> = Table::budgeted(
        b'a',
        0,
        |(), _, row| row.read().ok()?.owner,
        BUDGET,
        "`retention.audit_days`",
    )
    .indexed(|(), number, row, entries| match row.read()?.owner {
        Some(owner) => entries.put(&AUDIT_BY_OWNER, ((), (owner, *number)), &()),
        None => Ok(()),
    })
    .checked(audit::check);
    /// The numbers of the records about an owner.
    pub const AUDIT_BY_OWNER: Table<(), (UserId, u64), ()> = Table::index_of(&AUDIT, b'a', 1);
    /// The last record that retention removed. The chain goes on from it.
    pub const AUDIT_ANCHOR: Table<(), (), AuditHead> = Table::bounded(b'a', 2, ONE, ALWAYS);
}

/// A kind of kept data with its tables.
pub trait KeptTable: KeptKind<Id: KeyPart + TableKey<Self::Id, ()>> {
    /// The rows.
    const ROWS: &'static Table<Self::Id, (), Kept<Self>>;
    /// The rows by node, without lost ones.
    const ON_NODE: &'static Table<String, Self::Id, ()>;
}

impl KeptTable for OfVolume {
    const ROWS: &'static Table<VolumeId, (), Volume> = &VOLUMES;
    const ON_NODE: &'static Table<String, VolumeId, ()> = &VOLUMES_ON;
}

impl KeptTable for OfSnapshot {
    const ROWS: &'static Table<SnapshotId, (), Snapshot> = &SNAPSHOTS;
    const ON_NODE: &'static Table<String, SnapshotId, ()> = &SNAPSHOTS_ON;
}
