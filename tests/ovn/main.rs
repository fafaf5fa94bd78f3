//! Tests of OVN mode, on the lab of the driver for Incus: two members of a cluster with OVN, which this binary
//! starts and removes. Servers and tests run in the network namespace of the lab's router, because only that
//! one reaches the members and the login host. So the binary starts itself there a second time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod check;
mod context;
mod crash;
mod lab;
mod life;
mod moves;
mod networks;

use context::Context;
use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;
use std::sync::Arc;
use wharf_tests::{is_wanted, trial};

type Test = wharf_tests::Test<Context>;

/// The longest first.
const TESTS: &[(&str, Test)] = &[
    (
        "operations_complete_after_kills_of_the_server",
        crash::at_several_points,
    ),
    (
        "an_instance_lives_stops_restarts_and_leaves_nothing",
        life::whole,
    ),
    (
        "an_owner_has_one_network_on_all_members",
        networks::of_owners,
    ),
    (
        "a_stopped_instance_moves_and_keeps_its_address",
        moves::of_a_drained_member,
    ),
    (
        "what_the_operator_has_left_out_is_named_by_node_check",
        check::wrong_nodes,
    ),
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let all = || TESTS.iter().map(|(name, _)| *name);
    if arguments.list || !wharf_testkit::process::is_root() {
        return wharf_tests::without_engine(&arguments, all().map(str::to_owned).collect());
    }
    if !all().any(|name| is_wanted(&arguments, name)) {
        return ExitCode::SUCCESS;
    }
    if lab::is_inside() {
        return run(&arguments);
    }
    let passed = lab::up().and_then(|()| lab::run_inside());
    let removed = lab::down();
    let errors = [passed.as_ref().err(), removed.as_ref().err()];
    for error in errors.into_iter().flatten() {
        eprintln!("the lab: {error:#}");
    }
    match passed.unwrap_or(false) && removed.is_ok() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn run(arguments: &Arguments) -> ExitCode {
    let context = match Context::new() {
        Ok(context) => Arc::new(context),
        Err(error) => {
            eprintln!("the lab: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let trials: Vec<Trial> = TESTS
        .iter()
        .filter(|(name, _)| is_wanted(arguments, name))
        .map(|(name, test)| trial(*name, &context, *test))
        .collect();
    libtest_mimic::run(arguments, trials).exit_code()
}
