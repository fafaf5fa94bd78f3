//! Backups in buckets of users. A backup is an encrypted object, and a manifest that is written last.

mod client;
mod download;
mod error;
mod manifest;
mod request;
mod seal;
#[cfg(test)]
mod tests;
mod upload;
mod xml;

pub use client::{BucketClient, BucketKeys};
pub use download::ContentReader;
pub use error::BucketError;
pub use manifest::{FORMAT, Manifest};
pub use seal::BackupKey;
pub use upload::{ContentReceiver, SentContent};
pub use wharf_domain::backup::BucketAddress;
