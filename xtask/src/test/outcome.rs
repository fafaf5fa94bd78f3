//! The outcome of a test executable, read from its exit code and its output.

use std::fmt::Write as _;
use std::time::Duration;

/// The exit code of an executable whose only fault is that tests failed.
const TESTS_FAILED: i32 = 101;
/// Lines repeated of an executable that failed: its last lines, and the first lines of its failures. Logs
/// are often cut, and their end is what remains.
const REPEATED: usize = 60;
/// The heading of the details of failed tests, and of the list of their names.
const FAILURES: &str = "failures:";
/// The prefix of a line in which a test reports that it did not run.
const SKIPPED: &str = "SKIPPED: ";

/// The outcome of one run of an executable.
#[derive(Debug)]
pub struct Outcome {
    pub name: String,
    pub took: Duration,
    /// The exit code; a signal leaves none.
    pub code: Option<i32>,
    pub output: String,
}

impl Outcome {
    pub fn has_passed(&self) -> bool {
        self.code == Some(0)
    }

    /// Whether exactly one test was selected.
    pub fn has_run_one(&self) -> bool {
        self.output.lines().any(|line| line == "running 1 test")
    }

    /// The names of the failed tests. They are empty if the executable itself failed: it crashed, or left
    /// something behind.
    pub fn failed_tests(&self) -> Vec<&str> {
        let (mut names, mut is_list) = (Vec::new(), false);
        for line in self.output.lines() {
            let name = line.strip_prefix("    ");
            match name {
                Some(name) if is_list => names.push(name),
                _ if line == FAILURES => {
                    // The last list counts: details of a failure may have another.
                    names.clear();
                    is_list = true;
                }
                _ => is_list = false,
            }
        }
        match self.code {
            Some(TESTS_FAILED) => names,
            _ => Vec::new(),
        }
    }

    /// The reasons for which tests did not run.
    pub fn skipped(&self) -> impl Iterator<Item = &str> {
        let lines = self.output.lines();
        lines.filter_map(|line| Some(line.split_once(SKIPPED)?.1))
    }

    /// The end of the output.
    pub fn end(&self) -> String {
        let lines: Vec<_> = self.output.lines().collect();
        let details = lines.iter().position(|line| *line == FAILURES);
        let (before, failures) = lines.split_at(details.unwrap_or(lines.len()));
        let last = before.iter().skip(before.len().saturating_sub(REPEATED));
        let mut text = String::new();
        for line in last.chain(failures.iter().take(REPEATED)) {
            let _ = writeln!(text, "{line}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Outcome;
    use std::time::Duration;

    fn outcome(code: i32, output: &str) -> Outcome {
        Outcome {
            name: "rest".to_owned(),
            took: Duration::ZERO,
            code: Some(code),
            output: output.to_owned(),
        }
    }

    const FAILED: &str = "test a ... ok\ntest b::c ... FAILED\n\nfailures:\n\n---- b::c stdout ----\n\
        \x20   it is 5\n\nfailures:\n    b::c\n    d\n\ntest result: FAILED.\n";

    #[test]
    fn failed_tests_are_named() {
        assert_eq!(outcome(101, FAILED).failed_tests(), ["b::c", "d"]);
        // The tests are not the only fault.
        assert!(outcome(1, FAILED).failed_tests().is_empty());
    }

    #[test]
    fn the_end_has_the_failures() {
        let output = format!("{}{FAILED}", "line\n".repeat(100));
        let end = outcome(101, &output).end();
        assert!(
            end.contains("it is 5") && end.contains("b::c ... FAILED"),
            "{end}"
        );
        assert_eq!(end.matches("line").count(), 57, "{end}");
    }

    #[test]
    fn skips_have_their_reason() {
        let skipped = outcome(0, "SKIPPED: real engines need root\nok\n");
        assert_eq!(
            skipped.skipped().collect::<Vec<_>>(),
            ["real engines need root"]
        );
    }
}
