//! Money as integers. Only JSON carries it as decimal numbers.

use serde::{Deserialize, Serialize};

/// A rate in nano-USD (10⁻⁹ USD) per unit and hour.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default,
)]
pub struct Rate(pub u64);

/// Nano-USD per USD.
pub const NANO: u64 = 1_000_000_000;

/// Maximum configurable rate: 1000 USD per unit and hour.
const MAX: u64 = 1000 * NANO;

impl Rate {
    /// Parses a decimal such as `0.0125` exactly. It may have at most nine decimals.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const WRONG: &str = "must be a decimal number of USD with at most nine decimals, 0 to 1000";
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || fraction.len() > 9 || whole.len() > 4 {
            return Err(WRONG);
        }
        let whole: u64 = whole.parse().map_err(|_| WRONG)?;
        let fraction: u64 = format!("{fraction:0<9}").parse().map_err(|_| WRONG)?;
        let rate = whole * NANO + fraction;
        if rate > MAX {
            return Err(WRONG);
        }
        Ok(Self(rate))
    }

    /// Returns the shortest exact decimal of the rate in USD, which is a valid JSON number.
    pub fn to_decimal(self) -> String {
        let (whole, fraction) = (self.0 / NANO, self.0 % NANO);
        let fraction = format!("{fraction:09}");
        let fraction = fraction.trim_end_matches('0');
        if fraction.is_empty() {
            format!("{whole}.0")
        } else {
            format!("{whole}.{fraction}")
        }
    }
}

/// The largest correction of a bill: a million USD.
const MAX_AMOUNT: i128 = 1_000_000 * NANO as i128;

/// Parses a signed decimal of USD exactly, in nano-USD.
pub fn parse_usd(text: &str) -> Result<i128, &'static str> {
    const WRONG: &str = "must be a decimal number of USD with at most nine decimals, such as -1.25";
    let (sign, amount) = match text.strip_prefix('-') {
        Some(amount) => (-1, amount),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, "0"));
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 || whole.len() > 7 {
        return Err(WRONG);
    }
    let whole: i128 = whole.parse().map_err(|_| WRONG)?;
    let fraction: i128 = format!("{fraction:0<9}").parse().map_err(|_| WRONG)?;
    let nano = whole * i128::from(NANO) + fraction;
    match nano {
        0 => Err("must not be 0"),
        1..=MAX_AMOUNT => Ok(sign * nano),
        _ => Err("must be at most 1000000"),
    }
}

/// Formats an amount in USD with nine decimals.
pub fn usd(nano: i128) -> String {
    let (unit, amount) = (u128::from(NANO), nano.unsigned_abs());
    let sign = if nano < 0 { "-" } else { "" };
    format!("{sign}{}.{:09}", amount / unit, amount % unit)
}

/// The rates of an instance, fixed at its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Rates {
    /// Rate of one vCPU.
    pub vcpu: Rate,
    /// Rate of one GiB of RAM.
    pub mem: Rate,
    /// Rate of one GiB of disk.
    pub disk: Rate,
    /// Rate of one GPU; 0 without a GPU.
    pub gpu: Rate,
}

#[cfg(test)]
mod tests {
    use super::{Rate, parse_usd, usd};

    #[test]
    fn amounts_have_a_sign() {
        for (text, nano, shown) in [
            ("-1.25", -1_250_000_000, "-1.250000000"),
            ("+0.000000001", 1, "0.000000001"),
            ("1000000", 1_000_000_000_000_000, "1000000.000000000"),
        ] {
            assert_eq!(parse_usd(text), Ok(nano));
            assert_eq!(usd(nano), shown);
        }
        for bad in [
            "",
            "-",
            "--1",
            "1e3",
            "0",
            "-0.0",
            "0.0000000001",
            "1000000.1",
        ] {
            assert!(parse_usd(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn decimals_are_exact() {
        for (text, nano) in [
            ("0.0125", 12_500_000),
            ("0.3", 300_000_000),
            ("2.5", 2_500_000_000),
            ("0.000000001", 1),
            ("0.0", 0),
            ("1000.0", 1_000_000_000_000),
        ] {
            let rate = Rate::parse(text).map(|r| r.0);
            assert_eq!(rate, Ok(nano), "{text}");
            assert_eq!(Rate(nano).to_decimal(), text);
        }
        assert_eq!(Rate::parse("7"), Ok(Rate(7_000_000_000)));
        for bad in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "1e3",
            "1.0000000001",
            "1001",
            "1000.1",
        ] {
            assert!(Rate::parse(bad).is_err(), "{bad}");
        }
    }
}
