//! Saved SSH public keys of a user. They are only saved: an instance gets the key of its request.

use super::account::{id_name, parse_id};
use super::audit;
use super::random::fill;
use super::{App, Caller};
use wharf_db::{Change, Changes, ReadSshKeys, SshKeyId, SshKeyRow};
use wharf_domain::error::{Error, FieldErrors, NON_FIELD_ERRORS};
use wharf_domain::time::Timestamp;

/// The most saved keys of one user.
const MAX_KEYS: usize = 50;

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

impl App {
    /// Returns the saved keys of the caller, oldest first.
    pub fn ssh_keys(&self, caller: &Caller) -> Result<Vec<SshKey>, Error> {
        let mut keys = self.db.read(|rows| rows.ssh_keys(caller.user))?;
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
            let keys = view.rows.ssh_keys(user)?;
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
            let put = Change::PutSshKey(user, id, row.clone());
            Ok((
                SshKey::new((id, row)),
                Changes::none().with(put).with(audited),
            ))
        });
        decided.await
    }

    /// Deletes a saved key of the caller. Instances keep it.
    pub async fn delete_ssh_key(&self, caller: &Caller, id: &str) -> Result<(), Error> {
        let id = parse_id(id).ok_or(Error::KeyNotFound)?;
        let (user, origin) = (caller.user, caller.origin());
        let decided = self.db.write_essential(move |view| {
            let keys = view.rows.ssh_keys(user)?;
            if !keys.iter().any(|(known, _)| *known == id) {
                return Err(Error::KeyNotFound);
            }
            let (subject, owner) = (id_name(id), Some(user));
            let audited =
                audit::record(view, &origin, "ssh-key.delete", owner, &subject, "deleted");
            let dropped = Change::DropSshKey(user, id);
            Ok(((), Changes::none().with(dropped).with(audited)))
        });
        decided.await
    }
}
