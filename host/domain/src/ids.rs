//! Identifiers. Each has its own type, so that the compiler tells them apart.

use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

/// The permanent id of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InstanceId(pub Uuid);

impl InstanceId {
    /// Parses the hyphenated 36-character form in any case.
    ///
    /// Other forms of a UUID are not ids: a path segment in another form is a name.
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

/// Ids of rows that have their events and ledger as an instance with this id has them.
macro_rules! kept_ids {
    ($($(#[$doc:meta])* $id:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub struct $id(pub Uuid);

        impl $id {
            /// Parses the hyphenated 36-character form in any case.
            pub fn parse(text: &str) -> Option<Self> {
                InstanceId::parse(text).map(|id| Self(id.0))
            }
        }

        impl From<$id> for InstanceId {
            fn from(id: $id) -> Self {
                Self(id.0)
            }
        }

        impl From<InstanceId> for $id {
            fn from(id: InstanceId) -> Self {
                Self(id.0)
            }
        }

        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }
    )*};
}

kept_ids! {
    /// The permanent id of a volume.
    VolumeId;
    /// The permanent id of a snapshot.
    SnapshotId;
    /// The permanent id of a bucket.
    BucketId;
    /// The permanent id of a backup.
    BackupId;
}

/// The id of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UserId(pub u64);

/// The name of a node in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId(pub String);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The number of an intent of one instance. A driver's report carries the generation it answers.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default,
)]
pub struct Generation(pub u64);

impl Generation {
    /// Returns the next generation.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}
