//! Reading rows, from a snapshot or from within a write.

use super::codec::{decode, internal};
use super::rows::{Detail, KeyRow};
use super::tables as t;
use crate::domain::capacity::Claim;
use crate::domain::error::Error;
use crate::domain::event::Event;
use crate::domain::ids::{InstanceId, NodeId, UserId};
use crate::domain::instance::Instance;
use crate::ledger::Entry;
use redb::{ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition};
use std::cell::OnceCell;
use uuid::Uuid;

type Bytes = &'static [u8];

/// What can be asked of the rows; the tables are the implementor's.
#[expect(
    clippy::missing_errors_doc,
    reason = "all fail only if the file is broken"
)]
pub trait Read {
    /// The table [`t::META`].
    fn meta(&self) -> Result<&impl ReadableTable<&'static str, u64>, Error>;
    /// The table [`t::INSTALLATION`].
    fn installation_table(&self) -> Result<&impl ReadableTable<(), u128>, Error>;
    /// The table [`t::USERS`].
    fn users(&self) -> Result<&impl ReadableTable<u64, &'static str>, Error>;
    /// The table [`t::EMAILS`].
    fn emails(&self) -> Result<&impl ReadableTable<&'static str, u64>, Error>;
    /// The table [`t::KEYS`].
    fn keys(&self) -> Result<&impl ReadableTable<&'static str, Bytes>, Error>;
    /// The table [`t::INSTANCES`].
    fn instances(&self) -> Result<&impl ReadableTable<u128, Bytes>, Error>;
    /// The table [`t::DETAILS`].
    fn details(&self) -> Result<&impl ReadableTable<u128, Bytes>, Error>;
    /// The table [`t::NAMES`].
    fn names(&self) -> Result<&impl ReadableTable<&'static str, u128>, Error>;
    /// The table [`t::OWNED`].
    fn owned(&self) -> Result<&impl ReadableTable<(u64, u64), u128>, Error>;
    /// The table [`t::OWNER_VERSIONS`].
    fn owner_versions(&self) -> Result<&impl ReadableTable<u64, u64>, Error>;
    /// The table [`t::CLAIMS`].
    fn claims(&self) -> Result<&impl ReadableTable<u128, Bytes>, Error>;
    /// The table [`t::ON_NODE`].
    fn on_node_table(&self) -> Result<&impl ReadableTable<(&'static str, u128), ()>, Error>;
    /// The table [`t::PENDING`].
    fn pending_table(&self) -> Result<&impl ReadableTable<u128, ()>, Error>;
    /// The table [`t::EVENTS`].
    fn event_table(&self) -> Result<&impl ReadableTable<(u128, u32), Bytes>, Error>;
    /// The table [`t::LEDGER`].
    fn ledger_table(&self) -> Result<&impl ReadableTable<(u128, u32), Bytes>, Error>;

    /// The name of this installation towards engines.
    fn installation(&self) -> Result<Uuid, Error> {
        let found = self.installation_table()?.get(()).map_err(internal)?;
        let id = found.ok_or_else(|| internal("no installation id"))?;
        Ok(Uuid::from_u128(id.value()))
    }

    /// One instance, deleted ones included.
    fn instance(&self, id: InstanceId) -> Result<Option<Instance>, Error> {
        let row = self.instances()?.get(id.0.as_u128()).map_err(internal)?;
        row.map(|row| decode(row.value())).transpose()
    }

    /// The instance that has a name.
    fn id_of_name(&self, name: &str) -> Result<Option<InstanceId>, Error> {
        let row = self.names()?.get(name).map_err(internal)?;
        Ok(row.map(|row| InstanceId(Uuid::from_u128(row.value()))))
    }

    /// An owner's instances, oldest first.
    fn owned_by(&self, owner: UserId) -> Result<Vec<Instance>, Error> {
        self.owned_after(owner, None, usize::MAX)
    }

    /// At most `limit` of an owner's instances, oldest first, from the one that follows the sequence
    /// number `after` on.
    fn owned_after(
        &self,
        owner: UserId,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Instance>, Error> {
        let first = after.map_or(0, |after| after.saturating_add(1));
        let range = self
            .owned()?
            .range((owner.0, first)..=(owner.0, u64::MAX))
            .map_err(internal)?;
        let mut found = Vec::new();
        for row in range.take(limit) {
            let id = InstanceId(Uuid::from_u128(row.map_err(internal)?.1.value()));
            found.extend(self.instance(id)?);
        }
        Ok(found)
    }

    /// The version of an owner's list: two readings of the list with the same version are equal.
    fn owner_version(&self, owner: UserId) -> Result<u64, Error> {
        let row = self.owner_versions()?.get(owner.0).map_err(internal)?;
        Ok(row.map_or(0, |row| row.value()))
    }

    /// What an instance holds.
    fn claim(&self, id: InstanceId) -> Result<Option<Claim>, Error> {
        let row = self.claims()?.get(id.0.as_u128()).map_err(internal)?;
        row.map(|row| decode(row.value())).transpose()
    }

    /// The ledger of each instance that ever was, one by one.
    fn each_ledger(&self, mut f: impl FnMut(InstanceId, &[Entry])) -> Result<(), Error> {
        let mut entries: Vec<Entry> = Vec::new();
        for row in self.ledger_table()?.iter().map_err(internal)? {
            let entry: Entry = decode(row.map_err(internal)?.1.value())?;
            if let Some(last) = entries.last().filter(|l| l.instance != entry.instance) {
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

    /// What is needed to make an instance.
    fn detail(&self, id: InstanceId) -> Result<Option<Detail>, Error> {
        let row = self.details()?.get(id.0.as_u128()).map_err(internal)?;
        row.map(|row| decode(row.value())).transpose()
    }

    /// Instances that the reconciler has work on.
    fn pending(&self) -> Result<Vec<InstanceId>, Error> {
        let rows = self.pending_table()?.iter().map_err(internal)?;
        rows.map(|row| {
            let id = row.map_err(internal)?.0.value();
            Ok(InstanceId(Uuid::from_u128(id)))
        })
        .collect()
    }

    /// Instances that hold something of a node, deleted ones included.
    fn on_node(&self, node: &NodeId) -> Result<Vec<InstanceId>, Error> {
        let node = node.0.as_str();
        let rows = self.on_node_table()?.range((node, 0)..=(node, u128::MAX));
        rows.map_err(internal)?
            .map(|row| {
                let id = row.map_err(internal)?.0.value().1;
                Ok(InstanceId(Uuid::from_u128(id)))
            })
            .collect()
    }

    /// The user with an e-mail address.
    fn user_of_email(&self, email: &str) -> Result<Option<UserId>, Error> {
        let row = self.emails()?.get(email).map_err(internal)?;
        Ok(row.map(|row| UserId(row.value())))
    }

    /// The number for a new user.
    fn next_user(&self) -> Result<UserId, Error> {
        let last = self.users()?.last().map_err(internal)?;
        Ok(UserId(last.map_or(1, |(id, _)| id.value() + 1)))
    }

    /// A user's e-mail address.
    fn email_of(&self, user: UserId) -> Result<Option<String>, Error> {
        let row = self.users()?.get(user.0).map_err(internal)?;
        Ok(row.map(|row| row.value().to_owned()))
    }

    /// One key.
    fn key(&self, id: &str) -> Result<Option<KeyRow>, Error> {
        let row = self.keys()?.get(id).map_err(internal)?;
        row.map(|row| decode(row.value())).transpose()
    }

    /// All keys, revoked ones included.
    fn all_keys(&self) -> Result<Vec<KeyRow>, Error> {
        let rows = self.keys()?.iter().map_err(internal)?;
        rows.map(|row| decode(row.map_err(internal)?.1.value()))
            .collect()
    }

    /// All claims, one by one.
    fn each_claim(&self, mut f: impl FnMut(InstanceId, Claim)) -> Result<(), Error> {
        for row in self.claims()?.iter().map_err(internal)? {
            let (id, bytes) = row.map_err(internal)?;
            f(
                InstanceId(Uuid::from_u128(id.value())),
                decode(bytes.value())?,
            );
        }
        Ok(())
    }

    /// All instances, deleted ones included, one by one.
    fn each_instance(&self, mut f: impl FnMut(Instance)) -> Result<(), Error> {
        for row in self.instances()?.iter().map_err(internal)? {
            f(decode(row.map_err(internal)?.1.value())?);
        }
        Ok(())
    }

    /// What happened to an instance, in order.
    fn events(&self, id: InstanceId) -> Result<Vec<Event>, Error> {
        let id = id.0.as_u128();
        let rows = self.event_table()?.range((id, 0)..=(id, u32::MAX));
        rows.map_err(internal)?
            .map(|row| decode(row.map_err(internal)?.1.value()))
            .collect()
    }

    /// Whether there ever was such an instance: its events outlive it.
    fn was_made(&self, id: InstanceId) -> Result<bool, Error> {
        let first = self.event_table()?.get((id.0.as_u128(), 0));
        Ok(first.map_err(internal)?.is_some())
    }

    /// What an instance is billed for, in order.
    fn ledger(&self, id: InstanceId) -> Result<Vec<Entry>, Error> {
        let id = id.0.as_u128();
        let rows = self.ledger_table()?.range((id, 0)..=(id, u32::MAX));
        rows.map_err(internal)?
            .map(|row| decode(row.map_err(internal)?.1.value()))
            .collect()
    }
}

/// The tables as of the last commit, each opened when it is first needed.
pub struct Snapshot {
    txn: ReadTransaction,
    meta: OnceCell<ReadOnlyTable<&'static str, u64>>,
    installation: OnceCell<ReadOnlyTable<(), u128>>,
    users: OnceCell<ReadOnlyTable<u64, &'static str>>,
    emails: OnceCell<ReadOnlyTable<&'static str, u64>>,
    keys: OnceCell<ReadOnlyTable<&'static str, Bytes>>,
    instances: OnceCell<ReadOnlyTable<u128, Bytes>>,
    details: OnceCell<ReadOnlyTable<u128, Bytes>>,
    names: OnceCell<ReadOnlyTable<&'static str, u128>>,
    owned: OnceCell<ReadOnlyTable<(u64, u64), u128>>,
    owner_versions: OnceCell<ReadOnlyTable<u64, u64>>,
    claims: OnceCell<ReadOnlyTable<u128, Bytes>>,
    on_node: OnceCell<ReadOnlyTable<(&'static str, u128), ()>>,
    pending: OnceCell<ReadOnlyTable<u128, ()>>,
    events: OnceCell<ReadOnlyTable<(u128, u32), Bytes>>,
    ledger: OnceCell<ReadOnlyTable<(u128, u32), Bytes>>,
}

impl Snapshot {
    /// The last commit.
    pub(super) fn open(file: &redb::Database) -> Result<Self, redb::TransactionError> {
        Ok(Self {
            txn: file.begin_read()?,
            meta: OnceCell::new(),
            installation: OnceCell::new(),
            users: OnceCell::new(),
            emails: OnceCell::new(),
            keys: OnceCell::new(),
            instances: OnceCell::new(),
            details: OnceCell::new(),
            names: OnceCell::new(),
            owned: OnceCell::new(),
            owner_versions: OnceCell::new(),
            claims: OnceCell::new(),
            on_node: OnceCell::new(),
            pending: OnceCell::new(),
            events: OnceCell::new(),
            ledger: OnceCell::new(),
        })
    }
}

/// Opens a table unless it is open already.
fn opened<'a, K: redb::Key + 'static, V: redb::Value + 'static>(
    cell: &'a OnceCell<ReadOnlyTable<K, V>>,
    txn: &ReadTransaction,
    definition: TableDefinition<'_, K, V>,
) -> Result<&'a ReadOnlyTable<K, V>, Error> {
    if let Some(table) = cell.get() {
        return Ok(table);
    }
    let table = txn.open_table(definition).map_err(internal)?;
    Ok(cell.get_or_init(|| table))
}

macro_rules! opened {
    ($self:ident, $field:ident, $table:ident) => {
        opened(&$self.$field, &$self.txn, t::$table)
    };
}

/// Hands out the trait's tables; `$get` says how, from a field and its definition.
macro_rules! read_fields {
    ($type:ty, $get:ident) => {
        impl Read for $type {
            fn meta(&self) -> Result<&impl ReadableTable<&'static str, u64>, Error> {
                $get!(self, meta, META)
            }
            fn installation_table(&self) -> Result<&impl ReadableTable<(), u128>, Error> {
                $get!(self, installation, INSTALLATION)
            }
            fn users(&self) -> Result<&impl ReadableTable<u64, &'static str>, Error> {
                $get!(self, users, USERS)
            }
            fn emails(&self) -> Result<&impl ReadableTable<&'static str, u64>, Error> {
                $get!(self, emails, EMAILS)
            }
            fn keys(&self) -> Result<&impl ReadableTable<&'static str, &'static [u8]>, Error> {
                $get!(self, keys, KEYS)
            }
            fn instances(&self) -> Result<&impl ReadableTable<u128, &'static [u8]>, Error> {
                $get!(self, instances, INSTANCES)
            }
            fn details(&self) -> Result<&impl ReadableTable<u128, &'static [u8]>, Error> {
                $get!(self, details, DETAILS)
            }
            fn names(&self) -> Result<&impl ReadableTable<&'static str, u128>, Error> {
                $get!(self, names, NAMES)
            }
            fn owned(&self) -> Result<&impl ReadableTable<(u64, u64), u128>, Error> {
                $get!(self, owned, OWNED)
            }
            fn owner_versions(&self) -> Result<&impl ReadableTable<u64, u64>, Error> {
                $get!(self, owner_versions, OWNER_VERSIONS)
            }
            fn claims(&self) -> Result<&impl ReadableTable<u128, &'static [u8]>, Error> {
                $get!(self, claims, CLAIMS)
            }
            fn on_node_table(
                &self,
            ) -> Result<&impl ReadableTable<(&'static str, u128), ()>, Error> {
                $get!(self, on_node, ON_NODE)
            }
            fn pending_table(&self) -> Result<&impl ReadableTable<u128, ()>, Error> {
                $get!(self, pending, PENDING)
            }
            fn event_table(
                &self,
            ) -> Result<&impl ReadableTable<(u128, u32), &'static [u8]>, Error> {
                $get!(self, events, EVENTS)
            }
            fn ledger_table(
                &self,
            ) -> Result<&impl ReadableTable<(u128, u32), &'static [u8]>, Error> {
                $get!(self, ledger, LEDGER)
            }
        }
    };
}
pub(super) use read_fields;

read_fields!(Snapshot, opened);
