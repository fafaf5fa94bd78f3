//! The state that operations for the operator work on.

use super::App;
use super::key::Keys;
use wharf_db::Db;

/// The state of a running server, or of a database that no server has open.
#[derive(Clone, Copy)]
pub struct Operator<'a> {
    pub db: &'a Db,
    pub keys: &'a Keys,
}

impl App {
    /// Returns the state for operations.
    pub fn operator(&self) -> Operator<'_> {
        Operator {
            db: &self.db,
            keys: &self.keys,
        }
    }
}
