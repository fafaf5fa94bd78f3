//! `cargo xtask test`: builds everything in one graph, and runs every test executable in one of two lanes
//! beside each other. The lane that is done first helps the other one.

mod executable;
mod outcome;

use crate::build;
use crate::process::step;
use crate::workspace::Workspace;
use anyhow::{Result, ensure};
use executable::Executable;
use outcome::Outcome;
use std::fmt::Write as _;
use std::io::Write as _;
use std::iter;
use std::sync::Mutex;
use std::time::Duration;

/// The executables with real engines, in the order of their lane. They mostly wait, for storage and for
/// virtual machines. All other tests run meanwhile.
const ENGINES: [&str; 3] = ["engines", "flavors", "engine"];
/// The executables without real engines that take longest.
const LONG: [&str; 3] = ["rest", "console", "tools"];
/// Executables that took less are left out of the summary.
const SLOW: Duration = Duration::from_secs(5);
/// The most tests of a run that may fail at first and pass alone.
const MOST_FLAKY: usize = 3;

type Run = (Executable, Outcome);

/// The tests to run.
#[derive(Debug, Default)]
pub struct Selection {
    /// A part of the tests' names.
    pub filter: Option<String>,
    /// Whether the tests that a plain run leaves out are included.
    pub all: bool,
}

/// Builds what all tests need, and the tests.
pub fn build(workspace: &Workspace) -> Result<Vec<Executable>> {
    build::ensure_wasm_target(workspace)?;
    let mut executables = Vec::new();
    step(
        "Building the workspace, its tests and their plugins (release)",
        || {
            // The last crates of the workspace leave a core idle.
            let (built, plugins) = std::thread::scope(|scope| {
                let plugins = scope.spawn(|| build::plugins_of_tests(workspace));
                (executable::build(workspace), plugins.join())
            });
            executables = built?;
            plugins.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            build::precompile(workspace)
        },
    )?;
    Ok(executables)
}

/// Runs the selected tests. A test that fails runs once more, alone.
pub fn run(workspace: &Workspace, selection: &Selection) -> Result<()> {
    let executables = build(workspace)?;
    let place = |executable: &Executable| ENGINES.iter().position(|name| *name == executable.name);
    let (mut engines, others): (Vec<_>, Vec<_>) = executables
        .into_iter()
        .partition(|executable| place(executable).is_some());
    engines.sort_by_key(place);
    // The longest ones first, so that both lanes end together.
    let (long, short): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|executable| LONG.contains(&executable.name.as_str()));
    let others = Mutex::new(long.into_iter().chain(short));
    step("Testing the workspace (release)", || {
        let lane = |own: Vec<Executable>| -> Result<Vec<Run>> {
            let next = || others.lock().ok()?.next();
            let run = |executable: Executable| {
                let outcome = executable.run(workspace, selection)?;
                print(&outcome)?;
                Ok((executable, outcome))
            };
            own.into_iter()
                .chain(iter::from_fn(next))
                .map(run)
                .collect()
        };
        let (others, engines) = std::thread::scope(|scope| {
            let engines = scope.spawn(|| lane(engines));
            (lane(Vec::new()), engines.join())
        });
        let mut runs = others?;
        runs.extend(engines.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        conclude(workspace, selection, &runs)
    })?;
    step("Testing the examples in the documentation", || {
        executable::documentation(workspace)
    })
}

/// Prints the whole output at once, so that the lines of two executables do not mix.
fn print(outcome: &Outcome) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "\n── {}\n{}", outcome.name, outcome.output)?;
    Ok(stdout.flush()?)
}

/// Runs each failed test alone, prints the summary, and fails unless all is well.
fn conclude(workspace: &Workspace, selection: &Selection, runs: &[Run]) -> Result<()> {
    let (mut flaky, mut failed) = (Vec::new(), Vec::new());
    for (executable, outcome) in runs.iter().filter(|(_, outcome)| !outcome.has_passed()) {
        let tests = outcome.failed_tests();
        if tests.is_empty() || flaky.len() + tests.len() > MOST_FLAKY {
            failed.push(outcome.name.clone());
            continue;
        }
        for test in tests {
            let again = executable.run_one(workspace, selection, test)?;
            print(&again)?;
            let name = format!("{} {test}", outcome.name);
            if again.has_passed() && again.has_run_one() {
                flaky.push((name, again));
            } else {
                failed.push(name);
            }
        }
    }
    eprint!("{}", summary(runs, &flaky)?);
    ensure!(
        failed.is_empty(),
        "failed, see above: {}",
        failed.join(", ")
    );
    Ok(())
}

/// The text after all runs: times, skipped tests, flaky tests, and the output of failures.
fn summary(runs: &[Run], flaky: &[(String, Outcome)]) -> Result<String> {
    let mut text = String::from("\n");
    for (_, outcome) in runs {
        let word = if outcome.has_passed() { "ok" } else { "FAILED" };
        if outcome.took >= SLOW || !outcome.has_passed() {
            writeln!(
                text,
                "{:>6} s  {word:<6}  {}",
                outcome.took.as_secs(),
                outcome.name
            )?;
        }
    }
    for why in runs.iter().flat_map(|(_, outcome)| outcome.skipped()) {
        writeln!(text, "skipped: {why}")?;
    }
    for (_, outcome) in runs.iter().filter(|(_, outcome)| !outcome.has_passed()) {
        writeln!(
            text,
            "\n── {} failed; the end of its output:\n{}",
            outcome.name,
            outcome.end()
        )?;
    }
    for (name, again) in flaky {
        writeln!(
            text,
            "FLAKY {name}: failed above, and passed alone:\n{}",
            again.end()
        )?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::executable::tests::script;
    use super::{Selection, conclude};
    use crate::workspace::Workspace;

    /// The end of the output of an executable whose test `a` failed.
    const A_FAILED: &str = "printf 'failures:\\n    a\\n\\n'; exit 101";
    const ONE: &str = "[ \"$1\" = --exact ] && echo 'running 1 test' &&";

    /// Whether a run of this script counts as passed.
    fn passes(name: &str, text: &str) -> bool {
        let directory = tempfile::tempdir().unwrap();
        let (workspace, selection) = (Workspace::find().unwrap(), Selection::default());
        let executable = script(directory.path(), name, text);
        let outcome = executable.run(&workspace, &selection).unwrap();
        conclude(&workspace, &selection, &[(executable, outcome)]).is_ok()
    }

    #[test]
    fn a_test_that_passes_alone_is_flaky_and_no_failure() {
        assert!(passes("xtask-flaky", &format!("{ONE} exit 0\n{A_FAILED}")));
        assert!(!passes(
            "xtask-fails-again",
            &format!("{ONE} exit 101\n{A_FAILED}")
        ));
        // No test ran, so none has passed.
        assert!(!passes(
            "xtask-none",
            &format!("[ \"$1\" = --exact ] && exit 0\n{A_FAILED}")
        ));
    }

    #[test]
    fn a_crash_and_many_failures_are_final() {
        assert!(!passes(
            "xtask-crash",
            &format!("{ONE} exit 0\nprintf 'failures:\\n    a\\n'; exit 1")
        ));
        let many = "printf 'failures:\\n    a\\n    b\\n    c\\n    d\\n'; exit 101";
        assert!(!passes("xtask-many", &format!("{ONE} exit 0\n{many}")));
    }
}
