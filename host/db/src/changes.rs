//! The changes that a use case writes.

use super::draft::Draft;
use super::key::{KeyPart, TableKey};
use super::rows::{BilledAs, EventRow};
use super::table::{Table, TableRow};
use super::tables::{BILLED_AS, CLAIMS, KeptTable};
use std::fmt;
use wharf_domain::audit::{AuditRecord, Origin};
use wharf_domain::capacity::Claim;
use wharf_domain::error::Error;
use wharf_domain::event::{EventKind, Initiator, InstanceEvent};
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::instance::{BilledSize, Instance};
use wharf_domain::kept::{Kept, KeptEvent};
use wharf_domain::ledger::{LedgerCost, LedgerEntry};
use wharf_domain::month::Month;
use wharf_domain::time::Timestamp;

/// One change of rows, as the method of [`Changes`] says that adds it.
#[derive(Debug)]
pub(super) enum Change {
    Instance(Box<Instance>),
    DropInstance(InstanceId),
    Lost(InstanceId, bool),
    Event(u32, Box<EventRow>),
    Entry(u32, LedgerEntry),
    CloseLedger(UserId, InstanceId, Vec<(Month, LedgerCost)>),
    List(UserId),
    TrimEvents(UserId, u64),
    DropEvents(InstanceId),
    Audit(Box<AuditRecord>),
    DropAudit(u64),
    Row(Box<dyn RowChange>),
}

/// A change of a row of any table.
pub(super) trait RowChange: fmt::Debug + Send {
    fn apply(&self, rows: &mut Draft<'_>) -> Result<(), Error>;
    /// The user whose budget the row takes from.
    fn user(&self) -> Option<UserId>;
}

struct Put<F: 'static, R: 'static, V: 'static> {
    table: &'static Table<F, R, V>,
    key: (F, R),
    row: Option<V>,
    is_new: bool,
}

impl<F: KeyPart, R: KeyPart, V: TableRow> RowChange for Put<F, R, V> {
    fn apply(&self, rows: &mut Draft<'_>) -> Result<(), Error> {
        let key = self.key.clone();
        match &self.row {
            Some(row) => rows.put(self.table, key, row).map(drop),
            None => rows.remove(self.table, key).map(drop),
        }
    }

    fn user(&self) -> Option<UserId> {
        let row = self.row.as_ref().filter(|_| self.is_new)?;
        self.table.user(&self.key.0, &self.key.1, row)
    }
}

/// A row may have a secret, so only its key is shown.
impl<F: KeyPart, R: KeyPart, V> fmt::Debug for Put<F, R, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.key)
    }
}

/// Changes that hold together or not at all.
#[derive(Debug, Default)]
#[must_use]
pub struct Changes(pub(super) Vec<Change>);

impl Changes {
    /// Nothing to write.
    pub fn none() -> Self {
        Self::default()
    }

    fn and(mut self, change: Change) -> Self {
        self.0.push(change);
        self
    }

    /// Adds the changes of another part of the use case.
    pub fn with(mut self, mut others: Self) -> Self {
        self.0.append(&mut others.0);
        self
    }

    /// Writes a row, over an earlier one. Indices follow it.
    pub fn put<F: KeyPart, R: KeyPart, V: TableRow>(
        self,
        table: &'static Table<F, R, V>,
        key: impl TableKey<F, R>,
        row: V,
    ) -> Self {
        self.set(table, key, Some(row))
    }

    /// Removes a row, with the rows that are parts of it.
    pub fn remove<F: KeyPart, R: KeyPart, V: TableRow>(
        self,
        table: &'static Table<F, R, V>,
        key: impl TableKey<F, R>,
    ) -> Self {
        self.set(table, key, None)
    }

    /// Writes a row, or removes it.
    pub fn set<F: KeyPart, R: KeyPart, V: TableRow>(
        self,
        table: &'static Table<F, R, V>,
        key: impl TableKey<F, R>,
        row: Option<V>,
    ) -> Self {
        self.row(table, key.parts(), row, true)
    }

