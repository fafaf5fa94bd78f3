//! What Wharf warns of while someone waits: a reason that keeps an instance from coming up is told
//! at once, not when the patience is over.

use crate::say;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often the log is looked at.
const EVERY: Duration = Duration::from_secs(5);

/// Tells each of them once.
pub(super) struct Warnings {
    log: PathBuf,
    next: Instant,
    told: String,
}

impl Warnings {
    pub fn of(log: &str) -> Self {
        Self {
            log: PathBuf::from(log),
            next: Instant::now() + EVERY,
            told: String::new(),
        }
    }

    /// The last one, if it is another than the last that was told.
    pub fn tell(&mut self) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + EVERY;
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        if let Some(why) = last(&log).filter(|why| *why != self.told) {
            say::note(&format!("Wharf warns: {why}"));
            why.clone_into(&mut self.told);
        }
    }
}

/// What the last warning says, without what changes from one attempt to the next.
fn last(log: &str) -> Option<&str> {
    let mut lines = log.lines().rev();
    let line = lines.find_map(|line| line.split_once(" WARN ").map(|(_, said)| said))?;
    Some(line.split_once(" why=").map_or(line, |(_, why)| why))
}

#[cfg(test)]
mod tests {
    use super::last;

    #[test]
    fn the_reason_of_the_last_warning_is_told() {
        let log = "1 WARN wharf::a: one why=first\n2 WARN wharf::a: one pause_ms=5000 why=no room\n3 INFO wharf::b: two\n";
        assert_eq!(last(log), Some("no room"));
        assert_eq!(last("1 WARN wharf::a: alone\n"), Some("wharf::a: alone"));
        assert_eq!(last("1 INFO wharf::a: fine\n"), None);
    }
}
