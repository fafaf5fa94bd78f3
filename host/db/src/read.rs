//! Questions to the rows, within a write or apart from it.

use super::codec::internal;
use super::rows::{AuditHead, BilledAs, EventRow, KeptClaim, ProvisioningSpec};
use super::tables::{self as t, KeptTable};
use super::tree::Rows;
use uuid::Uuid;
use wharf_domain::audit::AuditRecord;
use wharf_domain::capacity::Claim;
use wharf_domain::error::Error;
use wharf_domain::event::InstanceEvent;
use wharf_domain::ids::{InstanceId, NodeId, SnapshotId, UserId, VolumeId};
use wharf_domain::instance::Instance;
use wharf_domain::ledger::{BillCorrection, LedgerCost, LedgerEntry};
use wharf_domain::month::Month;
use wharf_domain::secret::Fingerprint;
use wharf_domain::snapshot::OfSnapshot;
use wharf_domain::volume::OfVolume;

/// Questions to the rows.
#[expect(
    clippy::missing_errors_doc,
    reason = "all fail only if the file is broken"
)]
pub trait Read: Rows {
    /// The name of this installation towards engines.
    fn installation(&self) -> Result<Uuid, Error> {
        let found = self.get(&t::INSTALLATION, ())?;
        found.ok_or_else(|| internal("no installation id"))
    }

    /// The fingerprint of the key that encrypts secrets; none before the first secret.
    fn key_fingerprint(&self) -> Result<Option<Fingerprint>, Error> {
        self.get(&t::KEY_FINGERPRINT, ())
    }

    /// One instance, deleted ones included.
    fn instance(&self, id: InstanceId) -> Result<Option<Instance>, Error> {
        self.get(&t::INSTANCES, id)
    }

    /// The instance that has a name.
    fn id_of_name(&self, name: &str) -> Result<Option<InstanceId>, Error> {
        self.get(&t::NAMES, name)
    }

    /// An owner's instances, oldest first.
    fn owned_by(&self, owner: UserId) -> Result<Vec<Instance>, Error> {
        self.owned_after(owner, None, usize::MAX)
    }

