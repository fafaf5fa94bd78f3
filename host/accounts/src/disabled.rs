//! Users are disabled and enabled. The instances of a disabled user go on.

use super::Accounts;
use super::invite::INVITES;
use super::session::end_others;
use wharf_db::{Changes, Rows, Table, tables};
use wharf_domain::audit::Origin;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;
use wharf_domain::time::Timestamp;
use wharf_ground::audit;
use wharf_ground::users::{USERS, user_named};

tables! {
    /// Disabled users, with the time at which they were disabled.
    pub const DISABLED: Table<UserId, (), Timestamp> =
        Table::bounded(b'U', 2, "One row of a user, set by the operator",
            "Until the operator changes it").of(&USERS);
}

/// Whether a user is disabled.
pub fn is_disabled(rows: &impl Rows, user: UserId) -> Result<bool, Error> {
    Ok(rows.get(&DISABLED, user)?.is_some())
}

impl Accounts {
    /// Refuses the keys of a user and ends the sessions, or accepts the keys again.
    pub async fn set_disabled(&self, email: &str, disabled: bool) -> Result<(), Error> {
        let user = self.db.read(|rows| user_named(rows, "email", email))?;
        let (access, address) = (&self.keys.access, email.to_owned());
        if disabled {
            // Memory first: if the operator's program goes away, the write still happens.
            access.set_disabled(user, true);
        }
        let decided = self.db.write_essential(move |view| {
            if is_disabled(view.rows, user)? == disabled {
                return Ok(((), Changes::none()));
            }
            let (changes, operation, result) = if disabled {
                // An invitation would be a way back in.
                let ended = end_others(view, user, None)?.remove(&INVITES, user);
                let changes = ended.put(&DISABLED, user, view.system);
                (changes, "user.disable", "disabled")
            } else {
                let changes = Changes::none().remove(&DISABLED, user);
                (changes, "user.enable", "enabled")
            };
            let origin = Origin::operator();
            let audited = audit::record(view, &origin, operation, Some(user), &address, result);
            Ok(((), changes.with(audited)))
        });
        let decided = decided.await;
        access.set_disabled(user, self.db.read(|rows| is_disabled(rows, user))?);
        self.refresh(user)?;
        decided
    }
}
