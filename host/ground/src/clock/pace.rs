//! The rule by which Wharf's time follows the system's clock. It reads no clock itself.

use wharf_config::ClockConfig;
use wharf_domain::time::Timestamp;

/// Small differences shrink by this part of the time that passes.
const SLEW: i64 = 100;
/// Milliseconds between two corrections.
const CORRECT_EVERY: i64 = 1000;
/// Larger differences to the wall clock are ignored, in milliseconds: far more than NTP corrects at once on
/// a clock that is kept right.
const MAX_STEP: i64 = 10_000;

/// A reading of the system's clocks.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    pub wall: Timestamp,
    /// Milliseconds since boot.
    pub boot: i64,
}

/// Wharf's time at the latest correction, and what it may follow.
#[derive(Debug)]
pub struct Pace {
    anchor: Reading,
    /// The latest time that was handed out.
    latest: Timestamp,
    /// Longer gaps between two starts are ignored. In milliseconds.
    max_gap: i64,
    /// After a start with a wrong wall clock, the range in which it is right again.
    plausible: Option<(Timestamp, Timestamp)>,
}

impl Pace {
    /// Starts at the wall clock.
    pub fn new(config: &ClockConfig, reading: Reading) -> Self {
        Self {
            anchor: reading,
            latest: Timestamp::default(),
            max_gap: i64::try_from(config.max_gap_days)
                .unwrap_or(i64::MAX)
                .saturating_mul(24 * 3_600_000),
            plausible: None,
        }
    }

    /// Continues an earlier process of this boot, as if it still ran.
    pub fn continue_boot(&mut self, anchor: Reading, now: Reading) {
        self.anchor = Reading {
            wall: at(anchor.wall, now.boot.saturating_sub(anchor.boot).max(0)),
            boot: now.boot,
        };
        self.latest = self.anchor.wall;
    }

    /// Continues after a boot. The wall clock is right if it shows a later time within the longest
    /// gap. Otherwise time continues where it was, until the wall clock is right.
    pub fn continue_after_gap(&mut self, last: Timestamp, now: Reading) {
        let range = (last, at(last, self.max_gap));
        if within(range, now.wall) {
            self.adopt(now);
        } else {
            self.anchor = Reading { wall: last, ..now };
            self.plausible = Some(range);
        }
        self.latest = self.latest.max(last);
    }

    /// Returns the time, and follows the wall clock.
    pub fn now(&mut self, reading: Reading) -> Timestamp {
        if self
            .plausible
            .is_some_and(|range| within(range, reading.wall))
        {
            self.adopt(reading);
        }
        let elapsed = reading.boot.saturating_sub(self.anchor.boot);
        let mut now = at(self.anchor.wall, elapsed.max(0));
        let difference = reading.wall.0.saturating_sub(now.0);
        if elapsed >= CORRECT_EVERY {
            if difference.saturating_abs() <= MAX_STEP {
                let most = elapsed / SLEW;
                now = at(now, difference.clamp(-most, most));
                self.plausible = None;
            }
            self.anchor = Reading {
                wall: now,
                ..reading
            };
        }
        self.latest = self.latest.max(now);
        self.latest
    }

    /// Whether the wall clock is too far away to be followed.
    pub fn refuses(&self, reading: Reading) -> bool {
        let elapsed = reading.boot.saturating_sub(self.anchor.boot).max(0);
        let now = at(self.anchor.wall, elapsed);
        reading.wall.0.saturating_sub(now.0).saturating_abs() > MAX_STEP
    }

    /// Continues from the wall clock.
    pub fn adopt(&mut self, reading: Reading) {
        self.anchor = reading;
        self.latest = reading.wall;
        self.plausible = None;
    }
}

fn at(from: Timestamp, millis: i64) -> Timestamp {
    Timestamp(from.0.saturating_add(millis))
}

fn within((first, last): (Timestamp, Timestamp), at: Timestamp) -> bool {
    first <= at && at <= last
}

#[cfg(test)]
mod tests {
    use super::{Pace, Reading};
    use wharf_config::ClockConfig;
    use wharf_domain::time::Timestamp;

    const HOUR: i64 = 3_600_000;
    const DAY: i64 = 24 * HOUR;

    fn at(wall: i64, boot: i64) -> Reading {
        Reading {
            wall: Timestamp(wall),
            boot,
        }
    }

    fn pace() -> Pace {
        Pace::new(&ClockConfig::default(), at(DAY, 0))
    }

    #[test]
    fn a_large_step_is_refused_and_its_return_is_not_noticed() {
        let mut pace = pace();
        assert_eq!(pace.now(at(DAY + 5000, 5000)), Timestamp(DAY + 5000));
        for step in [2 * HOUR, -2 * HOUR, 11_000] {
            let stepped = at(DAY + 9000 + step, 9000);
            assert!(pace.refuses(stepped));
            assert_eq!(pace.now(stepped), Timestamp(DAY + 9000));
        }
        let returned = at(DAY + 12_000, 12_000);
        assert!(!pace.refuses(returned));
        assert_eq!(pace.now(returned), Timestamp(DAY + 12_000));
    }

    #[test]
    fn the_operator_can_adopt_a_step_in_both_directions() {
        let mut pace = pace();
        for step in [HOUR, -HOUR] {
            let stepped = at(DAY + step, 2000);
            pace.adopt(stepped);
            assert_eq!(pace.now(stepped), stepped.wall);
            assert!(!pace.refuses(stepped));
        }
    }

    #[test]
    fn a_small_difference_is_followed_slowly_and_time_never_runs_backwards() {
        for difference in [8000, -8000] {
            let (mut pace, mut last) = (pace(), Timestamp(0));
            for second in 1..=2000 {
                let boot = second * 1000;
                let now = pace.now(at(DAY + boot + difference, boot));
                assert!(now >= last);
                let off = now.0 - DAY - boot;
                assert!(off.abs() <= boot / 100 && off.abs() <= 8000, "{off}");
                last = now;
            }
            assert_eq!(last.0 - DAY - 2_000_000, difference);
        }
    }

    #[test]
    fn sleep_is_no_step() {
        // The time since boot counts while the machine sleeps.
        let mut pace = pace();
        assert_eq!(pace.now(at(2 * DAY, DAY)), Timestamp(2 * DAY));
    }

    #[test]
    fn a_process_continues_the_time_of_the_one_before() {
        let mut pace = pace();
        // The wall clock is two hours ahead since the process before.
        let now = at(DAY + 3 * HOUR, HOUR);
        pace.continue_boot(at(DAY, 0), now);
        assert!(pace.refuses(now));
        assert_eq!(pace.now(now), Timestamp(DAY + HOUR));
    }

    #[test]
    fn after_a_boot_a_plausible_gap_is_adopted_and_no_other() {
        for (gap, adopted) in [(2 * DAY, true), (31 * DAY, false), (-HOUR, false)] {
            let mut pace = pace();
            let now = at(DAY + gap, 100);
            pace.continue_after_gap(Timestamp(DAY), now);
            let expected = if adopted { DAY + gap } else { DAY };
            assert_eq!(pace.now(now), Timestamp(expected), "{gap}");
            assert_eq!(pace.refuses(now), !adopted);
            // The system's clock is set right later, by NTP.
            let right = at(DAY + 3 * HOUR, 5000);
            if !adopted {
                assert_eq!(pace.now(right), right.wall);
            }
        }
    }
}
