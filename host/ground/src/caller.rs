//! The authenticated user of a request.

use std::net::IpAddr;
use std::sync::Arc;
use wharf_domain::audit::{Actor, Origin};
use wharf_domain::ids::UserId;
use wharf_domain::scope::Scopes;
use wharf_domain::time::Timestamp;

/// The means by which a caller is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    Key,
    Session,
}

/// The authenticated user of a request.
#[derive(Debug, Clone)]
pub struct Caller {
    pub user: UserId,
    pub email: Arc<str>,
    /// Public id of the key or session.
    pub key_id: Arc<str>,
    pub credential: Credential,
    /// Permissions of the key. A session has all of them.
    pub scopes: Scopes,
    /// Expiry of the key.
    pub expires_at: Option<Timestamp>,
    /// Address of the client.
    pub peer: Option<IpAddr>,
    /// Id of the request in the log.
    pub request_id: Arc<str>,
}

impl Caller {
    /// Returns the source of the caller's changes.
    pub fn origin(&self) -> Origin {
        Origin {
            actor: match self.credential {
                Credential::Key => Actor::Key(self.key_id.to_string()),
                Credential::Session => Actor::Session(self.key_id.to_string()),
            },
            peer: self.peer,
            request_id: Some(self.request_id.to_string()),
        }
    }
}
