//! Tests on a private Incus cluster of three members, which this binary starts and removes. Servers reach
//! each member over HTTPS, with a certificate that is restricted to one project.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod check;
mod context;
mod crash;
mod failures;
mod inside;
mod life;
mod many;
mod moves;
mod out_of_band;
mod resize;
mod sanity;
mod stats;

use context::Context;
use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;
use std::sync::Arc;
use wharf_tests::{is_wanted, trial};

type Test = wharf_tests::Test<Context>;

/// Tests that run beside each other, the longest first.
const BESIDE: &[(&str, Test)] = &[
    ("the_driver_keeps_its_promises", sanity::suite),
    (
        "operations_complete_after_kills_of_the_server",
        crash::at_several_points,
    ),
    (
        "an_instance_lives_stops_restarts_and_leaves_nothing",
        life::whole,
    ),
    (
        "stopped_instances_move_from_a_drained_member",
        moves::of_a_drained_node,
    ),
    (
        "sizes_change_while_it_runs_and_are_seen_from_inside",
        resize::live,
    ),
    (
        "from_a_root_shell_nothing_of_the_cluster_is_reachable",
        inside::isolation,
    ),
    ("the_limits_are_seen_from_inside", inside::limits),
    ("stats_are_those_of_a_known_load", stats::of_a_known_load),
    (
        "an_instance_removed_by_hand_is_exited_and_can_be_deleted",
        out_of_band::removed,
    ),
    (
        "an_instance_stopped_or_moved_by_hand_follows_the_intent",
        out_of_band::stopped_and_moved,
    ),
    (
        "orphans_are_removed_and_unknown_objects_stay",
        out_of_band::orphans,
    ),
    ("a_wrong_member_is_named_by_node_check", check::wrong_nodes),
];

/// Tests that load the machine or disturb the members, one after the other.
const ALONE: &[(&str, Test)] = &[
    ("eight_instances_come_up_and_go_at_once", many::at_once),
    (
        "instances_survive_kills_of_a_members_daemon",
        failures::killed_daemon,
    ),
    (
        "a_member_that_is_cut_off_is_one_node_out_of_reach",
        failures::cut_link,
    ),
    (
        "instances_go_on_while_the_cluster_has_no_quorum",
        failures::no_quorum,
    ),
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let all = || BESIDE.iter().chain(ALONE).map(|(name, _)| *name);
    if arguments.list || !wharf_testkit::process::is_root() {
        return wharf_tests::without_engine(&arguments, all().map(str::to_owned).collect());
    }
    if !all().any(|name| is_wanted(&arguments, name)) {
        return ExitCode::SUCCESS;
    }
    wharf_testkit::incus::Cluster::end_abandoned();
    let context = match Context::start() {
        Ok(context) => Arc::new(context),
        Err(error) => {
            eprintln!("Incus does not start: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let mut failed = false;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Half of a test is waiting.
    for (tests, threads) in [(BESIDE, 2 * cores), (ALONE, 1)] {
        let trials: Vec<Trial> = tests
            .iter()
            .filter(|(name, _)| is_wanted(&arguments, name))
            .map(|(name, test)| trial(*name, &context, *test))
            .collect();
        if trials.is_empty() {
            continue;
        }
        let mut arguments = arguments.clone();
        let most = arguments.test_threads.unwrap_or(usize::MAX);
        arguments.test_threads = Some(most.min(threads));
        failed |= libtest_mimic::run(&arguments, trials).has_failed();
    }
    if wharf_tests::stop(context, Context::stop) && !failed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
