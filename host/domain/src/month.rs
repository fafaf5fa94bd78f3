//! Calendar months in UTC, in which bills are closed.

use super::time::Timestamp;
use chrono::Datelike;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A month, counted from January of the year 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Month(pub u32);

impl Month {
    /// Returns the month of a time.
    pub fn of(at: Timestamp) -> Self {
        let date = chrono::DateTime::from_timestamp_millis(at.0).unwrap_or_default();
        let year = u32::try_from(date.year()).unwrap_or(0);
        Self(year * 12 + date.month0())
    }

    /// Returns the first millisecond.
    pub fn start(self) -> Timestamp {
        let year = i32::try_from(self.0 / 12).unwrap_or(i32::MAX);
        let date = chrono::NaiveDate::from_ymd_opt(year, self.0 % 12 + 1, 1);
        let midnight = date.unwrap_or_default().and_time(chrono::NaiveTime::MIN);
        Timestamp(midnight.and_utc().timestamp_millis())
    }

    /// Returns the month that is `months` earlier.
    #[must_use]
    pub fn before(self, months: u32) -> Self {
        Self(self.0.saturating_sub(months))
    }

    /// Returns the following month.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// As in `2026-11`.
impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.0 / 12, self.0 % 12 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::Month;
    use crate::time::Timestamp;

    #[test]
    fn months_begin_at_midnight_utc() {
        let at = |text| Timestamp::parse(text).unwrap();
        for (time, start, next) in [
            ("2026-11-24T03:00:00Z", "2026-11-01", "2026-12-01"),
            ("2024-02-29T23:59:59.999Z", "2024-02-01", "2024-03-01"),
            ("2025-12-31T23:30:00-01:00", "2026-01-01", "2026-02-01"),
        ] {
            let month = Month::of(at(time));
            assert_eq!((month.start(), month.next().start()), (at(start), at(next)));
        }
        let month = Month::of(at("2026-01-05"));
        assert_eq!(month.before(13).start(), at("2024-12-01"));
        assert_eq!(month.before(1).to_string(), "2025-12");
    }
}
