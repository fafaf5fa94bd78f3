//! The changes that a use case writes.

use super::accounts::AccountChange;
use super::rows::{
    ClockRow, EventRow, IdempotencyDigest, IdempotentCreate, KeyRow, KeyTerms, MoveRow, NodeRow,
    ProvisioningSpec, SshKeyId, SshKeyRow, StartRow,
};
use super::sign_in_ways::WayChange;
use wharf_domain::audit::{AuditRecord, Origin};
use wharf_domain::capacity::Claim;
use wharf_domain::error::Error;
use wharf_domain::event::{Event, Party, What};
use wharf_domain::host_key::HostKey;
use wharf_domain::ids::{InstanceId, NodeId, UserId};
use wharf_domain::instance::Instance;
use wharf_domain::ledger::{Correction, Cost, Entry};
use wharf_domain::month::Month;
use wharf_domain::quota::{Amounts, UserLimit};
use wharf_domain::secret::{Encrypted, Fingerprint};
use wharf_domain::suspension::Suspension;
use wharf_domain::time::Timestamp;
use wharf_domain::webhook::{Delivery, Webhook, WebhookId};

/// One change of rows. Indices (names, owners, pending) follow from the instance row.
#[derive(Debug)]
pub enum Change {
    /// Writes an instance.
    PutInstance(Box<Instance>),
    /// Removes an instance with its provisioning spec and its claim. Events and ledger stay.
    DropInstance(InstanceId),
    /// Writes a claim, and replaces an earlier one.
    PutClaim(InstanceId, Claim),
    /// Writes the provisioning spec.
    PutProvisioningSpec(InstanceId, Box<ProvisioningSpec>),
    /// Appends to the event log, with its number, and to the events of its owner.
    Event(u32, Box<EventRow>),
    /// Appends to the ledger, with its number.
    Entry(u32, Entry),
    /// Replaces the ciphertexts of an instance's password and of its given secrets. The plain texts
    /// are the same, so versions stay.
    PutSecrets(InstanceId, Option<Encrypted>, Option<Encrypted>),
    /// Notes the key that encrypts secrets.
    PutKeyFingerprint(Fingerprint),
    /// Appends to the corrections of a bill, with its number.
    Correction(InstanceId, u32, Correction),
    /// Replaces the ledger and the corrections of a purged instance by the costs of its months.
    CloseLedger(UserId, InstanceId, Vec<(Month, Cost)>),
    /// Removes an owner's events up to this number from the owner's sequence.
    TrimEvents(UserId, u64),
    /// Removes the events of a purged instance.
    DropEvents(InstanceId),
    /// Forgets an instance without ledger and events.
    Forget(UserId, InstanceId),
    /// A new user.
    PutUser(UserId, String),
    /// The limits of a user.
    PutUserLimits(UserId, Amounts<UserLimit>),
    /// The facts about a node.
    PutNode(NodeId, NodeRow),
    /// Begins or ends the drain of a node.
    Drain(NodeId, bool),
    /// Begins or ends the suspension of an instance.
    Suspend(InstanceId, Option<Suspension>),
    /// Begins or ends the suspension of a user's instances.
    SuspendUser(UserId, Option<Suspension>),
    /// Begins or ends a start of an instance that its node has not taken.
    PutStart(InstanceId, Option<StartRow>),
    /// Begins, continues or ends the move of an instance.
    PutMove(InstanceId, Option<Box<MoveRow>>),
    /// Removes the claim of an instance on a node.
    DropClaim(NodeId, InstanceId),
    /// Notes whether an instance is lost with its node.
    Lost(InstanceId, bool),
    /// Notes whether a user's running instances may be moved.
    LetMove(UserId, bool),
    /// The SSH host keys of an instance.
    PutHostKeys(InstanceId, Vec<HostKey>),
    /// The time at which the database was last in use.
    PutClock(ClockRow),
    /// A new or changed key.
    PutKey(KeyRow),
    /// Removes a key that was revoked or has expired.
    DropKey(String),
    /// Writes the terms of a key.
    PutKeyTerms(String, KeyTerms),
    /// Writes the last use of a key.
    PutKeyUse(String, Timestamp),
    /// Changes the means by which a user signs in.
    Account(AccountChange),
    /// A change of a passkey or an identity.
    Way(WayChange),
    /// Writes a saved SSH key.
    PutSshKey(UserId, SshKeyId, SshKeyRow),
    /// Removes a saved SSH key.
    DropSshKey(UserId, SshKeyId),
    /// Appends to the audit log.
    Audit(Box<AuditRecord>),
    /// Writes a webhook.
    PutWebhook(Box<Webhook>),
    /// Removes a webhook with its deliveries.
    DropWebhook(UserId, WebhookId),
    /// Writes a delivery of a webhook, and removes one that is too old to be kept.
    PutDelivery(UserId, WebhookId, u64, Box<Delivery>),
    /// Removes the records of the audit log up to this number. The last record stays.
    DropAudit(u64),
    /// Replaces the password in a create request that is kept for replays.
    PutIdempotentPassword(UserId, IdempotencyDigest, Encrypted),
    /// Keeps a create request for replays, and removes some that are older than the given time.
    PutIdempotent(IdempotencyDigest, Box<IdempotentCreate>, Timestamp),
}

