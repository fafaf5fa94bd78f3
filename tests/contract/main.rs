//! The contract as a whole: the conformance suite, every documented route, and the promise of a
//! 422.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod conformance;
mod distorting;
mod nearest;
mod notices;
mod routes;
