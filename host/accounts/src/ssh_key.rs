//! Saved SSH public keys of a user. They are only saved: an instance gets the key of its request.

use super::Accounts;
use crate::session::{id_name, parse_id};
use serde::{Deserialize, Serialize};
use wharf_db::{Changes, Rows, Table, tables};
use wharf_domain::error::{Error, FieldErrors, NON_FIELD_ERRORS};
use wharf_domain::ids::UserId;
use wharf_domain::time::Timestamp;
use wharf_ground::audit;
use wharf_ground::caller::Caller;
use wharf_ground::random::fill;
use wharf_ground::users::USERS;

/// The most saved keys of one user.
const MAX_KEYS: usize = 50;

tables! {
    /// Saved SSH public keys of a user by id.
    pub const SSH_KEYS: Table<UserId, SshKeyId, SshKeyRow> =
        Table::bounded(b'S', 0, "50 of a user", "Until the user deletes it").of(&USERS)
            .wakes_user("ssh-keys");
}

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

/// A saved SSH public key.
#[derive(Debug, Clone)]
pub struct SshKey {
    pub id: String,
    pub name: String,
    /// One OpenSSH public key line.
    pub public_key: String,
    pub created_at: Timestamp,
}

impl SshKey {
    fn new((id, row): (SshKeyId, SshKeyRow)) -> Self {
        Self {
            id: id_name(id),
            name: row.name,
            public_key: row.public_key,
            created_at: row.created_at,
        }
    }
}

fn saved_by(rows: &impl Rows, user: UserId) -> Result<Vec<(SshKeyId, SshKeyRow)>, Error> {
    rows.under(&SSH_KEYS, &user)?.collect()
}

impl Accounts {
    /// Returns the saved keys of the caller, oldest first.
    pub fn ssh_keys(&self, caller: &Caller) -> Result<Vec<SshKey>, Error> {
        let mut keys = self.db.read(|rows| saved_by(rows, caller.user))?;
        keys.sort_by_key(|(id, row)| (row.created_at, *id));
        Ok(keys.into_iter().map(SshKey::new).collect())
    }

    /// Saves a key, whose line must be valid.
    pub async fn save_ssh_key(
        &self,
        caller: &Caller,
        name: String,
        public_key: String,
    ) -> Result<SshKey, Error> {
        let mut id = SshKeyId::default();
        fill(&mut id)?;
        let (user, origin) = (caller.user, caller.origin());
        let decided = self.db.write(move |view| {
            let keys = saved_by(view.rows, user)?;
            if keys.iter().any(|(_, row)| row.name == name) {
                let message = "is the name of another saved key";
                return Err(FieldErrors::one("name", message).into());
            }
            if keys.len() >= MAX_KEYS {
                let message = format!("a user has at most {MAX_KEYS} saved keys; delete one first");
                return Err(FieldErrors::one(NON_FIELD_ERRORS, message).into());
            }
            let row = SshKeyRow {
                name: name.clone(),
                public_key: public_key.clone(),
                created_at: view.system,
            };
            let (subject, owner) = (id_name(id), Some(user));
            let audited = audit::record(view, &origin, "ssh-key.save", owner, &subject, "saved");
            let put = Changes::none().put(&SSH_KEYS, (user, id), row.clone());
            Ok((SshKey::new((id, row)), put.with(audited)))
        });
        decided.await
    }

    /// Deletes a saved key of the caller. Instances keep it.
    pub async fn delete_ssh_key(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        let id = parse_id(id).ok_or(Error::KeyNotFound)?;
        let (user, origin) = (caller.user, caller.origin());
        let decided = self.db.write_essential(move |view| {
            if view.rows.get(&SSH_KEYS, (user, id))?.is_none() {
                return Err(Error::KeyNotFound);
            }
            let (subject, owner) = (id_name(id), Some(user));
            let audited =
                audit::record(view, &origin, "ssh-key.delete", owner, &subject, "deleted");
            let dropped = Changes::none().remove(&SSH_KEYS, (user, id));
            Ok(((), dropped.with(audited)))
        });
        decided.await
    }
}
