//! Points in time, as milliseconds since 1970-01-01T00:00:00Z.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A point in time in UTC with millisecond precision.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default,
)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns the later of two times. Ledgers use it so that their time never decreases.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        if self >= other { self } else { other }
    }

    /// Returns the milliseconds since `earlier`, or 0 if `earlier` is later.
    pub fn millis_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }

    /// Returns the time this much later.
    #[must_use]
    pub fn plus(self, later: Duration) -> Self {
        let millis = i64::try_from(later.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// Parses an ISO 8601 time with offset, or a date, which means its midnight in UTC.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(at) = chrono::DateTime::parse_from_rfc3339(text) {
            return Some(Self(at.timestamp_millis()));
        }
        let date: chrono::NaiveDate = text.parse().ok()?;
        let midnight = date.and_hms_opt(0, 0, 0)?;
        Some(Self(midnight.and_utc().timestamp_millis()))
    }

    /// Formats the time as in `2026-11-20T19:55:44.123Z`.
    pub fn to_rfc3339(self) -> String {
        chrono::DateTime::from_timestamp_millis(self.0)
            .unwrap_or_default()
            .to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
    }
}

/// For `#[serde(with)]`: JSON for people has [`Timestamp::to_rfc3339`]. Rows have the number.
pub mod rfc3339 {
    use super::Timestamp;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&at.to_rfc3339())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        let text = String::deserialize(from)?;
        Timestamp::parse(&text).ok_or_else(|| D::Error::custom("not an ISO 8601 time"))
    }

    /// For an `Option`.
    pub mod option {
        use super::{Deserialize, Deserializer, Serializer, Timestamp};
        use serde::Serialize;

        #[derive(Serialize, Deserialize)]
        struct Text(#[serde(with = "super")] Timestamp);

        pub fn serialize<S: Serializer>(at: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
            at.map(Text).serialize(to)
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(
            from: D,
        ) -> Result<Option<Timestamp>, D::Error> {
            Ok(Option::deserialize(from)?.map(|Text(at)| at))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn always_three_decimals_and_z() {
        assert_eq!(
            Timestamp(1_763_668_544_120).to_rfc3339(),
            "2025-11-20T19:55:44.120Z"
        );
        assert_eq!(Timestamp(0).to_rfc3339(), "1970-01-01T00:00:00.000Z");
    }
}
