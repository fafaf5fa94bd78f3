//! The contradictions that a check of the database finds, and the rows that mend them.

use super::codec::encode;
use super::draft::Draft;
use super::schema::DbSchema;
use super::table::{Declared, Id, IndexEntry, Relation};
use super::tree::ReadRows;
use serde::Serialize;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use wharf_domain::error::Error;

/// The most unreadable rows of a table: one with more cannot be checked.
const MAX_UNREADABLE: usize = 100;

/// A contradiction between rows.
#[derive(Debug)]
pub struct FsckFinding {
    /// One line.
    pub text: String,
    /// The change that mends it; none if only a backup can.
    pub(super) fix: Option<Fix>,
}

impl FsckFinding {
    /// Whether a repair mends it.
    pub fn is_repairable(&self) -> bool {
        self.fix.is_some()
    }
}

/// A row to write, or without a value to remove.
#[derive(Debug)]
pub(super) struct Fix {
    key: Vec<u8>,
    row: Option<Vec<u8>>,
}

impl Fix {
    pub fn put(key: Vec<u8>, row: &impl Serialize) -> Result<Self, Error> {
        let row = Some(encode(row)?);
        Ok(Self { key, row })
    }

    pub fn remove(key: Vec<u8>) -> Self {
        Self { key, row: None }
    }

    pub fn apply(&self, rows: &mut Draft<'_>) -> Result<(), Error> {
        rows.put_raw(&self.key, self.row.as_deref())
    }
}

/// The contradictions so far.
#[derive(Default)]
pub struct Findings(pub(super) Vec<FsckFinding>);

impl Findings {
    /// Adds a contradiction that only a backup can mend.
    pub fn push(&mut self, text: String) {
        self.0.push(FsckFinding { text, fix: None });
    }

    /// Adds a contradiction with the change that mends it.
    pub(super) fn fixable(&mut self, text: String, fix: Fix) {
        let fix = Some(fix);
        self.0.push(FsckFinding { text, fix });
    }

    /// Adds an error that ends a part of the check.
    pub(super) fn failed(&mut self, error: &Error) {
        self.push(format!("rows cannot be read: {}", error.chain()));
    }
}

/// The entries of indices that follow from the rows of a table, by key: index and row. There may be
/// millions, and a boxed slice has no spare room.
type DerivedEntries = BTreeMap<Box<[u8]>, (Id, Box<[u8]>)>;

/// The check of a table, and of the indices that follow from it.
pub struct Check<'f> {
    pub(super) findings: &'f mut Findings,
    derived: DerivedEntries,
    /// Entries whose key has another row in `derived`.
    twice: Vec<IndexEntry>,
    /// The rows that cannot be read.
    unreadable: usize,
}

/// Checks the rows of each table, and compares its indices with the rows. An error ends the check of a
/// table, or of an index, alone.
pub(super) fn check_tables(rows: &ReadRows, schema: &DbSchema, findings: &mut Findings) {
    for table in schema.all() {
        if let Relation::IndexOf(_) = table.facts().relation {
            continue;
        }
        let mut check = Check {
            findings,
            derived: DerivedEntries::new(),
            twice: Vec::new(),
            unreadable: 0,
        };
        let read = table.check(rows, &mut check);
        let is_whole = read.is_ok() && check.unreadable == 0;
        let mut done = vec![read];
        for index in schema.indices_of(table.facts().id) {
            done.push(check.index(rows, index, is_whole));
        }
        if let Some(check) = table.facts().check {
            done.push(check(rows, findings));
        }
        for error in done.into_iter().filter_map(Result::err) {
            findings.failed(&error);
        }
    }
}

impl Check<'_> {
    /// Notes an entry of an index that follows from a row.
    pub(super) fn derive(&mut self, entry: IndexEntry) {
        let (key, row) = (entry.key.into_boxed_slice(), entry.row.into_boxed_slice());
        match self.derived.entry(key) {
            Entry::Vacant(place) => drop(place.insert((entry.index, row))),
            Entry::Occupied(mut place) if place.get().1 != row => {
                let key = place.key().to_vec();
                let (index, earlier) = place.insert((entry.index, row));
                let row = earlier.into_vec();
                self.twice.push(IndexEntry { index, key, row });
            }
            Entry::Occupied(_) => {}
        }
    }

    /// Notes a row that cannot be read. Fails if there are too many.
    pub(super) fn unreadable(&mut self, name: &str, error: &Error) -> Result<(), Error> {
        let text = format!("{name}: a row cannot be read: {}", error.chain());
        self.findings.push(text);
        self.unreadable += 1;
        if self.unreadable == MAX_UNREADABLE {
            return Err(Error::internal("too many rows cannot be read"));
        }
        Ok(())
    }

    /// Compares an index with the entries that follow from its table. If rows of that table cannot be read, an
    /// entry may be of one of them.
    fn index(
        &mut self,
        rows: &ReadRows,
        index: &dyn Declared,
        is_whole: bool,
    ) -> Result<(), Error> {
        let (name, id) = (index.facts().name.to_ascii_lowercase(), index.facts().id);
        for IndexEntry { key, row, .. } in self.twice.iter().filter(|entry| entry.index == id) {
            let other = self.derived.get(key.as_slice());
            let other = other.map_or(&[][..], |(_, other)| other);
            let [one, other] = [row, other].map(|row| index.describe(key, row));
            let text = format!("{name} is to have {one} and {other}");
            self.findings.push(text);
        }
        let mut extra = Vec::new();
        index.each_bytes(rows, &mut |key, row| match self.derived.get(key) {
            // An index may be as large as the database.
            Some((_, derived)) if **derived == *row => drop(self.derived.remove(key)),
            None if is_whole => extra.push((key.to_vec(), index.describe(key, row))),
            _ => {}
        })?;
        for (key, (_, row)) in self.derived.extract_if(.., |_, entry| entry.0 == id) {
            let text = format!("{name} lacks {}", index.describe(&key, &row));
            let (key, row) = (key.into_vec(), Some(row.into_vec()));
            self.findings.fixable(text, Fix { key, row });
        }
        for (key, entry) in extra {
            let text = format!("{name} has {entry}, which no row says");
            self.findings.fixable(text, Fix::remove(key));
        }
        Ok(())
    }
}
