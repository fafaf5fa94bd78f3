//! Instance names, by section 2.2 of the specification.

use super::ids::InstanceId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A valid instance name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Name(String);

/// The valid range of the length in characters.
const LENGTH: std::ops::RangeInclusive<usize> = 2..=63;

impl Name {
    /// Parses a name. The error is a message for the user.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if !text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        {
            return Err("must contain only lowercase letters a-z, digits and hyphens");
        }
        if !LENGTH.contains(&text.len()) {
            return Err("must be 2 to 63 characters long");
        }
        if text.starts_with('-') || text.ends_with('-') {
            return Err("must not start or end with a hyphen");
        }
        if InstanceId::parse(text).is_some() {
            return Err("must not have the form of a UUID");
        }
        Ok(Self(text.to_owned()))
    }

    /// Generates a name of two words and a number from `random`.
    pub fn generate(random: u64) -> Self {
        let pick = |words: &[&'static str], r: u64| -> &'static str {
            let index = usize::try_from(r % words.len() as u64).unwrap_or(0);
            words.get(index).copied().unwrap_or("calm")
        };
        let first = pick(FIRST, random);
        let second = pick(SECOND, random >> 16);
        let number = (random >> 32) % 10_000;
        Self(format!("{first}-{second}-{number}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const FIRST: &[&str] = &[
    "amber", "bold", "brisk", "calm", "clear", "coral", "crisp", "deep", "early", "fair", "fleet",
    "fresh", "gentle", "glad", "golden", "grand", "green", "keen", "kind", "light", "lively",
    "lucid", "mellow", "merry", "mild", "neat", "noble", "polar", "proud", "quick", "quiet",
    "rapid", "ready", "royal", "sharp", "silver", "smooth", "solar", "steady", "still", "stout",
    "sunny", "swift", "tidal", "true", "vivid", "warm", "wise",
];

const SECOND: &[&str] = &[
    "anchor",
    "bay",
    "beacon",
    "berth",
    "bollard",
    "bow",
    "breeze",
    "bridge",
    "buoy",
    "canal",
    "cape",
    "cargo",
    "coast",
    "compass",
    "cove",
    "crane",
    "current",
    "delta",
    "dock",
    "fjord",
    "gull",
    "harbor",
    "haven",
    "heron",
    "hull",
    "island",
    "jetty",
    "keel",
    "lagoon",
    "lantern",
    "lighthouse",
    "mast",
    "mooring",
    "oar",
    "pier",
    "pilot",
    "quay",
    "reef",
    "rudder",
    "sail",
    "shoal",
    "sound",
    "strait",
    "tide",
    "tug",
    "vessel",
    "wake",
    "wave",
];

#[cfg(test)]
mod tests {
    use super::Name;

    #[test]
    fn the_rules_of_section_2_2() {
        for good in ["ab", "a1", "my-box-3", &"a".repeat(63), "0a", "a--b"] {
            assert!(Name::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "a",
            "-ab",
            "ab-",
            "Ab",
            "a_b",
            "a b",
            "ä-b",
            &"a".repeat(64),
            "0f8fad5b-d9cb-469f-a165-70867728950e",
        ] {
            assert!(Name::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn generated_names_are_valid() {
        for r in 0..5_000_u64 {
            let name = Name::generate(r.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            assert!(Name::parse(name.as_str()).is_ok());
            assert_eq!(name.as_str().split('-').count(), 3);
        }
    }
}
