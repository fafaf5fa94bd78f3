//! Timestamps of engines, in RFC 3339.

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Parses a timestamp as nanoseconds since 1970, UTC. None if it is invalid, before 1970 or after
/// 2262.
pub fn nanos(text: &str) -> Option<u64> {
    let (date, rest) = text.split_once(['T', 't'])?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let days = days_since_1970(date.next()??, date.next()??, date.next()??)?;
    let zone_at = rest.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = rest.split_at_checked(zone_at)?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut clock = clock.splitn(3, ':').map(|part| part.parse::<i64>().ok());
    let seconds = clock.next()?? * 3600 + clock.next()?? * 60 + clock.next()??;
    let seconds = days
        .checked_mul(86_400)?
        .checked_add(seconds - offset_seconds(zone)?)?;
    let nanos = seconds
        .checked_mul(NANOS_PER_SECOND)?
        .checked_add(fraction_nanos(fraction)?)?;
    u64::try_from(nanos).ok()
}

/// `5` → 500 000 000. Digits after the ninth are ignored.
fn fraction_nanos(digits: &str) -> Option<i64> {
    let digits = digits.get(..9).unwrap_or(digits);
    if digits.is_empty() {
        return Some(0);
    }
    format!("{digits:0<9}").parse().ok()
}

/// `Z` → 0, `+01:30` → 5400.
fn offset_seconds(zone: &str) -> Option<i64> {
    let sign = match zone.chars().next()? {
        'Z' | 'z' => return Some(0),
        '-' => -1,
        _ => 1,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    Some(sign * (hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60))
}

/// Days since 1970-01-01 in the Gregorian calendar. Years begin in March here, so that the leap day
/// comes last.
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || !(0..=9999).contains(&year) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(year * 365 + leap_days + day_of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::nanos;

    #[test]
    fn timestamps_of_engines_are_parsed() {
        assert_eq!(nanos("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(
            nanos("2026-11-21T05:22:03.64060921Z"),
            Some(1_795_238_523_640_609_210)
        );
        assert_eq!(
            nanos("2024-02-29T23:59:60.5+01:00"),
            Some(1_709_247_600_500_000_000)
        );
        assert_eq!(
            nanos("2000-03-01T00:00:00.1234567899Z"),
            Some(951_868_800_123_456_789)
        );
    }

    #[test]
    fn invalid_timestamps_are_none() {
        let cases = [
            "",
            "now",
            "2026-11-21",
            "2026-13-01T00:00:00Z",
            "2026-11-21T05:22Z",
            "0001-01-01T00:00:00Z",
            "2026-11-21T05:22:03",
            "2026-11-21T05:22:03.xZ",
            "é-11-21T05:22:03Z",
            "9999-12-31T00:00:00Z",
            "2026-11-21T05:22:03.123456é89Z",
        ];
        for text in cases {
            assert_eq!(nanos(text), None, "{text}");
        }
    }
}
