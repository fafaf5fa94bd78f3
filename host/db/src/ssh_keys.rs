//! Saved SSH public keys.

use super::rows::{SshKeyId, SshKeyRow};
use super::table::Rows;
use super::tables as t;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;

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
