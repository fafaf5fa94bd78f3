//! Tests on a real dockerd, which this binary starts for itself and takes away again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod clock;
mod context;
mod crash;
mod engine_restart;
mod isolation;
mod leftovers;
mod lifecycle;
mod limits;
mod login;
mod many;
mod out_of_band;
mod outage;
mod resize;
mod stats;
mod timing;

use anyhow::Result;
use context::Context;
use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;
use std::sync::Arc;

type Test = fn(&Context) -> Result<()>;

const TESTS: &[(&str, Test)] = &[
    (
        "create_answers_before_the_instance_is_up",
        lifecycle::create_answers_at_once,
    ),
    (
        "running_means_that_ssh_accepts",
        lifecycle::running_means_ssh_accepts,
    ),
    (
        "data_in_the_home_directory_survives_stop_and_restart",
        lifecycle::data_survives,
    ),
    (
        "an_instance_that_powers_itself_off_becomes_exited",
        lifecycle::poweroff_inside,
    ),
    (
        "login_with_the_public_key_and_with_the_password",
        login::key_and_password,
    ),
    ("wrong_passwords_and_root_are_refused", login::refused),
    ("each_instance_has_host_keys_of_its_own", login::host_keys),
    ("the_limits_are_seen_from_inside", limits::seen_from_inside),
    ("the_disk_size_is_a_limit", limits::disk),
    (
        "sizes_change_while_it_runs_and_are_seen_from_inside",
        resize::live,
    ),
    ("stats_are_those_of_a_known_load", stats::of_a_known_load),
    (
        "stats_are_502_while_the_engine_hangs",
        stats::while_the_engine_hangs,
    ),
    (
        "a_deleted_instance_leaves_nothing_in_the_engine",
        leftovers::nothing_is_left,
    ),
    (
        "without_the_engine_requests_are_answered_and_it_goes_on_when_it_is_back",
        outage::socket_gone,
    ),
    (
        "killed_at_twenty_points_it_converges",
        crash::at_twenty_points,
    ),
    (
        "removed_by_hand_it_is_exited_and_can_be_deleted",
        out_of_band::removed,
    ),
    (
        "stopped_or_started_by_hand_it_follows_the_intent",
        out_of_band::stopped_and_started,
    ),
    ("renamed_by_hand_it_stays_what_it_is", out_of_band::renamed),
    (
        "two_installations_on_one_engine_leave_each_other_alone",
        out_of_band::two_installations,
    ),
    (
        "an_engine_that_restarts_costs_no_instance",
        engine_restart::nothing_is_taken_for_dead,
    ),
    ("a_clock_that_is_set_changes_nothing", clock::set_back),
    ("many_at_once_beside_the_engines_own", many::at_once),
    (
        "from_a_root_shell_inside_nothing_of_the_node_is_reachable",
        isolation::root_shell,
    ),
    (
        "one_owners_instances_reach_each_other_on_lan_ipv4",
        isolation::same_owner,
    ),
    ("time_to_running_beside_the_engines_own", timing::to_running),
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let wanted = |name: &str| {
        let filter = arguments.filter.as_deref();
        filter.is_none_or(|f| {
            if arguments.exact {
                name == f
            } else {
                name.contains(f)
            }
        })
    };
    if arguments.list || !TESTS.iter().any(|(name, _)| wanted(name)) {
        let trials = TESTS.iter().map(|(name, _)| Trial::test(*name, || Ok(())));
        return libtest_mimic::run(&arguments, trials.collect()).exit_code();
    }
    let context = match Context::start() {
        Ok(Some(context)) => Arc::new(context),
        Ok(None) => return skip(&arguments),
        Err(error) => {
            eprintln!("the real engine does not start: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let trials = TESTS.iter().map(|(name, test)| {
        let (context, test) = (Arc::clone(&context), *test);
        Trial::test(*name, move || {
            test(&context).map_err(|e| Failed::from(format!("{e:#}")))
        })
    });
    let outcome = libtest_mimic::run(&arguments, trials.collect());
    let stopped = Arc::into_inner(context).map_or(Ok(()), Context::stop);
    match stopped {
        Ok(()) => outcome.exit_code(),
        Err(error) => {
            eprintln!("the engine left something behind: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Reported, never silent; and where the tests must be complete, a failure.
fn skip(arguments: &Arguments) -> ExitCode {
    eprintln!(
        "SKIPPED: the real engine needs root on this machine; {} tests did not run",
        TESTS.len()
    );
    if std::env::var_os("CI").is_some() {
        return ExitCode::FAILURE;
    }
    let ignored = TESTS
        .iter()
        .map(|(name, _)| Trial::test(*name, || Ok(())).with_ignored_flag(true));
    libtest_mimic::run(arguments, ignored.collect()).exit_code()
}
