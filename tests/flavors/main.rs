//! What is in the flavors, on a private dockerd with the real images: pages in a real browser, the
//! S3 prefill from a real S3 server, the AI key where the assistants look for it.
//!
//! A plain run makes and proves `marimo` and `jupyterlab`; WHARF_TEST_FLAVORS=all (what `cargo xtask
//! test --all-flavors` sets) all of them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod ai;
mod browser;
mod context;
mod jupyterlab;
mod larger;
mod marimo;
mod outside;
mod page;
mod s3;
mod s3_server;

use anyhow::Result;
use context::Context;
use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;
use std::sync::Arc;

type Test = fn(&Context) -> Result<()>;

/// A test, and the images it needs.
struct Case {
    name: &'static str,
    images: &'static [&'static str],
    test: Test,
}

const fn case(name: &'static str, images: &'static [&'static str], test: Test) -> Case {
    Case { name, images, test }
}

/// What every run proves.
const PLAIN: &[Case] = &[
    case(
        "marimos_page_asks_for_the_password_and_runs_a_cell",
        &["marimo"],
        marimo::runs_a_cell,
    ),
    case(
        "jupyterlabs_page_asks_for_the_password_and_runs_a_cell",
        &["jupyterlab"],
        jupyterlab::runs_a_cell,
    ),
    case(
        "the_s3_prefill_downloads_once_and_says_what_went_wrong",
        &["marimo"],
        s3::prefill,
    ),
    case(
        "the_ai_key_reaches_the_assistants_and_nobody_else",
        &["marimo", "jupyterlab"],
        ai::reaches_the_assistants,
    ),
];
/// What takes long to make.
const MORE: &[Case] = &[
    case(
        "datascience_trains_over_ssh",
        &["datascience"],
        larger::datascience,
    ),
    case(
        "datasciencemarimos_page_runs_a_cell_with_the_stack",
        &["datasciencemarimo"],
        larger::datasciencemarimo,
    ),
    case(
        "genomics_has_its_tools_over_ssh",
        &["genomics"],
        larger::genomics,
    ),
    case(
        "rservers_page_runs_r_with_bioconductor",
        &["rserver"],
        larger::rserver,
    ),
    case(
        "rgeospatials_page_runs_r_on_maps",
        &["rgeospatial"],
        larger::rgeospatial,
    ),
];

/// `all`, or nothing.
const FLAVORS: &str = "WHARF_TEST_FLAVORS";

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let all = std::env::var(FLAVORS).is_ok_and(|flavors| flavors == "all");
    let root = xtask::process::is_root();
    if arguments.list || !root {
        return without_engine(&arguments, root);
    }
    let mut cases: Vec<&'static Case> = PLAIN.iter().collect();
    if all {
        cases.extend(MORE);
    } else if !MORE.is_empty() {
        eprintln!(
            "NOT RUN: {} tests of the larger flavors; {FLAVORS}=all runs them too",
            MORE.len()
        );
    }
    cases.retain(|case| is_wanted(&arguments, case.name));
    if cases.is_empty() {
        return ExitCode::SUCCESS;
    }
    run(arguments, &cases)
}

fn run(mut arguments: Arguments, cases: &[&'static Case]) -> ExitCode {
    let images: Vec<&str> = cases.iter().flat_map(|case| case.images).copied().collect();
    let context = match browser::install().and_then(|()| Context::start(&images)) {
        Ok(context) => Arc::new(context),
        Err(error) => {
            eprintln!("the flavors cannot be tested: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    // Browsers and notebook servers side by side would be slow rather than wrong.
    arguments.test_threads = Some(1);
    let trials = cases.iter().map(|case| {
        let (context, test) = (Arc::clone(&context), case.test);
        Trial::test(case.name, move || {
            test(&context).map_err(|e| Failed::from(format!("{e:#}")))
        })
    });
    let failed = libtest_mimic::run(&arguments, trials.collect()).has_failed();
    let stopped = Arc::into_inner(context).map_or(Ok(()), Context::stop);
    if let Err(error) = &stopped {
        eprintln!("the engine left something behind: {error:#}");
    }
    if failed || stopped.is_err() {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn is_wanted(arguments: &Arguments, name: &str) -> bool {
    arguments.filter.as_deref().is_none_or(|filter| {
        if arguments.exact {
            name == filter
        } else {
            name.contains(filter)
        }
    })
}

/// Lists; or says, never silently, that nothing can run. Where the tests must be complete that is a
/// failure.
fn without_engine(arguments: &Arguments, root: bool) -> ExitCode {
    let all: Vec<&Case> = PLAIN.iter().chain(MORE).collect();
    if !root {
        eprintln!(
            "SKIPPED: real engines need root on this machine; {} tests of flavors did not run",
            all.len()
        );
        if std::env::var_os("CI").is_some() {
            return ExitCode::FAILURE;
        }
    }
    let trials = all
        .iter()
        .map(|case| Trial::test(case.name, || Ok(())).with_ignored_flag(!arguments.list));
    libtest_mimic::run(arguments, trials.collect()).exit_code()
}
