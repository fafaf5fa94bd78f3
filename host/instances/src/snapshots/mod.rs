//! The use cases of snapshots, restores, clones and plans, one file each.

mod clone;
mod delete;
mod estimate;
mod plan;
mod read;
mod restore;
mod retire;
mod rows;
mod take;

pub use delete::{delete_all, delete_one};
pub use estimate::SnapshotEstimate;
pub use plan::SnapshotPlans;
pub use read::SnapshotView;
pub use take::Taking;

pub use rows::{
    RESTORES, RestoreRow, SNAPSHOT_PLANS, SOURCED, SOURCES, SourceRow, is_bound, source_of,
};

pub use rows::TABLES;

pub(crate) use clone::source;
pub(crate) use delete::is_in_use;
pub(crate) use retire::retire_for;
pub(crate) use rows::{has_needed, is_needed, refuse_restoring, tag};
