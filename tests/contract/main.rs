//! The contract: the conformance suite, every documented route, and `nearest_available` of a 422.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod conformance;
mod detection;
mod distorting;
mod nearest;
mod routes;
mod sign_in;
