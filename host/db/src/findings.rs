//! The contradictions that a check of the database finds, and the rows that mend them.

use super::codec::encode;
use super::key::Part;
use super::table::{Draft, Table};
use serde::Serialize;
use wharf_domain::error::Error;

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
