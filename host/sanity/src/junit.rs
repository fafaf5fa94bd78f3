//! A report as JUnit XML, which continuous integrations read.

use crate::{CheckedPromise, ProofOutcome, ProofReport};
use std::fmt::{Display, Formatter, Result, Write};

/// Writes a report as one suite with a case for each promise.
pub struct JUnit<'a>(pub &'a ProofReport);

impl Display for JUnit<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let ProofReport {
            driver, promises, ..
        } = self.0;
        let count =
            |is: fn(&ProofOutcome) -> bool| promises.iter().filter(|one| is(&one.outcome)).count();
        let total = promises.iter().map(|checked| checked.duration_ms).sum();
        f.write_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n")?;
        writeln!(
            f,
            "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{}\">",
            Escaped(&format!("{driver} on {}", self.0.engine_version)),
            promises.len(),
            count(ProofOutcome::is_broken),
            count(ProofOutcome::is_not_applicable),
            Seconds(total),
        )?;
        for CheckedPromise {
            promise,
            outcome,
            duration_ms,
        } in promises
        {
            write!(
                f,
                "<testcase classname=\"{}\" name=\"{}\" time=\"{}\"",
                Escaped(driver),
                Escaped(promise),
                Seconds(*duration_ms)
            )?;
            match outcome {
                ProofOutcome::Kept => f.write_str("/>\n")?,
                ProofOutcome::NotApplicable(why) => {
                    writeln!(f, "><skipped message=\"{}\"/></testcase>", Escaped(why))?;
                }
                ProofOutcome::Broken(why) => {
                    let why = Escaped(why);
                    // Readers show one or the other.
                    writeln!(f, "><failure message=\"{why}\">{why}</failure></testcase>")?;
                }
            }
        }
        f.write_str("</testsuite>\n</testsuites>\n")
    }
}

/// Milliseconds, shown as seconds.
struct Seconds(u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// Text within an attribute or an element.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.0.chars().try_for_each(|c| match c {
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '&' => f.write_str("&amp;"),
            '"' => f.write_str("&quot;"),
            // A reader would make spaces of them.
            '\t' | '\n' | '\r' => write!(f, "&#{};", u32::from(c)),
            // XML 1.0 has no other control characters, and not these two.
            c if c.is_control() && c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                f.write_char('\u{fffd}')
            }
            c => f.write_char(c),
        })
    }
}
