//! Users are disabled and enabled. The instances of a disabled user go on.

use super::session::end_others;
use crate::audit;
use crate::operator::{Operator, user_named};
use wharf_db::{AccountChange, Change, Changes, ReadAccounts};
use wharf_domain::audit::Origin;
use wharf_domain::error::Error;

impl Operator<'_> {
    /// Refuses the keys of a user and ends the sessions, or accepts the keys again.
    pub async fn set_disabled(&self, email: &str, disabled: bool) -> Result<(), Error> {
        let user = self.db.read(|rows| user_named(rows, "email", email))?;
        let (access, address) = (self.keys.access(), email.to_owned());
        if disabled {
            // Memory first: if the operator's program goes away, the write still happens.
            access.set_disabled(user, true);
        }
        let decided = self.db.write_essential(move |view| {
            if view.rows.is_disabled(user)? == disabled {
                return Ok(((), Changes::none()));
            }
            let (change, operation, result) = match disabled {
                true => {
                    let change = AccountChange::Disable(user, view.system);
                    (change, "user.disable", "disabled")
                }
                false => (AccountChange::Enable(user), "user.enable", "enabled"),
            };
            let mut changes = match disabled {
                // An invitation would be a way back in.
                true => end_others(view, user, None)?
                    .with(Change::Account(AccountChange::DropInvite(user))),
                false => Changes::none(),
            };
            let origin = Origin::operator();
            let audited = audit::record(view, &origin, operation, Some(user), &address, result);
            changes = changes.with(Change::Account(change)).with(audited);
            Ok(((), changes))
        });
        let decided = decided.await;
        access.set_disabled(user, self.db.read(|rows| rows.is_disabled(user))?);
        self.accounts.refresh(user)?;
        decided
    }
}
