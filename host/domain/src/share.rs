//! The visitors of a shared page.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The visitors that may see a page beside its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShareAccess {
    Owner,
    /// The users with these e-mail addresses in their canonical form. They may have no user yet.
    Users(Vec<String>),
    /// All users of this service.
    SignedIn,
    /// Everyone, without an account.
    Public,
}

impl ShareAccess {
    /// The name in requests.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Users(_) => "users",
            Self::SignedIn => "signed_in",
            Self::Public => "public",
        }
    }
}

impl fmt::Display for ShareAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner => f.write_str("you alone"),
            Self::Users(users) => match &**users {
                [user] => f.write_str(user),
                users => write!(f, "{} users", users.len()),
            },
            Self::SignedIn => f.write_str("all signed-in users"),
            Self::Public => f.write_str("everyone"),
        }
    }
}