    /// Writes a row over an earlier one, which costs its user nothing.
    pub fn rewrite<F: KeyPart, R: KeyPart, V: TableRow>(
        self,
        table: &'static Table<F, R, V>,
        key: impl TableKey<F, R>,
        row: V,
    ) -> Self {
        self.row(table, key.parts(), Some(row), false)
    }

    fn row<F: KeyPart, R: KeyPart, V: TableRow>(
        self,
        table: &'static Table<F, R, V>,
        key: (F, R),
        row: Option<V>,
        is_new: bool,
    ) -> Self {
        self.and(Change::Row(Box::new(Put {
            table,
            key,
            row,
            is_new,
        })))
    }

    /// Writes the claim of an instance, over an earlier one on that node.
    pub fn put_claim(self, id: InstanceId, claim: Claim) -> Self {
        self.put(&CLAIMS, (claim.node.0.clone(), id), claim)
    }

    /// Writes an instance, as the next version of its row.
    pub fn put_instance(self, mut instance: Instance) -> Self {
        instance.version += 1;
        self.and(Change::Instance(Box::new(instance)))
    }

    /// Removes an instance with its parts and its claim. Events and ledger stay.
    pub fn drop_instance(self, id: InstanceId) -> Self {
        self.and(Change::DropInstance(id))
    }

    /// Removes a volume with its shares, or a snapshot. Events and ledger stay.
    pub fn drop_kept<K: KeptTable>(self, kept: &Kept<K>) -> Self {
        let id: InstanceId = kept.id.into();
        self.put(&BILLED_AS, id, BilledAs::from(kept))
            .remove(K::ROWS, kept.id)
    }

    /// Notes whether an instance is lost with its node.
    pub fn set_lost(self, id: InstanceId, lost: bool) -> Self {
        self.and(Change::Lost(id, lost))
    }

    /// Notes a change of a part of an owner's list that is in no row of its instances.
    pub fn relist(self, owner: UserId) -> Self {
        self.and(Change::List(owner))
    }

    /// Replaces the ledger and the corrections of a purged instance by the costs of its months.
    pub fn close_ledger(
        self,
        owner: UserId,
        id: InstanceId,
        months: Vec<(Month, LedgerCost)>,
    ) -> Self {
        self.and(Change::CloseLedger(owner, id, months))
    }

    /// Removes an owner's events up to this number from the owner's sequence.
    pub fn trim_events(self, owner: UserId, through: u64) -> Self {
        self.and(Change::TrimEvents(owner, through))
    }

    /// Removes the events of a purged instance.
    pub fn drop_events(self, id: InstanceId) -> Self {
        self.and(Change::DropEvents(id))
    }

    /// Appends to the audit log.
    pub fn audit(self, record: AuditRecord) -> Self {
        self.and(Change::Audit(Box::new(record)))
    }

    /// Removes the records of the audit log up to this number. The last record stays.
    pub fn drop_audit(self, to: u64) -> Self {
        self.and(Change::DropAudit(to))
    }

    /// Adds an instance's new row with the event that led to it and, where the billed state
    /// changes, a ledger entry. The ledger's time never runs backwards within one instance.
    pub fn record(mut self, mut instance: Instance, now: Timestamp, what: EventKind) -> Self {
        let (at, state) = (now.max(instance.last_event_at), instance.state());
        self = self.event(&instance, now, what);
        instance.events += 1;
        instance.last_event_at = at;
        let billed = BilledSize {
            parts: state.billed(),
            size: instance.size,
        };
        if billed != instance.billed || instance.ledger_entries == 0 {
            let entry = LedgerEntry {
                instance: instance.id,
                owner: instance.owner,
                at,
                billed: billed.parts,
                size: instance.size,
                n_gpus: u32::try_from(instance.gpus.len()).unwrap_or(u32::MAX),
                rates: instance.rates,
            };
            self = self.and(Change::Entry(instance.ledger_entries, entry));
            instance.ledger_entries += 1;
            instance.billed = billed;
        }
        self.put_instance(instance)
    }

