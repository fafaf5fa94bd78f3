//! Users and their addresses, which have one canonical form since format 8.

use std::collections::BTreeMap;
use wharf_db::{Changes, Draft, OF_USER, Rows, Table, View, tables};
use wharf_domain::email::canonical;
use wharf_domain::error::{Error, FieldErrors};
use wharf_domain::ids::UserId;

tables! {
    /// E-mail address of each user.
    pub const USERS: Table<UserId, (), String> = Table::bounded(b'u', 0, OF_USER, "Always")
        .indexed(|user, (), email, entries| entries.put(&EMAILS, email.as_str(), user));
    /// E-mail address → user.
    pub const EMAILS: Table<String, (), UserId> = Table::index_of(&USERS, b'e', 0);
}

/// The user with an e-mail address, in any spelling. The exact one is first: an earlier version may
/// have stored two users with spellings of one address.
pub fn user_of_email(rows: &impl Rows, email: &str) -> Result<Option<UserId>, Error> {
    match (rows.get(&EMAILS, email)?, canonical(email)) {
        (None, Ok(canonical)) => rows.get(&EMAILS, &*canonical),
        (user, _) => Ok(user),
    }
}

/// The user with an e-mail address that an operator named in this field.
pub fn user_named(rows: &impl Rows, field: &str, email: &str) -> Result<UserId, Error> {
    let missing = || FieldErrors::one(field, format!("no user has the address {email:?}"));
    Ok(user_of_email(rows, email)?.ok_or_else(missing)?)
}

/// Returns a new user with an address, and the change that makes the user.
pub fn new_user(view: &View<'_>, email: &str) -> Result<(UserId, Changes), Error> {
    let email = canonical(email).map_err(|rule| FieldErrors::one("email", rule))?;
    let last = view.rows.all(&USERS)?.next_back().transpose()?;
    let user = UserId(last.map_or(1, |(user, ..)| user.0 + 1));
    Ok((user, Changes::none().put(&USERS, user, email)))
}

/// Writes the addresses of users in their canonical form. An address stays as it is and is named in
/// the log if another user has its canonical form, or if it has none. Its exact spelling then names
/// the user, as before.
pub fn write_canonical_addresses(rows: &mut Draft<'_>) -> Result<(), Error> {
    let mut users = BTreeMap::new();
    for row in rows.all(&USERS)? {
        match row {
            Ok((user, (), email)) => drop(users.insert(user, email)),
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
        match rows.get(&EMAILS, &*canonical) {
            Ok(None) => drop(rows.put(&USERS, user, &canonical)?),
            Ok(Some(other)) => tracing::warn!(
                user = user.0,
                other = other.0,
                "the addresses of two users are spellings of one: {email:?} and {canonical:?}; only its \
                 exact spelling names the first user"
            ),
            Err(error) => {
                tracing::error!(error = %error.chain(), "an address cannot be read");
            }
        }
    }
    Ok(())
}
