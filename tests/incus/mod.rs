//! Tests on a private Incus cluster of three members. Servers reach each member over HTTPS, with a certificate
//! that is restricted to one project.

mod check;
pub mod context;
mod failures;
mod inside;
mod moves;
mod out_of_band;
mod stats;

use crate::lab::look;
use crate::{
    crash, lifecycle, limits, login, many, one, out_of_band as by_hand, resize, sanity, test,
};
use context::Context;
use wharf_tests::lanes::{Chain, Suite};

fn tests() -> [Vec<Chain<Context>>; 2] {
    // The longest first.
    let beside: Vec<Chain<Context>> = vec![
        one("the_driver_keeps_its_promises", |context: &Context| {
            // No other test has the third member: a look of its server fills the engine's cache of metrics.
            let member = context.member(2);
            sanity::suite(
                &context.settings_of(&[2, 1], ""),
                &member.name,
                &member.address,
            )
        }),
        vec![
            test(
                "the_limits_are_seen_from_inside",
                look(limits::seen_from_inside),
            ),
            test(
                "an_instance_knows_names_and_no_secrets",
                look(inside::names),
            ),
            test("wrong_passwords_and_root_are_refused", look(login::refused)),
            test(
                "from_a_root_shell_nothing_of_the_cluster_is_reachable",
                look(inside::isolation),
            ),
            test("the_disk_size_is_a_limit", look(limits::disk)),
            test(
                "sizes_change_while_it_runs_and_are_seen_from_inside",
                look(resize::live),
            ),
            test(
                "sizes_and_host_keys_stay_over_a_restart",
                look(resize::restart),
            ),
        ],
        one(
            "operations_complete_after_kills_of_the_server",
            crash::kills,
        ),
        one(
            "data_in_the_home_directory_survives_stop_and_restart",
            lifecycle::data_survives,
        ),
        one(
            "stopped_instances_move_from_a_drained_member",
            moves::of_a_drained_node,
        ),
        one(
            "running_means_that_ssh_accepts",
            lifecycle::running_means_ssh_accepts,
        ),
        one(
            "an_instance_that_powers_itself_off_becomes_exited",
            lifecycle::poweroff_inside,
        ),
        one("stats_are_those_of_a_known_load", stats::of_a_known_load),
        one(
            "an_instance_removed_by_hand_is_exited_and_can_be_deleted",
            by_hand::removed,
        ),
        one(
            "an_instance_stopped_or_started_by_hand_follows_the_intent",
            by_hand::stopped_and_started,
        ),
        one(
            "an_instance_moved_by_hand_is_fetched_back",
            out_of_band::moved,
        ),
        one(
            "orphans_are_removed_and_unknown_objects_stay",
            out_of_band::orphans,
        ),
        one("a_wrong_member_is_named_by_node_check", check::wrong_nodes),
    ];
    // Tests that load the machine or disturb the members, one after the other.
    let alone: Vec<Chain<Context>> = vec![
        one(
            "many_instances_come_up_and_go_at_once",
            |context: &Context| {
                let members = many::at_once(context, &context.settings_of(&[0, 1, 2], ""))?;
                anyhow::ensure!(members.len() == 3, "{members:?}");
                Ok(())
            },
        ),
        one(
            "instances_survive_kills_of_a_members_daemon",
            failures::killed_daemon,
        ),
        one(
            "a_member_that_is_cut_off_is_one_node_out_of_reach",
            failures::cut_link,
        ),
        one(
            "instances_go_on_while_the_cluster_has_no_quorum",
            failures::no_quorum,
        ),
    ];
    [beside, alone]
}

/// The suite; `threads` run the tests that only wait.
pub fn suite(threads: usize) -> Suite<Context> {
    let [beside, alone] = tests();
    Suite {
        kind: "incus".to_owned(),
        start: Box::new(Context::start),
        stop: Box::new(Context::stop),
        parts: vec![(threads, beside), (1, alone)],
    }
}
