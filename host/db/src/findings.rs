//! The contradictions that a check of the database finds, and the rows that mend them.

use super::codec::encode;
use super::key::Part;
use super::table::{Draft, Table};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Debug;
use wharf_domain::error::Error;
use wharf_domain::ids::InstanceId;
use wharf_domain::instance::Instance;

/// The instances by id.
pub(super) type Known = BTreeMap<InstanceId, Instance>;

/// A contradiction between rows.
#[derive(Debug)]
pub struct Finding {
    /// One line.
    pub text: String,
    /// The change that mends it; none if only a backup can.
    pub(super) fix: Option<Fix>,
}

impl Finding {
    /// Whether a repair mends it.
    pub fn is_repairable(&self) -> bool {
        self.fix.is_some()
    }
}

/// A row to write, or without a value to remove.
#[derive(Debug)]
pub(super) struct Fix {
    key: Vec<u8>,
    value: Option<Vec<u8>>,
}

impl Fix {
    pub fn put<F: Part + ?Sized, R: Part<Owned = R>, V: Serialize>(
        table: &Table<F, R, V>,
        first: &F,
        rest: &R,
        value: &V,
    ) -> Result<Self, Error> {
        Ok(Self {
            key: table.key(first, rest),
            value: Some(encode(value)?),
        })
    }

    pub fn remove<F: Part + ?Sized, R: Part<Owned = R>, V>(
        table: &Table<F, R, V>,
        first: &F,
        rest: &R,
    ) -> Self {
        Self {
            key: table.key(first, rest),
            value: None,
        }
    }

    pub fn apply(&self, rows: &mut Draft<'_>) -> Result<(), Error> {
        rows.put_raw(&self.key, self.value.as_deref())
    }
}

/// The contradictions so far.
#[derive(Default)]
pub(super) struct Findings(pub Vec<Finding>);

impl Findings {
    /// Adds a contradiction that only a backup can mend.
    pub fn push(&mut self, text: String) {
        self.0.push(Finding { text, fix: None });
    }

    /// Adds a contradiction with the change that mends it.
    pub fn fixable(&mut self, text: String, fix: Fix) {
        let fix = Some(fix);
        self.0.push(Finding { text, fix });
    }
}

/// Compares an index with the one that follows from the rows. `fix` writes or removes a row of it.
pub(super) fn compare<K: Ord + Debug, V: Copy + PartialEq + Debug>(
    table: &str,
    derived: &BTreeMap<K, V>,
    stored: &BTreeMap<K, V>,
    wrong: &mut Findings,
    fix: impl Fn(&K, Option<V>) -> Result<Fix, Error>,
) -> Result<(), Error> {
    for (key, value) in derived {
        if stored.get(key) != Some(value) {
            let text = format!("{table} lacks {key:?} of {value:?}");
            wrong.fixable(text, fix(key, Some(*value))?);
        }
    }
    for (key, value) in stored {
        if !derived.contains_key(key) {
            let text = format!("{table} has {key:?} of {value:?}, which no row says");
            wrong.fixable(text, fix(key, None)?);
        }
    }
    Ok(())
}
