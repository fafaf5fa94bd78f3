//! What the tests on real engines share: they run themselves, because each engine is started once
//! for many of them.

use anyhow::Result;
use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;
use std::sync::Arc;

/// A test on what is shared, an engine above all.
pub type Test<C> = fn(&C) -> Result<()>;

/// Whether the command line asks for it.
pub fn is_wanted(arguments: &Arguments, name: &str) -> bool {
    arguments.filter.as_deref().is_none_or(|filter| {
        if arguments.exact {
            name == filter
        } else {
            name.contains(filter)
        }
    })
}

/// The test, ready to run.
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

/// Takes down what the tests shared; whether nothing of it stayed.
pub fn stop<C>(context: Arc<C>, stop: impl FnOnce(C) -> Result<()>) -> bool {
    let stopped = Arc::into_inner(context).map_or(Ok(()), stop);
    if let Err(error) = &stopped {
        eprintln!("the engine left something behind: {error:#}");
    }
    stopped.is_ok()
}

/// Lists; or says, never silently, that nothing can run. Where the tests must be complete that is a
/// failure.
pub fn without_engine(arguments: &Arguments, names: Vec<String>) -> ExitCode {
    if !arguments.list {
        eprintln!(
            "SKIPPED: real engines need root on this machine; {} tests did not run",
            names.len()
        );
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
