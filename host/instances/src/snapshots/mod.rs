//! The use cases of snapshots, restores, clones and plans, one file each.

mod rows;

pub use rows::{
    PlanRow, RESTORES, RestoreRow, SNAPSHOT_PLANS, SOURCED, SOURCES, SourceRow, is_bound,
};

pub use rows::TABLES;

pub(crate) use rows::{has_needed, is_needed, snapshots_of, tag};
