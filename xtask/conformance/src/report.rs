//! The report of a run: a table for people, JUnit XML for machines.

use super::check::{Basis, Outcome, Verdict};
use std::fmt::Write;

/// All outcomes of a run.
pub struct Report {
    /// In the order of their sections.
    pub outcomes: Vec<Outcome>,
    /// Documented statuses that no response had: operation and status.
    pub unseen_statuses: Vec<(String, u16)>,
}

impl Report {
    /// Sorts the outcomes.
    pub fn new(mut outcomes: Vec<Outcome>, unseen_statuses: Vec<(String, u16)>) -> Self {
        outcomes.sort_by(|a, b| {
            (section_key(a.section), &a.name).cmp(&(section_key(b.section), &b.name))
        });
        Self {
            outcomes,
            unseen_statuses,
        }
    }

    /// Whether nothing failed.
    pub fn ok(&self) -> bool {
        self.count(|v| matches!(v, Verdict::Failed(_))) == 0
    }

    fn count(&self, matches: fn(&Verdict) -> bool) -> usize {
        self.outcomes.iter().filter(|o| matches(&o.verdict)).count()
    }

    /// `N passed, N failed, N skipped`.
    pub fn summary(&self) -> String {
        format!(
            "{} passed, {} failed, {} skipped",
            self.count(|v| *v == Verdict::Passed),
            self.count(|v| matches!(v, Verdict::Failed(_))),
            self.count(|v| matches!(v, Verdict::Skipped(_))),
        )
    }

    /// One line for each rule, followed by the reason of a failure or a skip. A `+` behind the section
    /// marks a decision on an open point of the specification.
    pub fn table(&self) -> String {
        let mut table = String::new();
        for outcome in &self.outcomes {
            let (word, reason) = match &outcome.verdict {
                Verdict::Passed => ("pass", None),
                Verdict::Failed(reason) => ("FAIL", Some(reason)),
                Verdict::Skipped(reason) => ("skip", Some(reason)),
            };
            let _ = writeln!(table, "{word}  {:<7}{}", outcome.label(), outcome.name);
            for line in reason.into_iter().flat_map(|reason| reason.lines()) {
                let _ = writeln!(table, "               {line}");
            }
        }
        table
    }

    /// JUnit XML.
    pub fn junit(&self) -> String {
        let time: f64 = self.outcomes.iter().map(|o| o.time.as_secs_f64()).sum();
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let counts = format!(
            "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{time:.3}\"",
            self.outcomes.len(),
            self.count(|v| matches!(v, Verdict::Failed(_))),
            self.count(|v| matches!(v, Verdict::Skipped(_))),
        );
        let _ = writeln!(xml, "<testsuites {counts}>");
        let _ = writeln!(xml, "  <testsuite name=\"conformance\" {counts}>");
        for outcome in &self.outcomes {
            let _ = write!(
                xml,
                "    <testcase classname=\"conformance.{}\" name=\"{}\" time=\"{:.3}\"",
                escape(&outcome.label()),
                escape(&outcome.name),
                outcome.time.as_secs_f64()
            );
            let _ = match &outcome.verdict {
                Verdict::Passed => writeln!(xml, "/>"),
                Verdict::Failed(why) => writeln!(
                    xml,
                    "><failure message=\"{}\">{}</failure></testcase>",
                    escape(why.lines().next().unwrap_or_default()),
                    escape(why)
                ),
                Verdict::Skipped(why) => {
                    writeln!(xml, "><skipped message=\"{}\"/></testcase>", escape(why))
                }
            };
        }
        xml.push_str("  </testsuite>\n</testsuites>\n");
        xml
    }
}

impl Outcome {
    /// The section, with a `+` if the rule is a decision on an open point of it.
    pub fn label(&self) -> String {
        match self.basis {
            Basis::Specification => self.section.to_owned(),
            Basis::Decision => format!("{}+", self.section),
        }
    }
}

/// Sorts `4.10` after `4.9`.
fn section_key(section: &str) -> Vec<u32> {
    section.split('.').map(|n| n.parse().unwrap_or(0)).collect()
}

/// Escapes text and attributes. Characters outside XML 1.0 become U+FFFD.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Report, escape};
    use crate::check::{Basis, Outcome, Verdict};
    use std::time::Duration;

    fn outcome(section: &'static str, basis: Basis, verdict: Verdict) -> Outcome {
        Outcome {
            section,
            name: format!("rule of {section} <&>"),
            basis,
            verdict,
            time: Duration::from_millis(1500),
        }
    }

    #[test]
    fn a_report() {
        let report = Report::new(
            vec![
                outcome(
                    "4.10",
                    Basis::Decision,
                    Verdict::Failed("got \"x\"".to_owned()),
                ),
                outcome("4.9", Basis::Specification, Verdict::Passed),
                outcome(
                    "2",
                    Basis::Specification,
                    Verdict::Skipped("no GPU".to_owned()),
                ),
            ],
            Vec::new(),
        );
        assert!(!report.ok());
        assert_eq!(report.summary(), "1 passed, 1 failed, 1 skipped");
        let table = report.table();
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines[0], "skip  2      rule of 2 <&>");
        assert_eq!(lines[1].trim(), "no GPU");
        assert_eq!(lines[2], "pass  4.9    rule of 4.9 <&>");
        assert_eq!(lines[3], "FAIL  4.10+  rule of 4.10 <&>");
        let xml = report.junit();
        assert!(
            xml.contains("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\" time=\"4.500\"")
        );
        assert!(xml.contains("<failure message=\"got &quot;x&quot;\">got &quot;x&quot;</failure>"));
        assert!(
            xml.contains("classname=\"conformance.4.10+\" name=\"rule of 4.10 &lt;&amp;&gt;\"")
        );
    }

    #[test]
    fn control_characters_cannot_be_in_xml() {
        assert_eq!(escape("a\0b\u{1b}\nc"), "a\u{fffd}b\u{fffd}&#10;c");
    }
}
