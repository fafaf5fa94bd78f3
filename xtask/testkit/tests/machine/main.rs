//! The checkout and this machine: rules of nodes, hashes of packages, and the threat model.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod hashes;
mod node_rules;
mod threat_model;