/// Changes that hold together or not at all.
#[derive(Debug, Default)]
pub struct Changes(pub(super) Vec<Change>);

impl Changes {
    /// Nothing to write.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a change. An instance that is put gets the next version of its row.
    #[must_use]
    pub fn with(mut self, mut change: Change) -> Self {
        if let Change::PutInstance(instance) = &mut change {
            instance.version += 1;
        }
        self.0.push(change);
        self
    }

    /// Adds an instance's new row with the event that led to it and, where what is billed
    /// changes, a ledger entry. The ledger's time never runs backwards within one instance.
    #[must_use]
    pub fn record(mut self, mut instance: Instance, now: Timestamp, what: What) -> Self {
        let (at, state) = (now.max(instance.last_event_at), instance.state());
        self = self.event(&instance, now, what);
        instance.events += 1;
        instance.last_event_at = at;
        let billed = (state.billed(), instance.size);
        if billed != instance.billed || instance.ledger_entries == 0 {
            self.0.push(Change::Entry(
                instance.ledger_entries,
                Entry {
                    instance: instance.id,
                    owner: instance.owner,
                    at,
                    billed: billed.0,
                    size: instance.size,
                    n_gpus: u32::try_from(instance.gpus.len()).unwrap_or(u32::MAX),
                    rates: instance.rates,
                },
            ));
            instance.ledger_entries += 1;
            instance.billed = billed;
        }
        self.with(Change::PutInstance(Box::new(instance)))
    }

    /// Adds an event of an instance whose row is not written.
    #[must_use]
    pub fn event(mut self, instance: &Instance, now: Timestamp, what: What) -> Self {
        let row = EventRow {
            owner: instance.owner,
            seq: 0,
            name: Some(instance.name.as_str().to_owned()),
            party: what.usual_party(),
            event: Event {
                // The write replaces it by the system's time.
                at: now,
                instance: instance.id,
                what,
                state: instance.state(),
                size: instance.size,
            },
        };
        self.0.push(Change::Event(instance.events, Box::new(row)));
        self
    }

    /// Adds the audit record of changes of an instance; none if nothing changes. The events name the
    /// actor.
    #[must_use]
    pub fn audited(mut self, origin: &Origin, operation: &str, now: Timestamp) -> Self {
        for change in &mut self.0 {
            if let Change::Event(_, row) = change {
                row.party = Party::Actor(origin.actor.clone());
            }
        }
        let Ok(instance) = self.instance() else {
            return self;
        };
        self.with(Change::Audit(Box::new(AuditRecord {
            at: now,
            origin: origin.clone(),
            operation: operation.to_owned(),
            owner: Some(instance.owner),
            instance: Some(instance.id),
            subject: None,
            result: instance.state().as_str().to_owned(),
        })))
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

    /// Adds the changes of another part of the use case.
    pub fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }

    /// The instance row that was put last.
    pub fn instance(&self) -> Result<Instance, Error> {
        let puts = self.0.iter().rev().find_map(|change| match change {
            Change::PutInstance(instance) => Some(Instance::clone(instance)),
            _ => None,
        });
        puts.ok_or_else(|| Error::internal("no instance was written"))
    }
}
