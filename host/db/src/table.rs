//! The declaration of a table, which stands beside the feature that has it.
//!
//! A commit writes a page of each leaf that it changes, with all pages above it. So all tables are
//! in one tree. A key is the table's group, the first part of the row's key, the table's kind, and the
//! rest of the row's key. So rows that change together are neighbours.

use super::codec::{encode, internal};
use super::draft::{Draft, Followed};
use super::findings::{Check, Findings, Fix};
use super::key::{KeyPart, TableKey};
use super::tree::{ReadRows, Rows};
use serde::{Serialize, de::DeserializeOwned};
use std::fmt::Debug;
use std::marker::PhantomData;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;

/// A row of a table.
pub trait TableRow: Serialize + DeserializeOwned + Clone + Debug + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Clone + Debug + Send + 'static> TableRow for T {}

/// Group and kind of a table.
pub(super) type Id = (u8, u8);

/// The relation of a table to another one.
#[derive(Clone, Copy)]
pub(super) enum Relation {
    None,
    /// Its rows follow from those of the other table.
    IndexOf(&'static dyn Declared),
    /// Its keys begin with keys of the other table, whose rows exist.
    Of(&'static dyn Declared),
    /// [`Self::Of`], and its rows are removed with those of the other table.
    PartOf(&'static dyn Declared),
}

/// Finds contradictions between the rows of a table and others.
pub type CheckRows = fn(&ReadRows, &mut Findings) -> Result<(), Error>;

/// The part of a declaration that does not depend on the types of its rows.
#[derive(Clone, Copy)]
pub struct Facts {
    /// The name of the constant.
    pub name: &'static str,
    /// The bound of the number of its rows, in words for operators.
    pub bound: &'static str,
    /// The time for which rows are kept, in words for operators.
    pub kept: &'static str,
    /// Whether its rows are in the budget of a user.
    pub budgeted: bool,
    pub(super) id: Id,
    pub(super) relation: Relation,
    pub(super) check: Option<CheckRows>,
    followed: bool,
}

impl Facts {
    /// Group and kind.
    pub fn place(&self) -> (u8, u8) {
        self.id
    }
}

type InBudget<F, R, V> = fn(&F, &R, &V) -> Option<UserId>;
type Index<F, R, V> = fn(&F, &R, &V, &mut Entries) -> Result<(), Error>;
type OwnerOf<F, R, V> = fn(&Draft<'_>, &F, &R, &V) -> Result<Option<UserId>, Error>;

/// A table with keys of two parts. [`tables!`](crate::tables) declares it.
#[must_use]
pub struct Table<F: 'static, R: 'static, V: 'static> {
    facts: Facts,
    budget: Option<InBudget<F, R, V>>,
    index: Option<Index<F, R, V>>,
    wakes: Option<(&'static str, OwnerOf<F, R, V>)>,
    rows: PhantomData<fn() -> V>,
}

impl<F, R, V> Table<F, R, V> {
    const fn new(id: Id, bound: &'static str, kept: &'static str) -> Self {
        let facts = Facts {
            name: "",
            bound,
            kept,
            budgeted: false,
            id,
            relation: Relation::None,
            check: None,
            followed: false,
        };
        Self {
            facts,
            budget: None,
            index: None,
            wakes: None,
            rows: PhantomData,
        }
    }

    /// A table whose rows have a bound of their own, in words for operators, and are kept for a time.
    pub const fn bounded(group: u8, kind: u8, bound: &'static str, kept: &'static str) -> Self {
        Self::new((group, kind), bound, kept)
    }

    /// A table whose rows outlive their object: each costs its user a row of the daily budget.
    pub const fn budgeted(
        group: u8,
        kind: u8,
        user: InBudget<F, R, V>,
        bound: &'static str,
        kept: &'static str,
    ) -> Self {
        let mut table = Self::new((group, kind), bound, kept);
        table.facts.budgeted = true;
        table.budget = Some(user);
        table
    }

    /// A table whose rows follow from those of another one, which says how with [`Self::indexed`].
    pub const fn index_of<F2, R2, V2>(
        table: &'static Table<F2, R2, V2>,
        group: u8,
        kind: u8,
    ) -> Self
    where
        Table<F2, R2, V2>: Declared,
    {
        let facts = &table.facts;
        Self::related((group, kind), facts, Relation::IndexOf(table))
    }

    /// A table whose rows are parts of rows of another one, and are removed with them. A key begins with
    /// the key of the other row.
    pub const fn part_of<F2, R2, V2>(table: &'static Table<F2, R2, V2>, group: u8, kind: u8) -> Self
    where
        Table<F2, R2, V2>: Declared,
    {
        let facts = &table.facts;
        Self::related((group, kind), facts, Relation::PartOf(table))
    }

    const fn related(id: Id, other: &Facts, relation: Relation) -> Self {
        let mut table = Self::new(id, other.bound, other.kept);
        table.facts.relation = relation;
        table
    }

    /// Each row needs a row of another table, whose key its own begins with.
    pub const fn of(mut self, other: &'static dyn Declared) -> Self {
        self.facts.relation = Relation::Of(other);
        self
    }

    /// [`Self::of`], and a row is removed with the row of the other table.
    pub const fn removed_with(mut self, other: &'static dyn Declared) -> Self {
        self.facts.relation = Relation::PartOf(other);
        self
    }

    /// The rows of indices that follow from a row.
    pub const fn indexed(mut self, entries: Index<F, R, V>) -> Self {
        self.index = Some(entries);
        self
    }

    /// A change of a row wakes the receivers of its owner that wait for a topic.
    pub const fn wakes(mut self, topic: &'static str, owner: OwnerOf<F, R, V>) -> Self {
        self.wakes = Some((topic, owner));
        self
    }

    /// [`Projection::follow`](crate::Projection::follow) is told of each change.
    pub const fn followed(mut self) -> Self {
        self.facts.followed = true;
        self
    }

    /// `wharf fsck` also runs this check.
    pub const fn checked(mut self, check: CheckRows) -> Self {
        self.facts.check = Some(check);
        self
    }

    /// Gives the table its name.
    pub const fn named(mut self, name: &'static str) -> Self {
        self.facts.name = name;
        self
    }
}

impl<R, V> Table<UserId, R, V> {
    /// [`Self::wakes`] for the user of the key.
    pub const fn wakes_user(self, topic: &'static str) -> Self {
        self.wakes(topic, |_, user, _, _| Ok(Some(*user)))
    }
}

impl<F: KeyPart, R: KeyPart, V> Table<F, R, V> {
    pub(super) fn prefix(&self, first: &F, kind: u8) -> Vec<u8> {
        let mut key = vec![self.facts.id.0];
        first.write(&mut key);
        key.push(kind);
        key
    }

    /// The bounds of the keys of one first part.
    pub(super) fn range(&self, first: &F) -> (Vec<u8>, Vec<u8>) {
        let kind = self.facts.id.1;
        (self.prefix(first, kind), self.prefix(first, kind + 1))
    }

    /// The bounds of all keys. Unless the first part is empty, the other tables of the group are within.
    pub(super) fn bounds(&self) -> (Vec<u8>, Vec<u8>) {
        match F::read(&mut [].as_slice()) {
            Some(empty) => self.range(&empty),
            None => (vec![self.facts.id.0], vec![self.facts.id.0 + 1]),
        }
    }

    pub(super) fn id(&self) -> Id {
        self.facts.id
    }

    /// The bytes of a row's key.
    pub(super) fn key(&self, first: &F, rest: &R) -> Vec<u8> {
        let mut key = self.prefix(first, self.facts.id.1);
        rest.write(&mut key);
        key
    }

    /// The parts of a key of this group; none if it is of another table. Tables of a group may differ in
    /// their first parts, so that the byte in the place of the kind may be any of a digest. The length
    /// tells them apart then.
    pub(super) fn parse(&self, key: &[u8]) -> Result<Option<(F, R)>, Error> {
        let broken = || internal("a key cannot be read");
        let mut bytes = key.get(1..).ok_or_else(broken)?;
        let first = F::read(&mut bytes).ok_or_else(broken)?;
        let (kind, mut bytes) = bytes.split_first().ok_or_else(broken)?;
        if *kind != self.facts.id.1 {
            return Ok(None);
        }
        let rest = R::read(&mut bytes).filter(|_| bytes.is_empty());
        Ok(rest.map(|rest| (first, rest)))
    }
}

/// The key of a changed row, and the row before and after.
pub type ChangedRow<'f, F, R, V> = (&'f (F, R), Option<&'f V>, Option<&'f V>);

impl<F: KeyPart, R: KeyPart, V: TableRow> Table<F, R, V> {
    /// The key and the row before and after a change; none if the change is of another table.
    pub fn change<'f>(&self, change: &'f Followed) -> Option<ChangedRow<'f, F, R, V>> {
        change.of(self.facts.id)
    }

    /// The user whose budget a row takes from.
    pub(super) fn user(&self, first: &F, rest: &R, row: &V) -> Option<UserId> {
        self.budget.and_then(|user| user(first, rest, row))
    }

    /// The rows of indices that follow from a row.
    pub(super) fn entries(&self, first: &F, rest: &R, row: Option<&V>) -> Result<Entries, Error> {
        let mut entries = Entries::default();
        if let (Some(index), Some(row)) = (self.index, row) {
            index(first, rest, row, &mut entries)?;
        }
        Ok(entries)
    }

    /// Notes the receivers that a change wakes, and the change itself if the projection follows it.
    pub(super) fn note(
        &self,
        rows: &mut Draft<'_>,
        key: (F, R),
        before: Option<&V>,
        after: Option<&V>,
    ) -> Result<(), Error> {
        if let Some((topic, owner)) = self.wakes
            && let Some(row) = after.or(before)
            && let Some(owner) = owner(rows, &key.0, &key.1, row)?
        {
            rows.woken.topics.insert((owner, topic));
        }
        if self.facts.followed {
            let change = Followed::new(self.facts.id, key, before.cloned(), after.cloned());
            rows.followed.push(change);
        }
        Ok(())
    }

    fn name(&self) -> String {
        self.facts.name.to_ascii_lowercase()
    }
}

/// A row of an index.
#[derive(Debug)]
pub(super) struct IndexEntry {
    pub index: Id,
    pub key: Vec<u8>,
    pub row: Vec<u8>,
}

/// Rows of indices.
#[derive(Debug, Default)]
pub struct Entries(pub(super) Vec<IndexEntry>);

impl Entries {
    /// Adds a row.
    pub fn put<F: KeyPart, R: KeyPart, V: TableRow>(
        &mut self,
        index: &Table<F, R, V>,
        key: impl TableKey<F, R>,
        row: &V,
    ) -> Result<(), Error> {
        let (first, rest) = key.parts();
        self.0.push(IndexEntry {
            index: index.facts.id,
            key: index.key(&first, &rest),
            row: encode(row)?,
        });
        Ok(())
    }

    pub(super) fn row(&self, key: &[u8]) -> Option<&[u8]> {
        let found = self.0.iter().find(|entry| entry.key == key);
        found.map(|entry| entry.row.as_slice())
    }
}

/// Takes a key and a row.
type VisitBytes<'v> = &'v mut dyn FnMut(&[u8], &[u8]);

/// A table with keys and rows of any type.
pub trait Declared: Sync {
    /// The part that does not depend on its types.
    fn facts(&self) -> &Facts;
    /// Reads all rows, and finds those whose other row is missing.
    #[doc(hidden)]
    fn check(&self, rows: &ReadRows, check: &mut Check<'_>) -> Result<(), Error>;
    /// Removes the rows whose keys begin with that of a row of another table.
    #[doc(hidden)]
    fn remove_parts(&self, rows: &mut Draft<'_>, of: &[u8]) -> Result<(), Error>;
    /// The words for a row that the key of another row begins with, if it is missing.
    #[doc(hidden)]
    fn missing(&self, rows: &ReadRows, key: &[u8]) -> Result<Option<String>, Error>;
    /// The words for an entry of an index.
    #[doc(hidden)]
    fn describe(&self, key: &[u8], row: &[u8]) -> String;
    /// Visits the keys and rows as bytes.
    #[doc(hidden)]
    fn each_bytes(&self, rows: &ReadRows, visit: VisitBytes<'_>) -> Result<(), Error>;
}

/// A key as text, without an empty part.
fn words<F: Debug, R: Debug>(first: &F, rest: &R) -> String {
    match (format!("{first:?}"), format!("{rest:?}")) {
        (first, rest) if rest == "()" => first,
        (first, rest) if first == "()" => rest,
        (first, rest) => format!("{first} {rest}"),
    }
}

impl<F: KeyPart, R: KeyPart, V: TableRow> Declared for Table<F, R, V> {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn check(&self, rows: &ReadRows, check: &mut Check<'_>) -> Result<(), Error> {
        let name = self.name();
        for row in rows.all(self)? {
            let (first, rest, row) = match row {
                Ok(row) => row,
                Err(error) => {
                    check.unreadable(&name, &error)?;
                    continue;
                }
            };
            match self.entries(&first, &rest, Some(&row)) {
                Ok(entries) => entries.0.into_iter().for_each(|entry| check.derive(entry)),
                Err(error) => check.unreadable(&name, &error)?,
            }
            let (Relation::Of(other) | Relation::PartOf(other)) = self.facts.relation else {
                continue;
            };
            let mut key = Vec::new();
            first.write(&mut key);
            rest.write(&mut key);
            if let Some(missing) = other.missing(rows, &key)? {
                let text = format!("{name} has a row of {missing}");
                match self.facts.relation {
                    Relation::PartOf(_) => {
                        let fix = Fix::remove(self.key(&first, &rest));
                        check.findings.fixable(text, fix);
                    }
                    _ => check.findings.push(text),
                }
            }
        }
        Ok(())
    }

    fn remove_parts(&self, rows: &mut Draft<'_>, of: &[u8]) -> Result<(), Error> {
        let mut rest = of;
        let first = F::read(&mut rest).ok_or_else(|| internal("a key cannot be read"))?;
        let (mut from, to) = self.range(&first);
        from.extend(rest);
        let mut parts = Vec::new();
        for row in rows.range(&from, &to)? {
            let (key, _) = row?;
            if !key.value().starts_with(&from) {
                break;
            }
            parts.extend(self.parse(key.value())?);
        }
        parts
            .into_iter()
            .try_for_each(|part| rows.remove(self, part).map(drop))
    }

    fn missing(&self, rows: &ReadRows, mut key: &[u8]) -> Result<Option<String>, Error> {
        let broken = || internal("a key cannot be read");
        let first = F::read(&mut key).ok_or_else(broken)?;
        let rest = R::read(&mut key).ok_or_else(broken)?;
        let is_there = rows.has(&self.key(&first, &rest))?;
        let words = || format!("{}, which {} lacks", words(&first, &rest), self.name());
        Ok((!is_there).then(words))
    }

    fn describe(&self, key: &[u8], row: &[u8]) -> String {
        let key = self.parse(key).ok().flatten();
        let row = super::codec::decode::<V>(row);
        match (key, row) {
            (Some((first, rest)), Ok(row)) => format!("{} of {row:?}", words(&first, &rest)),
            _ => "a row that cannot be read".to_owned(),
        }
    }

    fn each_bytes(&self, rows: &ReadRows, visit: VisitBytes<'_>) -> Result<(), Error> {
        let (from, to) = self.bounds();
        for row in rows.range(&from, &to)? {
            let (key, row) = row?;
            if self.parse(key.value())?.is_some() {
                visit(key.value(), row.value());
            }
        }
        Ok(())
    }
}

/// Declares tables, and the list `TABLES` of them. Each is one constructor of [`Table`] with methods.
#[macro_export]
macro_rules! tables {
    ($(
        $(#[$doc:meta])*
        $visible:vis const $name:ident: $type:ty =
            Table::$new:ident($($args:tt)*)$(.$method:ident($($more:tt)*))*;
    )*) => {
        $(
            $(#[$doc])*
            $visible const $name: $type = <$type>::$new($($args)*)
                $(.$method($($more)*))*
                .named(stringify!($name));
        )*

        /// The tables of this file.
        pub const TABLES: &[&dyn $crate::Declared] = &[$(&$name),*];
    };
}
