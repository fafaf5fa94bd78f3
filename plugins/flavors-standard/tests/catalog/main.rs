//! The catalog of flavors, and the scripts of their images.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod catalog;
mod clones;
mod s3_region;
