//! Tests on a private Incus cluster of three members. Servers reach each member over HTTPS, with a certificate
//! that is restricted to one project.

mod backups;
mod check;
pub mod context;
mod destroyed;
mod failures;
mod full_pool;
mod ids;
mod inside;
mod kept_killed;
mod moves;
mod out_of_band;
mod private_port;
mod snapshots;
mod stats;

use crate::lab::look;
use crate::{
    crash, lifecycle, limits, login, many, out_of_band as by_hand, resize, sanity,
    snapshots as kept, volumes,
};
use context::IncusContext;
use wharf_tests::lanes::{Chain, Suite};

/// Tests that mostly wait, the longest first.
fn waiting() -> Vec<Chain<IncusContext>> {
    chains! {
        ["the_driver_keeps_its_promises" => |context: &IncusContext| {
            // No other test has the third member: a look of its server fills the engine's cache of metrics.
            let member = context.member(2);
            let settings = context.settings_of(&[2, 1], "");
            let row = "Incus with a pool of btrfs";
            sanity::suite("incus", &settings, [&member.name, &member.address], [row, row])
        }],
        [
            "the_limits_are_seen_from_inside" => look(limits::seen_from_inside),
            "an_instance_knows_names_and_no_secrets" => look(inside::names),
            "wrong_passwords_and_root_are_refused" => look(login::refused),
            "from_a_root_shell_nothing_of_the_cluster_is_reachable" => look(inside::isolation),
            "the_disk_size_is_a_limit" => look(limits::disk),
            "sizes_change_while_it_runs_and_are_seen_from_inside" => look(resize::live),
            "sizes_and_host_keys_stay_over_a_restart" => look(resize::restart),
        ],
        ["private_engines_have_simple_quotas" => |context: &IncusContext| {
            (0..3).try_for_each(|at| limits::are_simple(|| context.on_pool(at, limits::QUOTAS)))
        }],
        ["operations_complete_after_kills_of_the_server" => crash::kills],
        ["data_in_the_home_directory_survives_stop_and_restart" => lifecycle::data_survives],
        ["volumes_hold_their_sizes_and_outlive_instances" => volumes::sizes_and_content],
        ["an_instance_is_restored_and_cloned_from_its_snapshot" => kept::restore_and_clone],
        ["data_survives_cycles_of_snapshots_restores_and_clones" => kept::cycles],
        ["a_full_disk_is_kept_and_restored" => snapshots::full_disk],
        ["restores_and_clones_bring_no_volume_back" => snapshots::volumes_of_then],
        ["volumes_come_and_go_on_a_running_instance" => volumes::come_and_go],
        ["stopped_instances_move_from_a_drained_member" => moves::of_a_drained_node],
        ["running_means_that_ssh_accepts" => lifecycle::running_means_ssh_accepts],
        ["the_next_instance_at_an_address_has_its_hardware_address" => lifecycle::next_at_an_address],
        ["an_instance_that_powers_itself_off_becomes_exited" => lifecycle::poweroff_inside],
        ["stats_are_those_of_a_known_load" => stats::of_a_known_load],
        ["an_instance_removed_by_hand_is_exited_and_can_be_deleted" => by_hand::removed],
        ["an_instance_stopped_or_started_by_hand_follows_the_intent" => by_hand::stopped_and_started],
        ["an_instance_moved_by_hand_is_fetched_back" => out_of_band::moved],
        ["orphans_are_removed_and_unknown_objects_stay" => out_of_band::orphans],
        ["volumes_and_snapshots_without_a_row_go_and_others_stay" => out_of_band::kept_orphans],
        ["instances_created_at_once_share_no_ids" => ids::of_creations_at_once],
        ["a_wrong_member_is_named_by_node_check" => check::wrong_nodes],
        ["the_images_of_a_cluster_are_shown_and_made_by_its_node" => check::images],
        ["ssh_of_a_page_is_at_the_private_address_alone" => private_port::of_a_page],
    }
}

/// Tests that load the machine or disturb the members.
fn alone() -> Vec<Chain<IncusContext>> {
    chains! {
        ["many_instances_come_up_and_go_at_once" => |context: &IncusContext| {
            let members = many::at_once(context, &context.settings_of(&[0, 1, 2], ""))?;
            anyhow::ensure!(members.len() == 3, "{members:?}");
            Ok(())
        }],
        ["snapshots_clones_restores_and_volumes_outlast_a_full_pool" => full_pool::of_a_member],
        ["a_node_that_does_not_hold_sizes_takes_nothing_new" => failures::broken_limits],
        ["instances_survive_kills_of_a_members_daemon" => failures::killed_daemon],
        ["a_backup_and_a_restore_complete_after_kills_of_the_daemon" => backups::and_back],
        ["a_restore_completes_after_a_kill_of_the_daemon" => snapshots::killed_in_a_restore],
        ["volumes_and_snapshots_complete_after_kills_of_the_daemon" => kept_killed::in_each_step],
        ["a_member_that_is_cut_off_is_one_node_out_of_reach" => failures::cut_link],
        ["instances_go_on_while_the_cluster_has_no_quorum" => failures::no_quorum],
        // The last one: a member is gone after it.
        ["twenty_instances_of_a_destroyed_node_come_back" => destroyed::member],
    }
}

/// The suite; `threads` run the tests that only wait.
pub fn suite(threads: usize) -> Suite<IncusContext> {
    Suite {
        kind: "incus".to_owned(),
        start: Box::new(IncusContext::start),
        supervise: Box::new(IncusContext::supervise),
        stop: Box::new(IncusContext::stop),
        parts: vec![
            (threads, crate::plain(waiting())),
            (1, crate::plain(alone())),
        ],
    }
}
