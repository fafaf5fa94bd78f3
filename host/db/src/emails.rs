//! The addresses of users, which have one canonical form since format 8.

use super::table::{Draft, Rows};
use super::tables as t;
use wharf_domain::email::canonical;
use wharf_domain::error::Error;
use wharf_domain::ids::UserId;

impl Draft<'_> {
    /// Writes the addresses of users in their canonical form. An address stays as it is and is named in
    /// the log if another user has its canonical form, or if it has none. Its exact spelling then names
    /// the user, as before.
    pub(super) fn write_canonical_addresses(&mut self) -> Result<(), Error> {
        let mut users: Vec<(UserId, String)> = Vec::new();
        for row in self.all(&t::USERS)? {
            match row {
                Ok((user, (), email)) => users.push((user, email)),
                Err(error) => tracing::error!(error = %error.chain(), "a user cannot be read"),
            }
        }
        for (user, email) in users {
            let canonical = match canonical(&email) {
                Ok(canonical) if canonical == email => continue,
                Ok(canonical) => canonical,
                Err(rule) => {
                    tracing::warn!(user = user.0, "the address {email:?} of a user {rule}");
                    continue;
                }
            };
            let found: Result<Option<UserId>, Error> = self.get(&t::EMAILS, &*canonical, ());
            let other = match found {
                Ok(other) => other,
                Err(error) => {
                    tracing::error!(error = %error.chain(), "an address cannot be read");
                    continue;
                }
            };
            if let Some(other) = other {
                tracing::warn!(
                    user = user.0,
                    other = other.0,
                    "the addresses of two users are spellings of one: {email:?} and {canonical:?}; only its \
                     exact spelling names the first user"
                );
                continue;
            }
            self.remove(&t::EMAILS, &*email, ())?;
            self.put(&t::EMAILS, &*canonical, (), &user)?;
            self.put(&t::USERS, &user, (), &canonical)?;
        }
        Ok(())
    }
}
