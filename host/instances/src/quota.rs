//! Quotas, checked within the write that would exceed them. An instance counts until its claim is
//! freed, so a deleted one counts until its node was seen without it, and so do a volume and a snapshot.

use super::{App, SharedInventory};
use serde::{Serialize, de::DeserializeOwned};
use wharf_db::{Draft, Rows, Table, tables};
use wharf_domain::capacity::{Claim, Size};
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::instance::ResourceType;
use wharf_domain::placement::{Placement, PlacementRequest};
use wharf_domain::quota::{Amounts, Over, QuotaLimits, QuotaUsage, UserLimit, over};
use wharf_ground::caller::Caller;

tables! {
    /// Limits of a user that differ from the configuration.
    pub const USER_LIMITS: Table<UserId, (), Amounts<UserLimit>> =
        Table::bounded(b'q', 3, "One row of a user, set by the operator",
            "Until the operator changes it");
}

/// The limits of users as they were until format 9, without volumes.
const LIMITS_9: Table<UserId, (), [UserLimit; 6]> = Table::bounded(b'q', 0, "", "");
/// The limits of users as they were until format 10, without snapshots.
const LIMITS_10: Table<UserId, (), [UserLimit; 8]> = Table::bounded(b'q', 2, "", "");

/// Gives the limits of users the quantities of volumes.
pub fn limit_volumes(rows: &mut Draft<'_>) -> Result<(), Error> {
    lengthen(rows, &LIMITS_9)
}

/// Gives the limits of users the quantities of snapshots, and a form that later quantities fit into.
pub fn limit_snapshots(rows: &mut Draft<'_>) -> Result<(), Error> {
    lengthen(rows, &LIMITS_10)
}

fn lengthen<const N: usize>(
    rows: &mut Draft<'_>,
    old: &'static Table<UserId, (), [UserLimit; N]>,
) -> Result<(), Error>
where
    [UserLimit; N]: Serialize + DeserializeOwned,
{
    let mut limits = Vec::new();
    for row in rows.all(old)? {
        match row {
            Ok((user, (), limit)) => limits.push((user, limit)),
            Err(error) => tracing::error!(error = %error.chain(), "a limit cannot be read"),
        }
    }
    for (user, limit) in limits {
        rows.remove(old, user)?;
        rows.put(&USER_LIMITS, user, &limit.to_vec().into())?;
    }
    Ok(())
}

/// The limits of a user, within a write.
pub fn limits(rows: &impl Rows, user: UserId, defaults: QuotaLimits) -> Result<QuotaLimits, Error> {
    Ok(rows
        .get(&USER_LIMITS, user)?
        .unwrap_or_default()
        .over_defaults(defaults))
}

/// A place for a new instance within its owner's quota.
///
/// The refusal names amounts that both the quota and a node allow.
pub(super) fn place(
    inventory: &SharedInventory,
    limits: QuotaLimits,
    request: &PlacementRequest,
) -> Result<Placement, Error> {
    let (used, wanted) = (inventory.known_used(request.owner)?, wanted(request));
    let mut fields = over(limits, used, QuotaUsage::default(), wanted);
    // A limit on ports is a share of the web ports too.
    if request.web && limits.n_ports.is_some() && !inventory.shares_web_ports(request.owner) {
        let without_page = wanted.n_ports.saturating_sub(1);
        merge(&mut fields, vec![("n_ports", wanted.n_ports, without_page)]);
    }
    if fields.is_empty() {
        return inventory.place(request);
    }
    match inventory.place(&reduced(request, &fields)) {
        // No smaller instance would be made either.
        Err(Error::Insufficient(short)) if short.no_image.is_some() => {
            return Err(Error::Insufficient(short));
        }
        Err(Error::Insufficient(short)) => merge(&mut fields, short.fields),
        _ => {}
    }
    Err(Error::OverQuota(fields.into()))
}

