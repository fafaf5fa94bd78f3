//! The contents of the flavors, on a private dockerd with the real images: pages in a real browser,
//! the S3 prefill from a real S3 server, and the assistants' AI keys.
//!
//! A plain run tests `marimo` and `jupyterlab`, if the files of the images differ from those that passed
//! last; the tests on engines cover `base`. `cargo xtask test --all` always tests all flavors.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod ai;
mod by_name;
mod context;
mod larger;
mod neighbours;
mod notebooks;
mod on_incus;
mod open_gateway;
mod outside;
mod page;
mod proof;
mod s3;
mod s3_server;
mod sources;
mod tool;
mod visitor;

use context::FlavorContext;
use libtest_mimic::Arguments;
use std::process::ExitCode;
use std::sync::Arc;
use wharf_tests::{is_wanted, trial};

type Test = wharf_tests::Test<FlavorContext>;

/// A test and its images.
struct Case {
    name: &'static str,
    images: &'static [&'static str],
    test: Test,
}

const fn case(name: &'static str, images: &'static [&'static str], test: Test) -> Case {
    Case { name, images, test }
}

/// The tests of every run.
const PLAIN: &[Case] = &[
    case(
        "marimos_page_asks_for_the_password_and_runs_a_cell",
        &["marimo"],
        notebooks::marimo,
    ),
    case(
        "jupyterlabs_page_asks_for_the_password_and_runs_a_cell",
        &["jupyterlab"],
        notebooks::jupyterlab,
    ),
    case(
        "pages_by_name_open_with_the_session_of_the_console",
        &["marimo", "jupyterlab"],
        by_name::run_cells,
    ),
    case(
        "the_page_of_another_owner_uses_nothing_of_a_page",
        &["marimo", "jupyterlab"],
        neighbours::in_chromium,
    ),
    case(
        "the_s3_prefill_downloads_once_and_says_what_went_wrong",
        &["marimo", "jupyterlab"],
        s3::prefill,
    ),
    case(
        "the_ai_key_reaches_the_assistants_and_nobody_else",
        &["marimo", "jupyterlab"],
        ai::reaches_the_assistants,
    ),
];
/// The tests in another browser, and those whose images are slow to build.
const MORE: &[Case] = &[
    case(
        "firefox_opens_pages_by_name_with_the_session_of_the_console",
        &["marimo", "jupyterlab"],
        by_name::run_cells_in_firefox,
    ),
    case(
        "firefox_keeps_the_page_of_another_owner_out",
        &["marimo", "jupyterlab"],
        neighbours::in_firefox,
    ),
    case("base_is_a_clean_python_over_ssh", &["base"], larger::base),
    case(
        "datascience_trains_over_ssh",
        &["datascience"],
        larger::datascience,
    ),
    case(
        "datascience_with_a_gpu_has_cuda",
        &["datascience-cuda"],
        larger::datascience_cuda,
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
    case(
        "an_instance_of_each_flavor_runs_on_incus",
        on_incus::FLAVORS,
        on_incus::all,
    ),
    // It replaces the image of another test, which is before it.
    case(
        "genomics_has_gatk_and_nextflow_from_downloads",
        &["common"],
        sources::genomics,
    ),
];
/// The test of every run that replaces the image of another test, after all others.
const LAST: &[Case] = &[case(
    "rstudio_asks_nothing_behind_the_gateway_and_for_the_password_elsewhere",
    &["common"],
    sources::rstudio,
)];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    if arguments.list || !wharf_testkit::process::is_root() {
        let all = PLAIN.iter().chain(MORE).chain(LAST);
        let names = all.map(|case| case.name.to_owned());
        return wharf_tests::without_engine(&arguments, names.collect());
    }
    let all = wharf_tests::lanes::is_whole_run();
    let mut cases: Vec<&'static Case> = PLAIN.iter().collect();
    if all {
        cases.extend(MORE);
    }
    cases.extend(LAST);
    let plain = cases.len();
    cases.retain(|case| is_wanted(&arguments, case.name));
    if cases.is_empty() {
        return ExitCode::SUCCESS;
    }
    let files = match proof::current() {
        Ok(files) => files,
        Err(error) => {
            eprintln!("the files of the flavors cannot be read: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let is_selected = arguments.filter.is_some();
    if !all && !is_selected && proof::has_passed(&files) {
        eprintln!(
            "NOT RUN: the tests of flavors, whose files passed last time; `cargo xtask test --all` runs them"
        );
        return ExitCode::SUCCESS;
    }
    if !all {
        eprintln!(
            "NOT RUN: {} tests of the larger flavors and in Firefox; `cargo xtask test --all` runs them",
            MORE.len()
        );
    }
    let ended = run(arguments, &cases);
    let passed = ended == ExitCode::SUCCESS && cases.len() == plain;
    // A clone of continuous integration is not committed.
    if passed
        && std::env::var_os("CI").is_none()
        && let Err(error) = proof::note(&files)
    {
        eprintln!("the pass cannot be noted: {error:#}");
    }
    ended
}

fn run(mut arguments: Arguments, cases: &[&'static Case]) -> ExitCode {
    let images: Vec<&str> = cases.iter().flat_map(|case| case.images).copied().collect();
    let context = match wharf_tests::browser::install().and_then(|()| FlavorContext::start(&images))
    {
        Ok(context) => Arc::new(context),
        Err(error) => {
            eprintln!("the flavors cannot be tested: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    // One test at a time: concurrent browsers and notebook servers would be too slow.
    arguments.test_threads = Some(1);
    let trials = cases
        .iter()
        .map(|case| trial(case.name, &context, case.test));
    let ended = libtest_mimic::run(&arguments, trials.collect()).exit_code();
    if wharf_tests::stop(context, FlavorContext::stop) {
        ended
    } else {
        ExitCode::FAILURE
    }
}
