//! All tables of a database, and the steps that led to their present rows.

use super::draft::Draft;
use super::table::{Declared, Id, Relation};
use super::tables;
use wharf_domain::error::Error;

/// A change of the rows that leads from one format to the next.
///
/// The function reads with the methods of [`Rows`](super::Rows) and writes with [`Draft::put`] and
/// [`Draft::remove`]. It collects the rows of a table before it changes that table, succeeds on a
/// database without rows, and keeps no server from its start: a row that it cannot change is left, and
/// named in the log. The types of the rows stay readable for it, so a table whose type changes becomes
/// a new table.
#[derive(Clone, Copy)]
pub struct MigrationStep {
    /// The change, for the log: "gave each user a list of keys".
    pub done: &'static str,
    /// The change itself.
    pub run: fn(&mut Draft<'_>) -> Result<(), Error>,
}

/// The tables of a feature.
pub type FeatureTables = &'static [&'static dyn Declared];

/// The tables of the crates above this one.
pub struct DbSchema {
    /// The tables of each crate, by feature.
    pub tables: &'static [&'static [FeatureTables]],
    /// The steps from format 5 on, in order; each makes the next format. All that a file needs run in one
    /// transaction, before anything else reads the rows, and each runs once for a file.
    pub steps: &'static [MigrationStep],
}

/// The format before the first step. In format 4 ciphertexts name their keys. In format 5 the events of an
/// owner are numbered.
pub(super) const BEFORE_STEPS: u64 = 5;

impl DbSchema {
    /// The format that this version writes.
    pub fn format(&self) -> u64 {
        BEFORE_STEPS + self.steps.len() as u64
    }

    /// All tables, those of this crate first.
    pub fn all(&self) -> impl Iterator<Item = &'static dyn Declared> {
        let others = self.tables.iter().copied().flatten();
        let own = std::iter::once(&tables::TABLES);
        own.chain(others).copied().flatten().copied()
    }

    /// The tables whose rows are removed with those of this one.
    pub(super) fn parts_of(&self, id: Id) -> impl Iterator<Item = &'static dyn Declared> {
        self.all()
            .filter(move |table| match table.facts().relation {
                Relation::PartOf(other) => other.facts().id == id,
                _ => false,
            })
    }

    /// The indices of a table.
    pub(super) fn indices_of(&self, id: Id) -> impl Iterator<Item = &'static dyn Declared> {
        self.all()
            .filter(move |table| match table.facts().relation {
                Relation::IndexOf(other) => other.facts().id == id,
                _ => false,
            })
    }
}
