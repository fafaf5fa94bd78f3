//! The contract as a whole: the conformance suite, every documented route, and what a 422 promises.

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
