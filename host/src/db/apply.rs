//! Applying changes within a write transaction, indices included.

use super::batch::{Change, Changes};
use super::codec::{decode, encode, internal};
use super::read::{Read, read_fields};
use super::tables as t;
use super::versions::Topic;
use crate::domain::error::Error;
use crate::domain::ids::InstanceId;
use crate::domain::instance::{Instance, Intent, Progress};
use crate::placement::Inventory;
use redb::{ReadableTable, Table, WriteTransaction};

type Bytes = &'static [u8];

/// The tables of one write transaction.
pub struct Tables<'t> {
    meta: Table<'t, &'static str, u64>,
    installation: Table<'t, (), u128>,
    users: Table<'t, u64, &'static str>,
    emails: Table<'t, &'static str, u64>,
    keys: Table<'t, &'static str, Bytes>,
    instances: Table<'t, u128, Bytes>,
    details: Table<'t, u128, Bytes>,
    names: Table<'t, &'static str, u128>,
    owned: Table<'t, (u64, u64), u128>,
    claims: Table<'t, u128, Bytes>,
    on_node: Table<'t, (&'static str, u128), ()>,
    pending: Table<'t, u128, ()>,
    events: Table<'t, (u128, u32), Bytes>,
    ledger: Table<'t, (u128, u32), Bytes>,
    touched: Vec<Topic>,
}

