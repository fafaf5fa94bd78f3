//! Tests of OVN mode, on the lab of the driver for Incus: two members of a cluster with OVN. Servers and tests run
//! in the network namespace of the lab's router, because only that one reaches the members and the login host. So
//! each test is a process there.

mod check;
mod context;
mod lab;
mod life;
mod moves;
mod networks;

use crate::crash;
use anyhow::{Context as _, Result, bail};
use context::OvnContext;
use std::process::ExitCode;
use wharf_tests::lanes::{Chain, Suite, is_whole_run};

pub use lab::is_inside;

/// The name of the suite.
const KIND: &str = "ovn";

type Test = fn(&OvnContext) -> Result<()>;

/// A plain run leaves out the kills, which Incus without OVN has.
const KILLS: &str = "operations_complete_after_kills_of_the_server";

/// The longest first.
const TESTS: [(&str, Test); 5] = [
    (KILLS, crash::kills),
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

/// The suite, whose tests run on this many threads.
pub fn suite(threads: usize) -> Suite<()> {
    let chain = |(name, _): &(&'static str, Test)| -> Chain<()> {
        let name = *name;
        vec![(name.to_owned(), Box::new(move |()| lab::run_inside(name)))]
    };
    let wanted = |(name, _): &&(&str, Test)| is_whole_run() || *name != KILLS;
    let chains = TESTS.iter().filter(wanted).map(chain).collect();
    Suite {
        kind: KIND.to_owned(),
        start: Box::new(lab::up),
        supervise: Box::new(|_| {}),
        stop: Box::new(|()| lab::down()),
        parts: vec![(threads, chains)],
    }
}

/// Runs the test of this process, in the namespace.
pub fn inside() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let name = lab::test_inside().context("no test")?;
    let number = TESTS.iter().position(|(known, _)| *known == name);
    let Some((number, (_, test))) = number.and_then(|n| Some((n, TESTS.get(n)?))) else {
        bail!("no test {name}");
    };
    test(&OvnContext::new(u16::try_from(number)?)?)
}
