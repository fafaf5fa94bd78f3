//! Saved SSH public keys.

use super::table::Rows;
use super::tables as t;
use serde::{Deserialize, Serialize};
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::time::Timestamp;

/// The public id of a saved SSH key.
pub type SshKeyId = [u8; 8];

/// A saved SSH public key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SshKeyRow {
    /// The name that its owner gave it, unique for the owner.
    pub name: String,
    /// One OpenSSH public key line.
    pub public_key: String,
    pub created_at: Timestamp,
}

/// Questions to these rows.
#[expect(
    clippy::missing_errors_doc,
    reason = "all fail only if the file is broken"
)]
pub trait ReadSshKeys: Rows {
    /// The saved SSH keys of a user.
    fn ssh_keys(&self, user: UserId) -> Result<Vec<(SshKeyId, SshKeyRow)>, Error> {
        self.under(&t::SSH_KEYS, &user)?.collect()
    }
}

impl<T: Rows> ReadSshKeys for T {}
