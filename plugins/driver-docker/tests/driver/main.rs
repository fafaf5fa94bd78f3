//! The driver on a fake engine.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod backups;
mod calls;
mod creation;
mod digest;
mod drops;
mod existing;
mod fake;
mod growing;
mod identity;
mod moving;
mod podman;
mod snapshots;
mod survey;
mod vms;
mod volumes;
