//! The ground of all use cases: Wharf's time, the audit log, users and callers, encryption, randomness.

pub mod apart;
pub mod audit;
pub mod caller;
pub mod clock;
pub mod clock_watch;
pub mod config;
pub mod expiring;
pub mod keyring;
pub mod random;
pub mod scrub;
pub mod users;
pub mod vault;

use wharf_db::FeatureTables;

/// The tables of this crate, by feature.
pub const TABLES: &[FeatureTables] = &[clock::TABLES, users::TABLES];
