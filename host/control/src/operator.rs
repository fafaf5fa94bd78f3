//! The state that operations for the operator work on.

use super::App;
use super::key::Keys;
use super::scheduler::Scheduler;
use std::sync::Arc;
use wharf_config::Config;
use wharf_db::Db;

/// The state of a running server, or of a database that no server has open.
#[derive(Clone)]
pub struct Operator<'a> {
    pub db: &'a Db,
    pub keys: &'a Keys,
    pub scheduler: &'a Scheduler,
    pub config: Arc<Config>,
}

impl App {
    /// Returns the state for operations.
    pub fn operator(&self) -> Operator<'_> {
        Operator {
            db: &self.db,
            keys: &self.keys,
            scheduler: &self.scheduler,
            config: self.config(),
        }
    }
}
