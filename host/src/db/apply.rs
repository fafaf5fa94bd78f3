//! Applying changes within a write transaction, indices included.

use super::batch::{Change, Changes};
use super::codec::{decode, encode, internal};
use super::journal::{Period, Record, steps};
use super::logged::Logged;
use super::read::{Read, read_fields};
use super::tables as t;
use crate::domain::capacity::Claim;
use crate::domain::error::Error;
use crate::domain::ids::{InstanceId, UserId};
use crate::domain::instance::{Instance, Intent, Progress};
use crate::placement::Inventory;
use redb::{ReadableTable, TableError, WriteTransaction};

type Bytes = &'static [u8];

/// The tables of one write transaction.
pub struct Tables<'t> {
    meta: Logged<'t, &'static str, u64>,
    installation: Logged<'t, (), u128>,
    users: Logged<'t, u64, &'static str>,
    emails: Logged<'t, &'static str, u64>,
    keys: Logged<'t, &'static str, Bytes>,
    instances: Logged<'t, u128, Bytes>,
    details: Logged<'t, u128, Bytes>,
    names: Logged<'t, &'static str, u128>,
    owned: Logged<'t, (u64, u64), u128>,
    owner_versions: Logged<'t, u64, u64>,
    claims: Logged<'t, u128, Bytes>,
    on_node: Logged<'t, (&'static str, u128), ()>,
    pending: Logged<'t, u128, ()>,
    events: Logged<'t, (u128, u32), Bytes>,
    ledger: Logged<'t, (u128, u32), Bytes>,
    /// Changed in this transaction: written once at its end, not with each create.
    next_seq: Option<u64>,
    record: Record,
}

