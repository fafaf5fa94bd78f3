//! The record of changes: the actor, the request and the result of each.

use super::ids::{InstanceId, UserId};
use super::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// The party that made a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Actor {
    /// A user, by the public id of the key.
    Key(String),
    /// The operator, on the machine of the service.
    Operator,
    /// A user, by the public id of the session.
    Session(String),
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(id) => write!(f, "key:{id}"),
            Self::Operator => f.write_str("operator"),
            Self::Session(id) => write!(f, "session:{id}"),
        }
    }
}

/// The source of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub actor: Actor,
    /// Address of the client.
    pub peer: Option<IpAddr>,
    /// Id of the request in the log.
    pub request_id: Option<String>,
}

impl Origin {
    /// The operator.
    pub fn operator() -> Self {
        Self {
            actor: Actor::Operator,
            peer: None,
            request_id: None,
        }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    pub at: Timestamp,
    pub origin: Origin,
    /// The operation, such as `instance.create`.
    pub operation: String,
    /// The user whose data changed.
    pub owner: Option<UserId>,
    /// The instance that changed.
    pub instance: Option<InstanceId>,
    /// The name of another thing that changed, such as the id of a key.
    pub subject: Option<String>,
    /// The result, such as the state of the instance after the change.
    pub result: String,
}
