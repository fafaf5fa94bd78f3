//! Row types that exist only in the database.

use crate::domain::blueprint::Blueprint;
use crate::domain::ids::UserId;
use crate::domain::secret::Sealed;
use crate::domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What is rarely needed of an instance: only to make it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    /// Host name inside; a later rename does not change it.
    pub hostname: String,
    /// What it is made of.
    pub blueprint: Arc<Blueprint>,
    /// The user's secrets, encrypted.
    pub secrets: Sealed,
}

/// An API key; the key itself is nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRow {
    /// Public part of the key.
    pub id: String,
    /// Whose it is.
    pub user: UserId,
    /// What its owner calls it.
    pub name: String,
    /// SHA-256 of the whole key.
    pub sha256: [u8; 32],
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}
