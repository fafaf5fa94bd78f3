//! The checkout and this machine: rules of nodes, hashes of packages, and pages that name tests or files.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod hashes;
mod node_rules;
mod reading;
mod threat_model;
