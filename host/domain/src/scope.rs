//! The scopes of an API key.

use serde::{Deserialize, Serialize};

/// A permission of an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Requests that change nothing.
    Read,
    /// Requests that change something.
    Write,
    /// The metrics of the service, which the operator gives.
    Metrics,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Metrics];

    /// Returns the spelling of the REST interface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Metrics => "metrics",
        }
    }

    /// Parses the spelling of the REST interface.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }

    fn bit(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Write => 2,
            Self::Metrics => 4,
        }
    }
}

/// A set of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scopes(u8);

impl Scopes {
    /// All scopes, those of the future included.
    pub const ALL: Self = Self(u8::MAX);

    /// The scopes of sessions, which users can give to keys of theirs. The operator gives all others.
    pub const OF_USERS: Self = Self(3);

    /// Returns whether a scope is in the set.
    pub fn has(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Returns the scopes that are in both sets.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the scopes in the set.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.has(*scope))
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Scope, Scopes};

    #[test]
    fn sets() {
        let set: Scopes = [Scope::Read, Scope::Metrics].into_iter().collect();
        assert!(set.has(Scope::Read) && !set.has(Scope::Write));
        assert!(set.iter().eq([Scope::Read, Scope::Metrics]));
        assert!(Scopes::ALL.iter().eq(Scope::ALL));
        assert!(Scopes::OF_USERS.iter().eq([Scope::Read, Scope::Write]));
        assert!(set.intersection(Scopes::OF_USERS).iter().eq([Scope::Read]));
        assert_eq!(Scope::parse("write"), Some(Scope::Write));
        assert_eq!(Scope::parse("Write"), None);
    }
}