    /// Adds the new row of a volume or a snapshot with the event that led to it and, where its billing changes,
    /// a ledger entry. Events and ledger have the form of those of an instance with this id.
    pub fn record_kept<K: KeptTable>(
        mut self,
        mut kept: Kept<K>,
        now: Timestamp,
        what: KeptEvent,
    ) -> Self {
        let at = now.max(kept.last_event_at);
        let (instance, state) = (kept.id.into(), kept.billed_as());
        let what = kept.of.event(kept.status(), what);
        let event = EventRow {
            owner: kept.owner,
            seq: 0,
            name: Some(kept.name.as_str().to_owned()),
            initiator: what.usual_initiator(),
            event: InstanceEvent {
                at: now,
                instance,
                what,
                state,
                size: kept.size(),
            },
        };
        self = self.append_event(kept.events, event);
        kept.events += 1;
        kept.last_event_at = at;
        let is_billed = kept.is_billed();
        // The ledger has each change of the size, and one that was never made ends with none.
        let is_empty = kept.size_gib == 0 && kept.ledger_entries == 1;
        if is_billed != kept.billed || kept.ledger_entries == 0 || is_empty {
            let entry = LedgerEntry {
                instance,
                owner: kept.owner,
                at,
                billed: state.billed(),
                size: kept.size(),
                n_gpus: 0,
                rates: kept.rates(),
            };
            self = self.and(Change::Entry(kept.ledger_entries, entry));
            kept.ledger_entries += 1;
            kept.billed = is_billed;
        }
        self.put(K::ROWS, kept.id, kept)
    }

    /// Names the actor of all events.
    pub fn by(self, origin: &Origin) -> Self {
        self.initiated(&Initiator::Actor(origin.actor.clone()))
    }

    /// Names the initiator of all events.
    pub fn initiated(mut self, by: &Initiator) -> Self {
        for change in &mut self.0 {
            if let Change::Event(_, row) = change {
                row.initiator = by.clone();
            }
        }
        self
    }

    /// Adds an event of an instance whose row is not written.
    pub fn event(self, instance: &Instance, now: Timestamp, what: EventKind) -> Self {
        let row = EventRow {
            owner: instance.owner,
            seq: 0,
            name: Some(instance.name.as_str().to_owned()),
            initiator: what.usual_initiator(),
            event: InstanceEvent {
                // The write replaces it by the system's time.
                at: now,
                instance: instance.id,
                what,
                state: instance.state(),
                size: instance.size,
            },
        };
        self.append_event(instance.events, row)
    }

    /// Appends an event with its number to its instance, and to the events of its owner.
    pub fn append_event(self, number: u32, row: EventRow) -> Self {
        self.and(Change::Event(number, Box::new(row)))
    }

    /// Adds the audit record of changes of an instance; none if nothing changes. The events name the
    /// actor.
    pub fn audited(mut self, origin: &Origin, operation: &str, now: Timestamp) -> Self {
        self = self.by(origin);
        let Ok(instance) = self.instance() else {
            return self;
        };
        self.audit(AuditRecord {
            at: now,
            origin: origin.clone(),
            operation: operation.to_owned(),
            owner: Some(instance.owner),
            instance: Some(instance.id),
            subject: None,
            result: instance.state().as_str().to_owned(),
        })
    }

    /// Names another thing that changed in the audit records.
    pub fn about(mut self, subject: &str) -> Self {
        for change in &mut self.0 {
            if let Change::Audit(record) = change {
                record.subject = Some(subject.to_owned());
            }
        }
        self
    }

    /// Sets the times that people read: those of events and audit records. The ledger keeps its own.
    pub(super) fn stamp(&mut self, system: Timestamp) {
        for change in &mut self.0 {
            match change {
                Change::Event(_, row) => row.event.at = system,
                Change::Audit(record) => record.at = system,
                _ => {}
            }
        }
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The instance row that was put last.
    pub fn instance(&self) -> Result<Instance, Error> {
        let puts = self.0.iter().rev().find_map(|change| match change {
            Change::Instance(instance) => Some(Instance::clone(instance)),
            _ => None,
        });
        puts.ok_or_else(|| Error::internal("no instance was written"))
    }
}
