//! Identifiers. Each is a type of its own, so that none is taken for another.

use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

/// Names one instance for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InstanceId(pub Uuid);

impl InstanceId {
    /// Reads the hyphenated 36-character form, any case; no other form is an id (a path segment
    /// that is not one is a name).
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() == 36)
            .then(|| Uuid::try_parse(text).ok())
            .flatten()
            .map(Self)
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

/// A user of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UserId(pub u64);

/// A machine that runs instances, as the configuration names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId(pub String);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Counts a user's intents for one instance; a driver's report carries the one it answers.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default,
)]
pub struct Generation(pub u64);

impl Generation {
    /// The one after this.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}
