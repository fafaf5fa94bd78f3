//! The calls of a driver, by which a file permits a request and the host has values.

use super::scope::{CallScope, SnapshotPurpose};
use serde::Deserialize;

/// A set of kinds of calls. A request file has one of [`WORDS`], or a list of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "CallsToml")]
pub struct Calls(u16);

/// The words of a request file, with their kinds. A later word may be a part of an earlier one.
const WORDS: [(&str, Calls, &str); 14] = [
    ("node", Calls(0b111), "a call about the whole node"),
    ("survey", Calls(0b10), "the survey of the node"),
    ("mark", Calls::MARK, "the call that marks the store"),
    ("instance", Calls::INSTANCE, "a call about one instance"),
    ("change", Calls::CHANGE, "a call that changes one instance"),
    ("create", Calls::CREATE, "the call that creates an instance"),
    (
        "move",
        Calls(0b100_0000),
        "the call that moves an instance here",
    ),
    ("volume", Calls::VOLUME, "a call that changes one volume"),
    ("make", Calls::MAKE, "the call that makes a volume"),
    ("take", Calls::TAKE, "the call that takes a snapshot"),
    ("drop", Calls::DROP, "the call that removes a snapshot"),
    (
        "restore",
        Calls::RESTORE,
        "the call that restores a snapshot",
    ),
    (
        "send",
        Calls::SEND,
        "the call that sends a snapshot's content",
    ),
    (
        "send-volume",
        Calls::SEND_VOLUME,
        "the call that sends a volume's content",
    ),
];

#[derive(Deserialize)]
#[serde(untagged, expecting = "must be a word or a list of words")]
enum CallsToml {
    One(String),
    Several(Vec<String>),
}

impl TryFrom<CallsToml> for Calls {
    type Error = String;

    fn try_from(written: CallsToml) -> Result<Self, String> {
        let words = match written {
            CallsToml::One(word) => vec![word],
            CallsToml::Several(words) => words,
        };
        let mut calls = Self(0);
        for word in &words {
            let known = WORDS.iter().find(|(known, ..)| known == word);
            let Some((_, set, _)) = known else {
                let all = WORDS.map(|(known, ..)| known).join(", ");
                return Err(format!("{word:?} is not one of the calls {all}"));
            };
            calls.0 |= set.0;
        }
        if words.is_empty() {
            Err("a request needs a call".to_owned())
        } else {
            Ok(calls)
        }
    }
}

impl Calls {
    pub const ALL: Self = Self(0b11_1111_1111_1111);
    pub const MARK: Self = Self(0b100);
    pub const INSTANCE: Self = Self(0b1_1110_0111_1000);
    pub const CHANGE: Self = Self(0b1010_0111_0000);
    pub const CREATE: Self = Self(0b1000_0010_0000);
    pub const CREATE_OR_MOVE: Self = Self(0b1000_0110_0000);
    pub const MAKE: Self = Self(0b1_0000_0000);
    pub const VOLUME: Self = Self(0b1_1000_0000);
    pub const WITH_IMAGES: Self = Self(0b1001_0110_0010);
    pub const TAKE: Self = Self(0b10_0000_0000);
    pub const DROP: Self = Self(0b100_0000_0000);
    pub const RESTORE: Self = Self(0b1000_0000_0000);
    pub const SEND: Self = Self(0b1_0000_0000_0000);
    pub const SEND_VOLUME: Self = Self(0b10_0000_0000_0000);
    pub const WITH_VOLUME: Self = Self(0b10_0001_1000_0000);
    pub const WITH_SNAPSHOT: Self = Self(0b1_1110_0010_0000);

    /// The kind of the call with this scope.
    fn of(scope: &CallScope) -> Self {
        if let Some(volume) = &scope.volume {
            return match volume.creation {
                Some(_) => Self::MAKE,
                None if volume.is_sent => Self::SEND_VOLUME,
                None => Self(0b1000_0000),
            };
        }
        match scope.snapshot.map(|snapshot| snapshot.purpose) {
            Some(SnapshotPurpose::Take) => return Self::TAKE,
            Some(SnapshotPurpose::Drop) => return Self::DROP,
            Some(SnapshotPurpose::Restore) => return Self::RESTORE,
            Some(SnapshotPurpose::Send) => return Self::SEND,
            Some(SnapshotPurpose::Source) | None => {}
        }
        Self(match &scope.subject {
            None if scope.survey.is_some() => 0b10,
            None if scope.mark.is_some() => Self::MARK.0,
            None => 0b1,
            Some(_) if scope.moves => 0b100_0000,
            Some(subject) if subject.creation.is_some() => 0b10_0000,
            Some(_) if scope.changes => 0b1_0000,
            Some(_) => 0b1000,
        })
    }

    /// Whether the set has all kinds of `other`.
    pub fn includes(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Refuses other calls.
    pub fn include(self, scope: &CallScope) -> Result<(), String> {
        if self.includes(Self::of(scope)) {
            Ok(())
        } else {
            Err(format!("only for {}", self.described()))
        }
    }

    /// Their description for a reader.
    pub fn described(self) -> String {
        let mut rest = self;
        let mut described = Vec::new();
        for (_, set, words) in WORDS {
            if rest.includes(set) {
                rest.0 &= !set.0;
                described.push(words);
            }
        }
        described.join(" or ")
    }
}