macro_rules! field {
    ($self:ident, $field:ident, $table:ident) => {
        Ok(&$self.$field)
    };
}
read_fields!(Tables<'_>, field);

impl<'t> Tables<'t> {
    /// Opens (and at the first time makes) all tables.
    pub fn open(txn: &'t WriteTransaction) -> Result<Self, redb::TableError> {
        Ok(Self {
            meta: txn.open_table(t::META)?,
            installation: txn.open_table(t::INSTALLATION)?,
            users: txn.open_table(t::USERS)?,
            emails: txn.open_table(t::EMAILS)?,
            keys: txn.open_table(t::KEYS)?,
            instances: txn.open_table(t::INSTANCES)?,
            details: txn.open_table(t::DETAILS)?,
            names: txn.open_table(t::NAMES)?,
            owned: txn.open_table(t::OWNED)?,
            claims: txn.open_table(t::CLAIMS)?,
            on_node: txn.open_table(t::ON_NODE)?,
            pending: txn.open_table(t::PENDING)?,
            events: txn.open_table(t::EVENTS)?,
            ledger: txn.open_table(t::LEDGER)?,
            touched: Vec::new(),
        })
    }

    /// Sets what a new database needs.
    pub fn initialise(
        &mut self,
        format: u64,
        installation: u128,
    ) -> Result<(), redb::StorageError> {
        self.meta.insert(t::FORMAT, format)?;
        self.installation.insert((), installation)?;
        Ok(())
    }

    /// The format of the rows; none in a new file.
    pub fn format(&self) -> Result<Option<u64>, redb::StorageError> {
        Ok(self.meta.get(t::FORMAT)?.map(|row| row.value()))
    }

    /// Applies one use case's changes to rows and inventory.
    pub fn apply(&mut self, changes: Changes, inventory: &mut Inventory) -> Result<(), Error> {
        for change in changes.0 {
            self.apply_one(change, inventory)?;
        }
        Ok(())
    }

    fn apply_one(&mut self, change: Change, inventory: &mut Inventory) -> Result<(), Error> {
        match change {
            Change::PutInstance(instance) => self.put_instance(&instance)?,
            Change::DropInstance(id) => self.drop_instance(id)?,
            Change::PutClaim(id, claim) => {
                match self.claim(id)? {
                    Some(old) => inventory.replace(&old, &claim),
                    None => inventory.add(&claim),
                }
                let place = (claim.node.0.as_str(), id.0.as_u128());
                self.on_node.insert(place, ()).map_err(internal)?;
                let bytes = encode(&claim)?;
                self.claims
                    .insert(id.0.as_u128(), bytes.as_slice())
                    .map_err(internal)?;
            }
            Change::DropClaim(id) => {
                if let Some(old) = self.claim(id)? {
                    inventory.remove(&old);
                    self.claims.remove(id.0.as_u128()).map_err(internal)?;
                    let place = (old.node.0.as_str(), id.0.as_u128());
                    self.on_node.remove(place).map_err(internal)?;
                }
            }
            Change::PutDetail(id, detail) => {
                let bytes = encode(&detail)?;
                self.details
                    .insert(id.0.as_u128(), bytes.as_slice())
                    .map_err(internal)?;
            }
            Change::Event(number, event) => {
                let key = (event.instance.0.as_u128(), number);
                self.events
                    .insert(key, encode(&event)?.as_slice())
                    .map_err(internal)?;
            }
            Change::Entry(number, entry) => {
                let key = (entry.instance.0.as_u128(), number);
                self.ledger
                    .insert(key, encode(&entry)?.as_slice())
                    .map_err(internal)?;
            }
            Change::NextSeq(seq) => {
                self.meta.insert(t::NEXT_SEQ, seq).map_err(internal)?;
            }
            Change::PutUser(id, email) => {
                self.users.insert(id.0, email.as_str()).map_err(internal)?;
                self.emails.insert(email.as_str(), id.0).map_err(internal)?;
            }
            Change::PutKey(key) => {
                self.keys
                    .insert(key.id.as_str(), encode(&key)?.as_slice())
                    .map_err(internal)?;
            }
            Change::Supports(node, supports) => inventory.set_supports(&node, supports),
        }
        Ok(())
    }

    fn put_instance(&mut self, new: &Instance) -> Result<(), Error> {
        let id = new.id.0.as_u128();
        let bytes = encode(new)?;
        let old: Option<Instance> = {
            let old = self
                .instances
                .insert(id, bytes.as_slice())
                .map_err(internal)?;
            old.map(|row| decode(row.value())).transpose()?
        };
        self.index(old.as_ref(), Some(new))
    }

    fn drop_instance(&mut self, id: InstanceId) -> Result<(), Error> {
        let old: Option<Instance> = {
            let old = self.instances.remove(id.0.as_u128()).map_err(internal)?;
            old.map(|row| decode(row.value())).transpose()?
        };
        self.details.remove(id.0.as_u128()).map_err(internal)?;
        self.index(old.as_ref(), None)
    }

    /// What the rows that were changed are about.
    pub fn touched(self) -> Vec<Topic> {
        self.touched
    }

    /// Makes names, owners and pending follow a changed instance row.
    fn index(&mut self, old: Option<&Instance>, new: Option<&Instance>) -> Result<(), Error> {
        let Some(id) = new.or(old).map(|i| i.id.0.as_u128()) else {
            return Ok(());
        };
        for row in [old, new].into_iter().flatten() {
            self.touched.extend([
                Topic::Instance(row.id),
                Topic::Owner(row.owner),
                Topic::Node(row.node.clone()),
            ]);
        }
        let (before, after) = (names(old), names(new));
        for name in before.iter().filter(|name| !after.contains(name)) {
            self.names.remove(*name).map_err(internal)?;
        }
        for name in after.iter().filter(|name| !before.contains(name)) {
            self.names.insert(*name, id).map_err(internal)?;
        }
        match (place(old), place(new)) {
            (before, after) if before == after => {}
            (Some(key), None) => {
                self.owned.remove(key).map_err(internal)?;
            }
            (_, Some(key)) => {
                self.owned.insert(key, id).map_err(internal)?;
            }
            (None, None) => {}
        }
        match (is_pending(old), is_pending(new)) {
            (false, true) => {
                self.pending.insert(id, ()).map_err(internal)?;
            }
            (true, false) => {
                self.pending.remove(id).map_err(internal)?;
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
