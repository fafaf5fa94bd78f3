//! Lookup of the instance that a path segment names.

use serde::Deserialize;
use wharf_db::Read;
use wharf_domain::error::Error;
use wharf_domain::ids::{InstanceId, UserId};
use wharf_domain::instance::{Instance, Intent};

/// A path segment that selects an instance: a hyphenated UUID, or else a name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub enum Selector {
    Id(InstanceId),
    /// The name of an instance; any text, valid or not.
    Name(String),
}

impl Selector {
    /// Parses a decoded path segment.
    pub fn parse(segment: &str) -> Self {
        InstanceId::parse(segment).map_or_else(|| Self::Name(segment.to_owned()), Self::Id)
    }
}

impl From<String> for Selector {
    fn from(segment: String) -> Self {
        Self::parse(&segment)
    }
}

/// The empty name, which no instance has.
impl Default for Selector {
    fn default() -> Self {
        Self::Name(String::new())
    }
}

/// Finds a living instance of an owner. Other owners' instances are not found.
pub fn find(rows: &impl Read, owner: UserId, selector: &Selector) -> Result<Instance, Error> {
    let id = match selector {
        Selector::Id(id) => Some(*id),
        Selector::Name(name) => rows.id_of_name(name)?,
    };
    let instance = match id {
        Some(id) => rows.instance(id)?,
        None => None,
    };
    instance
        .filter(|i| i.owner == owner && i.intent != Intent::Delete)
        .ok_or(Error::NotFound)
}