/// The quantities of a new instance.
fn wanted(request: &PlacementRequest) -> QuotaUsage {
    let open_ports = u64::from(request.resource_type == ResourceType::Vm);
    QuotaUsage {
        n_instances: 1,
        n_vcpus: request.size.n_vcpus.into(),
        mem_gib: request.size.mem_gib.into(),
        disk_size_gib: request.size.disk_size_gib.into(),
        n_gpus: request.gpu_model.is_some().into(),
        n_ports: 1 + u64::from(request.web) + open_ports,
        ..QuotaUsage::default()
    }
}

/// The request with the amounts that the quota allows.
fn reduced(request: &PlacementRequest, over: &[Over]) -> PlacementRequest {
    let mut reduced = request.clone();
    for (field, _, available) in over {
        let available = u32::try_from(*available).unwrap_or(u32::MAX);
        match *field {
            "n_vcpus" => reduced.size.n_vcpus = available,
            "mem_gib" => reduced.size.mem_gib = available,
            "disk_size_gib" => reduced.size.disk_size_gib = available,
            "n_gpus" => reduced.gpu_model = None,
            _ => {}
        }
    }
    reduced
}

fn merge(fields: &mut Vec<Over>, short: Vec<Over>) {
    for (field, requested, available) in short {
        match fields.iter_mut().find(|(name, _, _)| *name == field) {
            Some((_, _, least)) => *least = available.min(*least),
            None => fields.push((field, requested, available)),
        }
    }
}

/// Whether the quota allows other volumes or snapshots.
pub(super) fn kept(
    inventory: &SharedInventory,
    limits: QuotaLimits,
    owner: UserId,
    wanted: QuotaUsage,
) -> Result<(), Error> {
    let (used, none) = (inventory.used(owner), QuotaUsage::default());
    into_result(over(limits, used, none, wanted))
}

/// Whether the quota lets a claim grow.
pub(super) fn grow(
    inventory: &SharedInventory,
    limits: QuotaLimits,
    claim: &Claim,
    to: Size,
) -> Result<(), Error> {
    let mut grown = claim.clone();
    grown.size = claim.size.max(to);
    change(inventory, limits, claim, &grown)
}

/// Whether the quota lets a stopped instance have its compute back.
pub(super) fn reclaim(
    inventory: &SharedInventory,
    limits: QuotaLimits,
    claim: &Claim,
) -> Result<(), Error> {
    let mut reclaimed = claim.clone();
    reclaimed.compute = true;
    change(inventory, limits, claim, &reclaimed)
}

fn change(
    inventory: &SharedInventory,
    limits: QuotaLimits,
    old: &Claim,
    new: &Claim,
) -> Result<(), Error> {
    let used = inventory.known_used(old.owner)?;
    into_result(over(
        limits,
        used,
        QuotaUsage::of_claim(old),
        QuotaUsage::of_claim(new),
    ))
}

/// Whether the quota allows the ports of a VM, which `[before, after]` has.
pub(super) fn open(
    inventory: &SharedInventory,
    limits: QuotaLimits,
    owner: UserId,
    [before, after]: [&[u16]; 2],
) -> Result<(), Error> {
    let opened = after.len().saturating_sub(before.len());
    if opened == 0 {
        return Ok(());
    }
    let opened = QuotaUsage::of_ports(opened);
    let used = inventory.known_used(owner)?;
    into_result(over(limits, used, QuotaUsage::default(), opened))
}

fn into_result(fields: Vec<Over>) -> Result<(), Error> {
    if fields.is_empty() {
        Ok(())
    } else {
        Err(Error::OverQuota(fields.into()))
    }
}

impl App {
    /// Returns the caller's usage and limits.
    pub fn quota(&self, caller: &Caller) -> Result<(QuotaUsage, QuotaLimits), Error> {
        let defaults = self.config().quota.limits();
        let limits = self.db.read(|rows| limits(rows, caller.user, defaults))?;
        Ok((self.inventory.known_used(caller.user)?, limits))
    }
}