    /// At most `limit` of an owner's instances, oldest first, that follow the sequence number
    /// `after`.
    fn owned_after(
        &self,
        owner: UserId,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Instance>, Error> {
        let first = after.map_or(0, |after| after.saturating_add(1));
        let mut found = Vec::new();
        for row in self.under_from(&t::OWNED, &owner, first)?.take(limit) {
            found.extend(self.instance(row?.1)?);
        }
        Ok(found)
    }

    /// The version of an owner's list: two readings of the list with the same version are equal.
    fn owner_version(&self, owner: UserId) -> Result<u64, Error> {
        let counters = self.get(&t::OWNERS, owner)?;
        Ok(counters.unwrap_or_default().version)
    }

    /// The place of an owner's next instance in the order of creation.
    fn next_seq(&self, owner: UserId) -> Result<u64, Error> {
        let counters = self.get(&t::OWNERS, owner)?;
        Ok(counters.unwrap_or_default().last_seq + 1)
    }

    /// The claim of an instance.
    fn claim(&self, id: InstanceId) -> Result<Option<Claim>, Error> {
        match self.instance(id)? {
            Some(instance) => self.get(&t::CLAIMS, (instance.node.0, id)),
            None => Ok(None),
        }
    }

    /// Calls `f` with the ledger of every instance, purged ones included.
    fn each_ledger(&self, mut f: impl FnMut(InstanceId, &[LedgerEntry])) -> Result<(), Error> {
        let mut entries: Vec<LedgerEntry> = Vec::new();
        for row in self.all(&t::LEDGER)? {
            let (id, _, entry) = row?;
            if let Some(last) = entries.last().filter(|last| last.instance != id) {
                f(last.instance, &entries);
                entries.clear();
            }
            entries.push(entry);
        }
        if let Some(last) = entries.last() {
            f(last.instance, &entries);
        }
        Ok(())
    }

    /// Whether an instance, a volume or a snapshot with this id is not purged.
    fn has_row(&self, id: InstanceId) -> Result<bool, Error> {
        Ok(self.instance(id)?.is_some()
            || self.get(&t::VOLUMES, VolumeId(id.0))?.is_some()
            || self.get(&t::SNAPSHOTS, SnapshotId(id.0))?.is_some())
    }

    /// The claims of all volumes and snapshots that are not lost.
    fn kept_claims(&self) -> Result<Vec<KeptClaim>, Error> {
        let mut found = Vec::new();
        claims_of::<OfVolume>(self, &mut found)?;
        claims_of::<OfSnapshot>(self, &mut found)?;
        Ok(found)
    }

    /// An instance, a volume or a snapshot as its bill shows it, which may be purged.
    fn billed_as(&self, id: InstanceId) -> Result<Option<BilledAs>, Error> {
        if let Some(instance) = self.instance(id)? {
            return Ok(Some((&instance).into()));
        }
        if let Some(volume) = self.get(&t::VOLUMES, VolumeId(id.0))? {
            return Ok(Some((&volume).into()));
        }
        if let Some(snapshot) = self.get(&t::SNAPSHOTS, SnapshotId(id.0))? {
            return Ok(Some((&snapshot).into()));
        }
        if let Some(kept) = self.get(&t::BILLED_AS, id)? {
            return Ok(Some(kept));
        }
        // Earlier versions kept events only.
        let last = self.event_rows(id)?.pop();
        Ok(last.map(|row| BilledAs {
            name: row.name,
            flavor: None,
            size: row.event.size,
        }))
    }

    /// The corrections of an instance's bill in order.
    fn corrections(&self, id: InstanceId) -> Result<Vec<BillCorrection>, Error> {
        self.under(&t::CORRECTIONS, &id)?
            .map(|row| row.map(|(_, correction)| correction))
            .collect()
    }

    /// The instances of an owner with a ledger or events.
    fn recorded_of(&self, owner: UserId) -> Result<Vec<InstanceId>, Error> {
        self.keys_under(&t::RECORDED, &owner)?.collect()
    }

    /// At most `limit` instances with a ledger or events that follow `after`, with their owners.
    fn recorded_after(
        &self,
        after: Option<(UserId, InstanceId)>,
        limit: usize,
    ) -> Result<Vec<(UserId, InstanceId)>, Error> {
        self.keys_after(&t::RECORDED, after)?.take(limit).collect()
    }

    /// Calls `f` with each month of an owner's closed ledgers.
    fn each_closed(
        &self,
        owner: UserId,
        mut f: impl FnMut(Month, InstanceId, LedgerCost),
    ) -> Result<(), Error> {
        for row in self.under(&t::CLOSED, &owner)? {
            let ((month, id), cost) = row?;
            f(Month(month), id, cost);
        }
        Ok(())
    }

    /// The part of an instance that only its creation needs.
    fn provisioning_spec(&self, id: InstanceId) -> Result<Option<ProvisioningSpec>, Error> {
        self.get(&t::PROVISIONING_SPECS, id)
    }

    /// The instances that the reconciler has work on.
    fn pending(&self) -> Result<Vec<InstanceId>, Error> {
        self.all(&t::PENDING)?
            .map(|row| row.map(|(id, (), ())| id))
            .collect()
    }

    /// The instances with a claim on a node, deleted ones included.
    fn on_node(&self, node: &NodeId) -> Result<Vec<InstanceId>, Error> {
        self.keys_under(&t::CLAIMS, &node.0)?.collect()
    }

    /// Whether an instance is lost with its node.
    fn is_lost(&self, id: InstanceId) -> Result<bool, Error> {
        Ok(self.get(&t::LOST, id)?.is_some())
    }

    /// The last record of the audit log that retention removed.
    fn audit_anchor(&self) -> Result<AuditHead, Error> {
        Ok(self.get(&t::AUDIT_ANCHOR, ())?.unwrap_or_default())
    }

    /// At most `limit` records of the audit log after the number `after`.
    fn audit(&self, after: u64, limit: usize) -> Result<Vec<(u64, AuditRecord)>, Error> {
        let from = after.saturating_add(1);
        let rows = self.under_from(&t::AUDIT, &(), from)?.take(limit);
        rows.map(|row| row.and_then(|(number, row)| Ok((number, row.read()?))))
            .collect()
    }

    /// At most `limit` records about an owner after the number `after`.
    fn audit_of(
        &self,
        owner: UserId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, AuditRecord)>, Error> {
        let from = (owner, after.saturating_add(1));
        let keys = self.keys_under_from(&t::AUDIT_BY_OWNER, &(), from)?;
        self.audit_rows(owner, keys.take(limit))
    }

    /// At most `limit` records about an owner before the number `before`, the last one first.
    fn audit_of_before(
        &self,
        owner: UserId,
        before: u64,
        limit: usize,
    ) -> Result<Vec<(u64, AuditRecord)>, Error> {
        let keys = self.keys_under_before(&t::AUDIT_BY_OWNER, &(), (owner, before))?;
        self.audit_rows(owner, keys.take(limit))
    }

    /// The records of an owner with these numbers, up to the first number of another owner.
    fn audit_rows(
        &self,
        owner: UserId,
        keys: impl Iterator<Item = Result<(UserId, u64), Error>>,
    ) -> Result<Vec<(u64, AuditRecord)>, Error> {
        let mut records = Vec::new();
        for key in keys {
            let (of, number) = key?;
            if of != owner {
                break;
            }
            let row = self.get(&t::AUDIT, number)?;
            let row = row.ok_or_else(|| internal(format!("audit record {number} is missing")))?;
            records.push((number, row.read()?));
        }
        Ok(records)
    }

    /// Calls `f` with each claim.
    fn each_claim(&self, mut f: impl FnMut(InstanceId, Claim)) -> Result<(), Error> {
        for row in self.all(&t::CLAIMS)? {
            let (_, id, claim) = row?;
            f(id, claim);
        }
        Ok(())
    }

    /// Calls `f` with each instance, deleted ones included.
    fn each_instance(&self, mut f: impl FnMut(Instance)) -> Result<(), Error> {
        for row in self.all(&t::INSTANCES)? {
            f(row?.2);
        }
        Ok(())
    }

    /// Whether `f` holds for any instance, deleted ones included.
    fn any_instance(&self, mut f: impl FnMut(&Instance) -> bool) -> Result<bool, Error> {
        for row in self.all(&t::INSTANCES)? {
            if f(&row?.2) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The events of an instance in order.
    fn events(&self, id: InstanceId) -> Result<Vec<InstanceEvent>, Error> {
        let rows = self.event_rows(id)?.into_iter();
        Ok(rows.map(|row| row.event).collect())
    }

    /// The events of an instance in order, with their places among those of its owner.
    fn event_rows(&self, id: InstanceId) -> Result<Vec<EventRow>, Error> {
        self.under(&t::EVENTS, &id)?
            .map(|row| row.map(|(_, event)| event))
            .collect()
    }

    /// The number of the last event that was removed from an owner's sequence.
    fn trimmed_events(&self, owner: UserId) -> Result<u64, Error> {
        Ok(self.get(&t::TRIMMED_EVENTS, owner)?.unwrap_or_default())
    }

    /// The number of an owner's last event.
    fn last_event(&self, owner: UserId) -> Result<u64, Error> {
        match self.last_under(&t::OWNER_EVENTS, &owner)? {
            Some((seq, _)) => Ok(seq),
            None => self.trimmed_events(owner),
        }
    }

    /// At most `limit` events of an owner after the number `after`.
    fn owner_events(
        &self,
        owner: UserId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<EventRow>, Error> {
        let from = after.saturating_add(1);
        let places = self.under_from(&t::OWNER_EVENTS, &owner, from)?;
        let places = places.take(limit).map(|place| {
            let (seq, (id, number)) = place?;
            let row = self.get(&t::EVENTS, (id, number))?;
            row.ok_or_else(|| internal(format!("event {seq} of user {} is missing", owner.0)))
        });
        places.collect()
    }

    /// At most `limit` events of one instance after the number `after` among those of its owner.
    fn instance_events(
        &self,
        id: InstanceId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<EventRow>, Error> {
        let last = self.last_under(&t::EVENTS, &id)?;
        let (mut low, mut high) = (0, last.map_or(0, |(number, _)| number.saturating_add(1)));
        // The numbers ascend together, so a binary search finds the first one.
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(&t::EVENTS, (id, middle))? {
                Some(row) if row.seq > after => high = middle,
                _ => low = middle + 1,
            }
        }
        let rows = self.under_from(&t::EVENTS, &id, low)?.take(limit);
        rows.map(|row| row.map(|(_, event)| event)).collect()
    }

    /// Whether there ever was such an instance: its events outlive it.
    fn was_made(&self, id: InstanceId) -> Result<bool, Error> {
        Ok(self.get(&t::EVENTS, (id, 0))?.is_some())
    }

    /// The ledger of an instance in order.
    fn ledger(&self, id: InstanceId) -> Result<Vec<LedgerEntry>, Error> {
        self.under(&t::LEDGER, &id)?
            .map(|row| row.map(|(_, entry)| entry))
            .collect()
    }
}

impl<T: Rows> Read for T {}

fn claims_of<K: KeptTable>(
    rows: &(impl Rows + ?Sized),
    found: &mut Vec<KeptClaim>,
) -> Result<(), Error> {
    for row in rows.all(K::ROWS)? {
        let (id, (), kept) = row?;
        if !kept.is_lost() {
            found.push(KeptClaim {
                id: id.into(),
                word: K::WORD,
                name: kept.name,
                node: kept.node,
                size_gib: kept.size_gib,
            });
        }
    }
    Ok(())
}
