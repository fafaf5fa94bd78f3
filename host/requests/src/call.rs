//! The calls of a driver, by which a file permits a request and the host has values.

use super::scope::CallScope;
use serde::Deserialize;

/// Calls of a driver, by their subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Call {
    /// About the whole node.
    Node,
    /// The survey of the node.
    Survey,
    /// The marking of the engine's store.
    Mark,
    /// About one instance.
    Instance,
    /// About one instance, with changes.
    Change,
    /// The creation of one instance.
    Create,
    /// The move of one instance to this node.
    Move,
}

/// The calls that may send a request: one or several words of the file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub struct Calls(Vec<Call>);

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "must be one or several of node, survey, mark, instance, change, create, move"
)]
enum Written {
    One(Call),
    Several(Vec<Call>),
}

impl TryFrom<Written> for Calls {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        match written {
            Written::One(call) => Ok(Self(vec![call])),
            Written::Several(calls) if calls.is_empty() => Err("a request needs a call"),
            Written::Several(calls) => Ok(Self(calls)),
        }
    }
}

/// Kinds of calls, none of which includes another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallSet(u8);

impl CallSet {
    pub const ALL: Self = Self(0b111_1111);
    pub const MARK: Self = Call::Mark.set();
    pub const INSTANCE: Self = Call::Instance.set();
    pub const CHANGE: Self = Call::Change.set();
    pub const CREATE: Self = Call::Create.set();
    pub const CREATE_OR_MOVE: Self = Call::Create.set().and(Call::Move.set());
    pub const WITH_IMAGES: Self = Self::CREATE_OR_MOVE.and(Call::Survey.set());

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether it has all kinds of `other`.
    pub const fn includes(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The call of this scope.
    fn of(scope: &CallScope) -> Self {
        Self(match &scope.subject {
            None if scope.survey.is_some() => Call::Survey.set().0,
            None if scope.mark.is_some() => Call::Mark.set().0,
            None => 0b1,
            Some(_) if scope.moves => Call::Move.set().0,
            Some(subject) if subject.creation.is_some() => Call::Create.set().0,
            Some(_) if scope.changes => 0b1_0000,
            Some(_) => 0b1000,
        })
    }

    /// The words of the file for it.
    pub fn words(self) -> String {
        let mut words = Vec::new();
        let mut rest = self;
        for call in Call::ALL {
            let set = call.set();
            if rest.includes(set) {
                rest.0 &= !set.0;
                words.push(format!("{call:?}").to_lowercase());
            }
        }
        words.join(", ")
    }
}

impl Call {
    const ALL: [Self; 7] = [
        Self::Node,
        Self::Survey,
        Self::Mark,
        Self::Instance,
        Self::Change,
        Self::Create,
        Self::Move,
    ];

    const fn set(self) -> CallSet {
        CallSet(match self {
            Self::Node => 0b111,
            Self::Survey => 0b10,
            Self::Mark => 0b100,
            Self::Instance => 0b111_1000,
            Self::Change => 0b111_0000,
            Self::Create => 0b10_0000,
            Self::Move => 0b100_0000,
        })
    }

    fn described(self) -> &'static str {
        match self {
            Self::Node => "a call about the whole node",
            Self::Survey => "the survey of the node",
            Self::Mark => "the call that marks the store",
            Self::Instance => "a call about one instance",
            Self::Change => "a call that changes one instance",
            Self::Create => "the call that creates an instance",
            Self::Move => "the call that moves an instance here",
        }
    }
}

impl Calls {
    /// Their kinds.
    pub fn set(&self) -> CallSet {
        let sets = self.0.iter().map(|call| call.set());
        sets.fold(CallSet(0), CallSet::and)
    }

    /// Refuses other calls.
    pub fn include(&self, scope: &CallScope) -> Result<(), String> {
        match self.set().includes(CallSet::of(scope)) {
            true => Ok(()),
            false => Err(format!("only for {}", self.described())),
        }
    }

    /// Their description for a reader.
    pub fn described(&self) -> String {
        let calls: Vec<_> = self.0.iter().map(|call| call.described()).collect();
        calls.join(" or ")
    }
}
