//! The web console of a real server with the simulated engine, in a real browser. Screenshots of all
//! pages are in `target/console/` afterwards.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod axe;
mod backups;
mod create;
mod desk;
mod dialogs;
mod dist;
mod explorer;
mod journey;
mod keyboard;
mod lists;
mod live;
mod many;
mod npm;
mod page_by_name;
#[allow(dead_code)]
mod pages;
mod plain_http;
mod preferences;
mod readme;
mod serving;
mod share;
mod sign_in;
mod signed_out;
mod snapshots;
#[allow(dead_code)]
#[path = "../rest/terminal/ssh_server.rs"]
mod ssh_server;
mod tabs;
mod terminal;
mod usage;
mod volumes;