macro_rules! field {
    ($self:ident, $field:ident, $table:ident) => {
        Ok(&$self.$field.table)
    };
}
read_fields!(Tables<'_>, field);

impl<'t> Tables<'t> {
    /// Opens (and at the first time makes) all tables.
    pub fn open(txn: &'t WriteTransaction) -> Result<Self, TableError> {
        Ok(Self {
            meta: Logged::open(txn, t::META)?,
            installation: Logged::open(txn, t::INSTALLATION)?,
            users: Logged::open(txn, t::USERS)?,
            emails: Logged::open(txn, t::EMAILS)?,
            keys: Logged::open(txn, t::KEYS)?,
            instances: Logged::open(txn, t::INSTANCES)?,
            details: Logged::open(txn, t::DETAILS)?,
            names: Logged::open(txn, t::NAMES)?,
            owned: Logged::open(txn, t::OWNED)?,
            owner_versions: Logged::open(txn, t::OWNER_VERSIONS)?,
            claims: Logged::open(txn, t::CLAIMS)?,
            on_node: Logged::open(txn, t::ON_NODE)?,
            pending: Logged::open(txn, t::PENDING)?,
            events: Logged::open(txn, t::EVENTS)?,
            ledger: Logged::open(txn, t::LEDGER)?,
            next_seq: None,
            record: Record::default(),
        })
    }

    /// Sets what a new database needs.
    pub fn initialise(&mut self, installation: u128) -> Result<(), Error> {
        self.installation
            .insert(&mut self.record, (), installation)?;
        Ok(())
    }

    /// The format of the rows; none in a new file.
    pub fn format(&self) -> Result<Option<u64>, Error> {
        self.number(t::FORMAT)
    }

    /// The rows are in this format now.
    pub fn set_format(&mut self, format: u64) -> Result<(), Error> {
        self.set_number(t::FORMAT, format)
    }

    /// Which records the journal has for it.
    pub fn period(&self) -> Result<Period, Error> {
        Ok(Period {
            epoch: self.number(t::EPOCH)?.unwrap_or(0),
            session: self.number(t::SESSION)?.unwrap_or(t::NO_SESSION),
        })
    }

    /// It will have these.
    pub fn set_period(&mut self, period: Period) -> Result<(), Error> {
        self.set_number(t::EPOCH, period.epoch)?;
        self.set_number(t::SESSION, period.session)
    }

    /// The file has everything of this session, which ends.
    pub fn set_closed(&mut self, session: u64) -> Result<(), Error> {
        self.set_number(t::CLOSED, session)
    }

    /// The place of the next instance in the order of creation.
    pub fn next_seq(&self) -> Result<u64, Error> {
        match self.next_seq {
            Some(seq) => Ok(seq),
            None => Ok(self.number(t::NEXT_SEQ)?.unwrap_or(1)),
        }
    }

    fn number(&self, key: &str) -> Result<Option<u64>, Error> {
        let row = self.meta.table.get(key).map_err(internal)?;
        Ok(row.map(|row| row.value()))
    }

    fn set_number(&mut self, key: &str, number: u64) -> Result<(), Error> {
        self.meta.insert(&mut self.record, key, number)?;
        Ok(())
    }

    /// Does again what a record says.
    pub fn redo(&mut self, record: &[u8]) -> Result<(), Error> {
        for step in steps(record) {
            let step = step?;
            let known = self.meta.redo(&step)?
                || self.installation.redo(&step)?
                || self.users.redo(&step)?
                || self.emails.redo(&step)?
                || self.keys.redo(&step)?
                || self.instances.redo(&step)?
                || self.details.redo(&step)?
                || self.names.redo(&step)?
                || self.owned.redo(&step)?
                || self.owner_versions.redo(&step)?
                || self.claims.redo(&step)?
                || self.on_node.redo(&step)?
                || self.pending.redo(&step)?
                || self.events.redo(&step)?
                || self.ledger.redo(&step)?;
            if !known {
                return Err(internal(format!("no table {}", step.table)));
            }
        }
        Ok(())
    }

    /// Applies one use case's changes to rows and inventory.
    pub fn apply(&mut self, changes: Changes, inventory: &mut Inventory) -> Result<(), Error> {
        for change in changes.0 {
            self.apply_one(change, inventory)?;
        }
        Ok(())
    }

    fn apply_one(&mut self, change: Change, inventory: &mut Inventory) -> Result<(), Error> {
        let record = &mut self.record;
        match change {
            Change::PutInstance(instance) => self.put_instance(&instance)?,
            Change::DropInstance(id) => self.drop_instance(id)?,
            Change::PutClaim(id, claim) => self.put_claim(id, &claim, inventory)?,
            Change::DropClaim(id) => self.drop_claim(id, inventory)?,
            Change::PutDetail(id, detail) => {
                let bytes = encode(&detail)?;
                self.details.insert(record, id.0.as_u128(), &bytes)?;
            }
            Change::Event(number, event) => {
                let key = (event.instance.0.as_u128(), number);
                self.events.insert(record, key, &encode(&event)?)?;
            }
            Change::Entry(number, entry) => {
                let key = (entry.instance.0.as_u128(), number);
                self.ledger.insert(record, key, &encode(&entry)?)?;
            }
            Change::NextSeq(seq) => self.next_seq = Some(seq),
            Change::PutUser(id, email) => {
                self.users.insert(record, id.0, &email)?;
                self.emails.insert(record, &email, id.0)?;
            }
            Change::PutKey(key) => {
                self.keys.insert(record, &key.id, &encode(&key)?)?;
            }
            Change::Supports(node, supports) => inventory.set_supports(&node, supports),
        }
        Ok(())
    }

    fn put_claim(
        &mut self,
        id: InstanceId,
        claim: &Claim,
        inventory: &mut Inventory,
    ) -> Result<(), Error> {
        let (id, record) = (id.0.as_u128(), &mut self.record);
        let old: Option<Claim> = {
            let old = self.claims.insert(record, id, &encode(claim)?)?;
            old.map(|row| decode(row.value())).transpose()?
        };
        match old {
            Some(old) => inventory.replace(&old, claim),
            None => inventory.add(claim),
        }
        let place = (claim.node.0.as_str(), id);
        self.on_node.insert(record, place, ())?;
        Ok(())
    }

    fn drop_claim(&mut self, id: InstanceId, inventory: &mut Inventory) -> Result<(), Error> {
        let Some(old) = self.claim(id)? else {
            return Ok(());
        };
        inventory.remove(&old);
        let (id, record) = (id.0.as_u128(), &mut self.record);
        self.claims.remove(record, id)?;
        self.on_node.remove(record, (old.node.0.as_str(), id))?;
        Ok(())
    }

    fn put_instance(&mut self, new: &Instance) -> Result<(), Error> {
        let id = new.id.0.as_u128();
        let bytes = encode(new)?;
        let old: Option<Instance> = {
            let old = self.instances.insert(&mut self.record, id, &bytes)?;
            old.map(|row| decode(row.value())).transpose()?
        };
        // A use case reads the row that it changes.
        if new.version != old.as_ref().map_or(0, |old| old.version) + 1 {
            return Err(internal(format!(
                "{} was changed without being read",
                new.id
            )));
        }
        self.index(old.as_ref(), Some(new))
    }

    fn drop_instance(&mut self, id: InstanceId) -> Result<(), Error> {
        let id = id.0.as_u128();
        let old: Option<Instance> = {
            let old = self.instances.remove(&mut self.record, id)?;
            old.map(|row| decode(row.value())).transpose()?
        };
        self.details.remove(&mut self.record, id)?;
        self.index(old.as_ref(), None)
    }

    /// What was changed, once it is complete.
    pub fn finish(self) -> Record {
        self.record
    }

    /// All that was changed, written out; nothing but the period is changed after it.
    pub fn complete(&mut self) -> Result<&Record, Error> {
        if let Some(seq) = self.next_seq.take() {
            self.set_number(t::NEXT_SEQ, seq)?;
        }
        Ok(&self.record)
    }

    /// Makes names, owners and pending follow a changed instance row.
    fn index(&mut self, old: Option<&Instance>, new: Option<&Instance>) -> Result<(), Error> {
        let Some(id) = new.or(old).map(|i| i.id.0.as_u128()) else {
            return Ok(());
        };
        if let Some((owner, _)) = place(new).or(place(old)) {
            let version = self.owner_version(UserId(owner))? + 1;
            self.owner_versions
                .insert(&mut self.record, owner, version)?;
        }
        let record = &mut self.record;
        let (before, after) = (names(old), names(new));
        for name in before.iter().filter(|name| !after.contains(name)) {
            self.names.remove(record, name)?;
        }
        for name in after.iter().filter(|name| !before.contains(name)) {
            self.names.insert(record, name, id)?;
        }
        match (place(old), place(new)) {
            (before, after) if before == after => {}
            (Some(key), None) => {
                self.owned.remove(record, key)?;
            }
            (_, Some(key)) => {
                self.owned.insert(record, key, id)?;
            }
            (None, None) => {}
        }
        match (is_pending(old), is_pending(new)) {
            (false, true) => {
                self.pending.insert(record, id, ())?;
            }
            (true, false) => {
                self.pending.remove(record, id)?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Names that lead to an instance: its own and one reserved by a change under way.
pub(super) fn names(instance: Option<&Instance>) -> Vec<&str> {
    match instance {
        Some(i) if i.intent != Intent::Delete => {
            let reserved = i.resize.as_ref().and_then(|r| r.name.as_ref());
            let mut names = vec![i.name.as_str()];
            names.extend(reserved.map(crate::domain::name::Name::as_str));
            names
        }
        _ => Vec::new(),
    }
}

/// Its key in the owner's list.
pub(super) fn place(instance: Option<&Instance>) -> Option<(u64, u64)> {
    instance
        .filter(|i| i.intent != Intent::Delete)
        .map(|i| (i.owner.0, i.seq))
}

/// Whether the reconciler has work on it.
pub(super) fn is_pending(instance: Option<&Instance>) -> bool {
    instance.is_some_and(|i| i.progress == Progress::Pending)
}
