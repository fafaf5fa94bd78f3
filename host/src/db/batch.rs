//! What a use case wants written.

use super::rows::{Detail, KeyRow};
use crate::domain::capacity::Claim;
use crate::domain::error::Error;
use crate::domain::event::{Event, What};
use crate::domain::ids::{InstanceId, NodeId, UserId};
use crate::domain::instance::Instance;
use crate::domain::time::Timestamp;
use crate::ledger::Entry;
use crate::placement::Supports;

/// One change of rows. Indices (names, owners, pending) follow from the instance row.
#[derive(Debug)]
pub enum Change {
    /// Writes an instance.
    PutInstance(Box<Instance>),
    /// Removes an instance with its detail row; events and ledger stay.
    DropInstance(InstanceId),
    /// Writes a claim over the one that is there.
    PutClaim(InstanceId, Claim),
    /// Frees everything an instance holds.
    DropClaim(InstanceId),
    /// Writes the detail row.
    PutDetail(InstanceId, Box<Detail>),
    /// Appends to the event log, with its number.
    Event(u32, Event),
    /// Appends to the ledger, with its number.
    Entry(u32, Entry),
    /// The place of the next instance in the order of creation.
    NextSeq(u64),
    /// A new user.
    PutUser(UserId, String),
    /// A new or changed key.
    PutKey(KeyRow),
    /// In memory only: what a node can run.
    Supports(NodeId, Supports),
}

/// Changes that hold together or not at all.
#[derive(Debug, Default)]
pub struct Changes(pub(super) Vec<Change>);

impl Changes {
    /// Nothing to write.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a change.
    #[must_use]
    pub fn with(mut self, change: Change) -> Self {
        self.0.push(change);
        self
    }

    /// Adds an instance's new row with the event that led to it and, where what is billed
    /// changes, a ledger entry. Time never runs backwards within one instance.
    #[must_use]
    pub fn record(mut self, mut instance: Instance, now: Timestamp, what: What) -> Self {
        let at = now.max(instance.last_event_at);
        let state = instance.state();
        self.0.push(Change::Event(
            instance.events,
            Event {
                at,
                instance: instance.id,
                what,
                state,
                size: instance.size,
            },
        ));
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
        self.0.push(Change::PutInstance(Box::new(instance)));
        self
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
