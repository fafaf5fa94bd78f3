//! Warnings in Wharf's log, printed while `up` waits: the reason that keeps an instance from starting
//! is shown at once, not at the deadline.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wharf_testkit::progress;

/// The interval between two reads of the log.
const EVERY: Duration = Duration::from_secs(5);

/// Prints each warning once.
pub(super) struct Warnings {
    log: PathBuf,
    next: Instant,
    printed: String,
}

impl Warnings {
    pub fn of(log: &str) -> Self {
        Self {
            log: PathBuf::from(log),
            next: Instant::now() + EVERY,
            printed: String::new(),
        }
    }

    /// Prints the last warning, unless it is the one printed before.
    pub fn print_new(&mut self) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + EVERY;
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        if let Some(why) = last(&log).filter(|why| *why != self.printed) {
            progress::note(&format!("Wharf warns: {why}"));
            why.clone_into(&mut self.printed);
        }
    }
}

/// The text of the last warning, without fields that change with each attempt.
fn last(log: &str) -> Option<&str> {
    let mut lines = log.lines().rev();
    let line = lines.find_map(|line| line.split_once(" WARN ").map(|(_, text)| text))?;
    Some(line.split_once(" why=").map_or(line, |(_, why)| why))
}

#[cfg(test)]
mod tests {
    use super::last;

    #[test]
    fn the_reason_of_the_last_warning_is_found() {
        let log = "1 WARN wharf::a: one why=first\n2 WARN wharf::a: one pause_ms=5000 why=no room\n3 INFO wharf::b: two\n";
        assert_eq!(last(log), Some("no room"));
        assert_eq!(last("1 WARN wharf::a: alone\n"), Some("wharf::a: alone"));
        assert_eq!(last("1 INFO wharf::a: fine\n"), None);
    }
}
