//! The request files of the drivers that ship: the walls of each creation, further promises, and requests as
//! they were recorded. No server runs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod findings;
mod promises;
mod recorded;
mod snapshots;
mod volumes;
mod walls;

/// The text of a driver's request file.
fn request_file(driver: &str) -> String {
    let file = wharf_testkit::workspace::root()
        .join("plugins")
        .join(driver);
    std::fs::read_to_string(file.join("requests.toml")).unwrap()
}
