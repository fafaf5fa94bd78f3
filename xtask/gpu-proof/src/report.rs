//! The report: facts of the machine, and steps with their results and times.

use anyhow::Result;
use std::fmt::Write as _;
use std::time::Instant;
use wharf_testkit::progress;

/// Facts and steps so far.
pub(crate) struct Report {
    start: Instant,
    facts: Vec<(&'static str, String)>,
    steps: Vec<Step>,
}

struct Step {
    title: String,
    milliseconds: u128,
    /// The observation, or the error.
    outcome: Result<String, String>,
}

impl Report {
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            facts: Vec::new(),
            steps: Vec::new(),
        }
    }

    pub fn fact(&mut self, name: &'static str, value: impl Into<String>) {
        let value = value.into();
        progress::note(&format!("{name}: {value}"));
        self.facts.push((name, value));
    }

    /// Runs a step, which returns a value and what was seen. An error is recorded, and returned.
    pub fn step<T>(
        &mut self,
        title: &str,
        work: impl FnOnce() -> Result<(T, String)>,
    ) -> Result<T> {
        progress::step(&format!(
            "[{:.1} s] {title}",
            self.start.elapsed().as_secs_f64()
        ));
        let start = Instant::now();
        let result = work();
        let milliseconds = start.elapsed().as_millis();
        let outcome = match &result {
            Ok((_, seen)) => Ok(seen.clone()),
            Err(error) => Err(format!("{error:#}")),
        };
        match &outcome {
            Ok(seen) => progress::note(&format!("{milliseconds} ms: {seen}")),
            Err(error) => progress::note(&format!("FAILED after {milliseconds} ms: {error}")),
        }
        self.steps.push(Step {
            title: title.to_owned(),
            milliseconds,
            outcome,
        });
        result.map(|(value, _)| value)
    }

    /// Whether no step has failed.
    pub fn passed(&self) -> bool {
        self.steps.iter().all(|step| step.outcome.is_ok())
    }

    /// The report as Markdown.
    pub fn text(&self) -> String {
        let mut text = "# Proof on a GPU\n\n| | |\n|---|---|\n".to_owned();
        for (name, value) in &self.facts {
            let _ = writeln!(text, "| {name} | {} |", cell(value));
        }
        text += "\n| Step | Result | Time (ms) |\n|---|---|---|\n";
        for step in &self.steps {
            let result = match &step.outcome {
                Ok(seen) => cell(seen),
                Err(error) => format!("**failed**: {}", cell(error)),
            };
            let _ = writeln!(
                text,
                "| {} | {result} | {} |",
                cell(&step.title),
                step.milliseconds
            );
        }
        let failed = self.steps.iter().filter(|step| step.outcome.is_err());
        let _ = writeln!(
            text,
            "\n{} steps, {} failed, {:.1} s.",
            self.steps.len(),
            failed.count(),
            self.start.elapsed().as_secs_f64()
        );
        text
    }
}

/// A cell of a table is one line.
fn cell(text: &str) -> String {
    text.trim().replace('|', "\\|").replace('\n', "; ")
}

#[cfg(test)]
mod tests {
    use super::Report;
    use anyhow::bail;

    #[test]
    fn a_failed_step_is_in_the_report() {
        let mut report = Report::new();
        report.fact("Kernel", "6.1");
        report.step("one", || Ok(((), "a | b".to_owned()))).unwrap();
        assert!(report.passed());
        let failed = report.step("two", || -> anyhow::Result<((), String)> {
            bail!("no\nway")
        });
        assert!(failed.is_err() && !report.passed());
        let text = report.text();
        assert!(text.contains("| Kernel | 6.1 |") && text.contains("| one | a \\| b |"));
        assert!(text.contains("| two | **failed**: no; way |") && text.contains("1 failed"));
    }
}
