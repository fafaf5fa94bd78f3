//! The digest printed after `cargo test`: the time of each slow test binary, what was skipped, and
//! the output of the binaries that failed. Logs are often cut, and their end is what remains.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Lines kept of each binary: its last lines, and the first lines of its list of failures.
const KEPT: usize = 60;
/// Binaries that took less are left out.
const SLOW: Duration = Duration::from_secs(5);
/// The prefix of a line in which a test reports that it did not run.
const SKIPPED: &str = "SKIPPED: ";

/// Reads the output line by line.
#[derive(Debug, Default)]
pub(super) struct Digest {
    sections: Vec<Section>,
    failed: Vec<String>,
    skipped: Vec<String>,
}

/// The output of one test binary.
#[derive(Debug)]
struct Section {
    name: String,
    since: Instant,
    took: Duration,
    last: VecDeque<String>,
    failures: Vec<String>,
}

impl Digest {
    /// Reads a line that was printed at this time.
    pub(super) fn line(&mut self, now: Instant, line: &str) {
        if let Some((_, why)) = line.split_once(SKIPPED) {
            self.skipped.push(why.to_owned());
        }
        if let Some(name) = section(line) {
            self.sections.push(Section {
                name,
                since: now,
                took: Duration::ZERO,
                last: VecDeque::new(),
                failures: Vec::new(),
            });
        } else if let Some(target) = failed_target(line) {
            self.failed.push(target);
        } else if let Some(section) = self.sections.last_mut() {
            section.took = now - section.since;
            section.keep(line);
        }
    }

    /// The text: times, then skips, then failures.
    pub(super) fn summary(&self) -> String {
        let mut text = String::new();
        for section in &self.sections {
            let has_failed = self.has_failed(section);
            if section.took >= SLOW || has_failed {
                let outcome = if has_failed { "FAILED" } else { "ok" };
                let seconds = section.took.as_secs();
                let _ = writeln!(text, "{seconds:>6} s  {outcome:<6}  {}", section.name);
            }
        }
        for why in &self.skipped {
            let _ = writeln!(text, "skipped: {why}");
        }
        for section in self.sections.iter().filter(|s| self.has_failed(s)) {
            let _ = writeln!(text, "\n── {} failed; the end of its output:", section.name);
            for line in section.last.iter().chain(&section.failures) {
                let _ = writeln!(text, "{line}");
            }
        }
        text
    }

    fn has_failed(&self, section: &Section) -> bool {
        self.failed.contains(&section.name)
    }
}

impl Section {
    fn keep(&mut self, line: &str) {
        if !self.failures.is_empty() || line == "failures:" {
            if self.failures.len() < KEPT {
                self.failures.push(line.to_owned());
            }
            return;
        }
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(line.to_owned());
    }
}

/// The name of the binary that a line announces: `Running tests/rest/main.rs (…/deps/rest-0123)`.
fn section(line: &str) -> Option<String> {
    let line = line.trim_start();
    if let Some(name) = line.strip_prefix("Doc-tests ") {
        return Some(format!("{name} (documentation)"));
    }
    let path = line.strip_prefix("Running ")?.strip_suffix(')')?;
    let file = path.rsplit_once('/')?.1;
    Some(file.rsplit_once('-')?.0.to_owned())
}

/// The name of the binary in cargo's list of those that failed: `` `-p wharf-tests --test rest` ``.
fn failed_target(line: &str) -> Option<String> {
    let words = line.strip_prefix("    `-p ")?.strip_suffix('`')?;
    let words: Vec<_> = words.split(' ').collect();
    match words.as_slice() {
        [package, "--lib"] => Some(package.replace('-', "_")),
        [package, "--doc"] => Some(format!("{} (documentation)", package.replace('-', "_"))),
        [.., name] => Some((*name).to_owned()),
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    fn digest(text: &str) -> String {
        let mut digest = Digest::default();
        let now = std::time::Instant::now();
        text.lines().for_each(|line| digest.line(now, line));
        digest.summary()
    }

    #[test]
    fn failures_are_repeated() {
        let summary = digest(
            "     Running tests/rest/main.rs (target/release/deps/rest-01ab)\n\
             running 1 test\ntest a ... ok\n\
             \x20    Running tests/flavors/main.rs (target/release/deps/flavors-02cd)\n\
             the flavors cannot be tested: no network\n\
             \x20    Running unittests src/lib.rs (target/release/deps/wharf_guest-02cd)\n\
             failures:\n\n---- b ----\nit is 5\n\n\
             error: 2 targets failed:\n\
             \x20   `-p wharf-tests --test flavors`\n\
             \x20   `-p wharf-guest --lib`\n",
        );
        for part in ["FAILED  flavors\n", "tested: no network", "it is 5"] {
            assert!(summary.contains(part), "{summary}");
        }
        assert!(!summary.contains("test a"), "{summary}");
    }

    #[test]
    fn skips_are_repeated_and_quick_successful_binaries_left_out() {
        let text = "     Running tests/engines/main.rs (target/release/deps/engines-01ab)\n\
                    SKIPPED: real engines need root\n";
        assert_eq!(digest(text), "skipped: real engines need root\n");
    }
}
