//! The harness of the tests on real engines, which start each engine once for many tests.

use anyhow::Result;
use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;
use std::sync::Arc;
use wharf_testkit::progress::skipped;

/// A test with a shared context, such as an engine.
pub type Test<C> = fn(&C) -> Result<()>;

/// Returns whether the command line selects a test.
pub fn is_wanted(arguments: &Arguments, name: &str) -> bool {
    let is = |filter: &String| {
        if arguments.exact {
            name == filter
        } else {
            name.contains(filter.as_str())
        }
    };
    arguments.filter.as_ref().is_none_or(is) && !arguments.skip.iter().any(is)
}

/// Converts a test to a trial.
pub fn trial<C: Send + Sync + 'static>(
    name: impl Into<String>,
    context: &Arc<C>,
    test: Test<C>,
) -> Trial {
    let context = Arc::clone(context);
    Trial::test(name, move || {
        test(&context).map_err(|e| Failed::from(format!("{e:#}")))
    })
}

/// Stops the shared context; returns whether it was removed completely.
pub fn stop<C>(context: Arc<C>, stop: impl FnOnce(C) -> Result<()>) -> bool {
    let stopped = Arc::into_inner(context).map_or(Ok(()), stop);
    if let Err(error) = &stopped {
        eprintln!("the engine was not removed completely: {error:#}");
    }
    stopped.is_ok()
}

/// Lists the tests, or reports that none of them can run. In continuous integration that is a failure.
pub fn without_engine(arguments: &Arguments, names: Vec<String>) -> ExitCode {
    if !arguments.list {
        skipped(&format!(
            "real engines need root on this machine; {} tests did not run",
            names.len()
        ));
        if std::env::var_os("CI").is_some() {
            return ExitCode::FAILURE;
        }
    }
    let ignored = !arguments.list;
    let trials = names
        .into_iter()
        .map(|name| Trial::test(name, || Ok(())).with_ignored_flag(ignored));
    libtest_mimic::run(arguments, trials.collect()).exit_code()
}
