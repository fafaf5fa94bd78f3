//! Tests on real engines, which this binary starts and removes: `dockerd::…`, `podman-4::…`, `podman-5::…`,
//! `incus::…`, `ovn::…`. Scenarios that several engines have are here, over [`lab::Lab`].

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

/// Chains of tests; those of one chain share more than the engine.
macro_rules! chains {
    ($([$($name:literal => $test:expr),* $(,)?],)*) => {
        vec![$(vec![$(($name.to_owned(), Box::new($test) as wharf_tests::lanes::BoxedTest<_>)),*]),*]
    };
}

mod backups;
mod beside;
mod broken_limits;
mod clock;
mod console;
mod context;
mod crash;
mod destroyed;
mod engine_restart;
mod gpus;
mod grow;
mod grow_killed;
mod held;
#[path = "../incus/mod.rs"]
mod incus;
mod inside;
mod isolation;
mod journey;
mod lab;
mod leftovers;
mod lifecycle;
mod limits;
mod login;
mod machine;
mod many;
mod moves;
mod out_of_band;
mod outage;
#[path = "../ovn/mod.rs"]
mod ovn;
mod own_image;
mod own_size;
mod private_port;
mod registry;
mod remote;
mod resize;
mod restore_killed;
mod sanity;
mod snapshots;
mod sources;
mod stats;
mod terminal;
mod tunnel;
mod vms;
mod volume_backups;
mod volumes;
mod without_room;

use context::EngineContext;
use engine_restart::on_another;
use lab::{Lab, look};
use libtest_mimic::Arguments;
use std::process::ExitCode;
use wharf_testkit::engine::{Kind, PrivateEngine};
use wharf_tests::lanes::{Chain, Run, Suite, is_whole_run};

/// Comma-separated names of engines, or `all`: each test runs on these.
const ENGINES: &str = "WHARF_TEST_ENGINES";
/// Engines beside each other. Two Podmans on a node share their firewall rules for ports, so one follows the other.
const LANES: [&[&str]; 2] = [&["dockerd"], &["incus", "podman-5", "podman-4", "ovn"]];
/// The engine for all tests of containers unless the variable is set; the other ones run [`CORE`].
const PLAIN: Kind = Kind::Dockerd;
/// The engine that a plain run leaves out.
const LEFT_OUT: Kind = Kind::Podman4;
/// Tests of differences between dockerd and Podman. None of these starts a second engine: two Podmans on a node
/// share their firewall rules for ports.
const CORE: [&str; 16] = [
    "the_driver_keeps_its_promises",
    "ssh_of_a_page_is_at_the_private_address_alone",
    "running_means_that_ssh_accepts",
    "volumes_hold_their_sizes_and_outlive_instances",
    "an_instance_is_restored_and_cloned_from_its_snapshot",
    "data_in_the_home_directory_survives_stop_and_restart",
    "an_instance_that_powers_itself_off_becomes_exited",
    "the_limits_are_seen_from_inside",
    "an_instance_sees_its_own_size",
    "the_disk_size_is_a_limit",
    "sizes_change_while_it_runs_and_are_seen_from_inside",
    "sizes_and_host_keys_stay_over_a_restart",
    "an_instance_has_its_gpu_exclusively_until_it_stops",
    "a_deleted_instance_leaves_nothing_in_the_engine",
    "an_instance_removed_by_hand_is_exited_and_can_be_deleted",
    "from_a_root_shell_inside_nothing_of_the_node_is_reachable",
];

/// Tests that a plain run leaves out.
const WHOLE: [&str; 7] = [
    "data_survives_cycles_of_snapshots_restores_and_clones",
    "an_instance_with_a_volume_is_created_again_after_a_loss",
    "a_snapshot_without_room_in_the_storage_is_in_error",
    "snapshots_clones_restores_and_volumes_outlast_a_full_pool",
    "an_instance_with_a_full_disk_is_restored",
    "twenty_instances_of_a_destroyed_node_come_back",
    "volumes_and_snapshots_complete_after_kills_of_the_daemon",
];

/// Tests for dockerd only: of the image of virtual machines, of other dockerds behind TLS, of a registry without TLS, and
/// of the bridges that Docker makes for its networks.
fn of_dockerd() -> Vec<Chain<EngineContext>> {
    chains! {
        ["the_image_of_virtual_machines_is_made" => EngineContext::with_vm_image],
        ["three_machines_behind_mutual_tls_and_a_cut_link" => remote::three_machines],
        ["a_wrong_certificate_is_named_by_node_check" => remote::wrong_certificates],
        ["an_image_of_a_private_registry_is_pulled_with_the_operators_account" => registry::private_images],
        ["an_image_is_made_from_the_first_source_that_can_be_taken" => sources::in_order],
        ["a_network_whose_bridge_vanished_is_made_again" => beside::a_vanished_bridge],
        ["a_network_of_an_earlier_version_goes_on" => beside::a_network_of_an_earlier_version],
    }
}

/// Tests that mostly wait, the longest first.
fn waiting() -> Vec<Chain<EngineContext>> {
    chains! {
        [
            "instances_survive_a_restart_of_the_engine" => on_another(engine_restart::instances_survive),
            "a_snapshot_completes_after_kills_of_wharf_and_of_the_engine" => on_another(snapshots::kills),
            "a_clone_is_made_after_kills_of_the_engine" => on_another(snapshots::killed_in_a_clone),
            "restores_and_removals_complete_after_kills_of_the_engine" => on_another(restore_killed::converges),
            "a_volume_is_made_and_removed_after_kills_of_the_engine" => on_another(volumes::killed_in_a_make),
            "a_volume_comes_back_from_its_backup" => on_another(volume_backups::tour),
            "instances_survive_a_start_of_the_engine_on_an_empty_store" => on_another(engine_restart::on_an_empty_store),
            "a_node_that_does_not_hold_sizes_takes_nothing_new" => on_another(broken_limits::of_dockerd),
            "an_instance_with_a_volume_is_created_again_after_a_loss" => on_another(volumes::lost_and_created_again),
            "a_snapshot_without_room_in_the_storage_is_in_error" => on_another(snapshots::full_pool),
            "an_instance_with_a_full_disk_is_restored" => on_another(snapshots::full_disk),
        ],
        ["the_driver_keeps_its_promises" => |context: &EngineContext| {
            let at = [context::NODE, &context.facts().host];
            sanity::suite("docker", &context.settings("")?, at, context.rows())
        }],
        [
            "login_with_the_public_key_and_with_the_password" => look(login::key_and_password),
            "wrong_passwords_and_root_are_refused" => look(login::refused),
            "each_instance_has_host_keys_of_its_own" => look(login::host_keys),
            "the_limits_are_seen_from_inside" => look(limits::seen_from_inside),
            "an_instance_sees_its_own_size" => look(own_size::and_nothing_else),
            "base_has_tools_and_the_operators_package_sources" => look(own_size::base_is_comfortable),
            "from_a_root_shell_inside_nothing_of_the_node_is_reachable" => look(isolation::root_shell),
            "one_owners_instances_reach_each_other_on_lan_ipv4" => look(isolation::same_owner),
            "the_disk_size_is_a_limit" => look(limits::disk),
            "sizes_change_while_it_runs_and_are_seen_from_inside" => look(resize::live),
            "sizes_and_host_keys_stay_over_a_restart" => look(resize::restart),
        ],
        ["an_image_of_the_operators_is_built_and_logged_in_to" => own_image::is_built_and_logged_in_to],
        ["private_engines_have_simple_quotas" => limits::quotas],
        ["another_port_is_taken_for_one_that_a_program_has" => held::port],
        ["ssh_of_a_page_is_at_the_private_address_alone" => private_port::of_a_page],
        ["operations_complete_after_kills_of_the_server" => crash::kills],
        ["create_answers_before_the_instance_is_up" => lifecycle::create_answers_at_once],
        ["running_means_that_ssh_accepts" => lifecycle::running_means_ssh_accepts],
        ["the_next_instance_at_an_address_has_its_hardware_address" => lifecycle::next_at_an_address],
        ["volumes_hold_their_sizes_and_outlive_instances" => volumes::sizes_and_content],
        ["an_instance_is_restored_and_cloned_from_its_snapshot" => snapshots::restore_and_clone],
        ["data_in_the_home_directory_survives_stop_and_restart" => lifecycle::data_survives],
        ["an_instance_that_powers_itself_off_becomes_exited" => lifecycle::poweroff_inside],
        ["the_command_line_creates_an_instance_and_logs_in" => journey::create_and_log_in],
        ["a_terminal_is_resized_attached_again_and_exits" => terminal::of_a_container],
        ["openssh_reaches_an_instance_through_a_tunnel" => tunnel::with_openssh],
        ["an_instance_has_its_gpu_exclusively_until_it_stops" => gpus::one_at_a_time],
        ["a_deleted_instance_leaves_nothing_in_the_engine" => leftovers::nothing_is_left],
        ["a_network_kept_by_the_engine_serves_the_next_owner" => leftovers::a_network],
        ["two_installations_on_one_engine_do_not_disturb_each_other" => beside::two_installations],
        ["requests_are_answered_during_an_outage_and_work_resumes_after_it" => outage::socket_gone],
        ["an_instance_removed_by_hand_is_exited_and_can_be_deleted" => out_of_band::removed],
        ["an_instance_stopped_or_started_by_hand_follows_the_intent" => out_of_band::stopped_and_started],
        ["an_instance_renamed_by_hand_keeps_working" => out_of_band::renamed],
        ["two_installations_on_one_engine_leave_each_other_alone" => out_of_band::two_installations],
        ["volumes_and_snapshots_without_a_row_go_and_others_stay" => out_of_band::kept_orphans],
    }
}

/// Tests that copy a whole disk.
fn busy() -> Vec<Chain<EngineContext>> {
    chains! {
        ["disk_growth_completes_after_kills" => grow_killed::converges],
        ["a_disk_grows_with_all_its_content" => grow::with_all_that_is_on_it],
        ["data_survives_cycles_of_snapshots_restores_and_clones" => snapshots::cycles],
        ["volumes_stay_while_a_disk_grows" => |context: &EngineContext| {
            if context.grows_disks() {
                volumes::stay_while_a_disk_grows(context)
            } else {
                Ok(())
            }
        }],
    }
}

/// Tests of virtual machines, which would take as long on every other kind. On a machine that is too busy, an
/// emulated one never starts: its init gives up on devices.
fn of_vms() -> Vec<Chain<EngineContext>> {
    chains! {
        [
            "two_vms_of_two_owners_with_logins_disks_ports_and_networks" => vms::look(vms::two_owners),
            "from_a_vm_nothing_of_the_node_is_reachable" => vms::look(vms::isolation),
            "a_vm_that_ends_by_itself_is_shut_off_and_restarts" => vms::look(vms::ends_and_restarts),
        ],
    }
}

/// Tests of two more dockerds.
fn of_two_dockerds() -> Vec<Chain<EngineContext>> {
    chains! {
        ["an_instance_moves_between_engines_with_all_its_content" => moves::between_engines],
        ["twenty_instances_of_a_destroyed_node_come_back" => destroyed::dockerd],
    }
}

/// Tests that load the machine, or measure it.
fn alone() -> Vec<Chain<EngineContext>> {
    chains! {
        ["the_console_opens_a_terminal_of_a_new_instance" => console::terminal],
        ["stats_are_those_of_a_known_load" => stats::of_a_known_load],
        ["stats_are_502_while_the_engine_hangs" => stats::while_the_engine_hangs],
        ["changes_of_the_clock_have_no_effect" => clock::set_back],
        // The last one: storage cleans up after it for a while.
        ["many_instances_come_up_and_go_at_once" => |context: &EngineContext| {
            many::at_once(context, &context.settings_with(context::MANY, "")?).map(drop)
        }],
    }
}

/// The tests of a plain run, or all of them in a whole one.
fn plain<C>(mut chains: Vec<Chain<C>>) -> Vec<Chain<C>> {
    for chain in &mut chains {
        chain.retain(|(name, _)| is_whole_run() || !WHOLE.contains(&name.as_str()));
    }
    chains
}

/// The suite of dockerd or of a Podman.
fn suite(kind: Kind, cores: usize) -> Suite<EngineContext> {
    let (mut waiting, mut busy) = (waiting(), busy());
    if kind == Kind::Dockerd {
        waiting.splice(0..0, of_dockerd());
        busy.splice(0..0, of_two_dockerds());
        busy.splice(0..0, of_vms());
    } else {
        eprintln!(
            "NOT RUN on {kind}: the tests of virtual machines, of TLS and of Docker's bridges, which run on \
             {PLAIN}"
        );
    }
    // Each new container of Podman 5 copies its image, and creations wait for each other.
    let threads = if kind == Kind::Podman5 {
        cores
    } else {
        cores + 1
    };
    let mut parts = vec![
        (threads, plain(waiting)),
        (cores, plain(busy)),
        (1, alone()),
    ];
    if !is_whole_run() && std::env::var_os(ENGINES).is_none() && kind != PLAIN {
        for chain in parts.iter_mut().flat_map(|(_, chains)| chains) {
            chain.retain(|(name, _)| CORE.contains(&name.as_str()));
        }
        eprintln!("NOT RUN on {kind}: tests that dockerd runs; {ENGINES}={kind} runs them too");
    }
    Suite {
        kind: kind.name().to_owned(),
        start: Box::new(move || EngineContext::start(kind)),
        supervise: Box::new(|_| {}),
        stop: Box::new(EngineContext::stop),
        parts,
    }
}

/// Whether to test on an engine.
fn is_wanted(kind: &str) -> bool {
    match std::env::var(ENGINES) {
        Ok(wanted) => wanted == "all" || wanted.split(',').any(|name| name == kind),
        Err(_) => is_whole_run() || kind != LEFT_OUT.name(),
    }
}

/// The dockerd or Podman of this name.
fn container(name: &str) -> Kind {
    let mut all = Kind::ALL.into_iter();
    all.find(|kind| kind.name() == name).expect("a known name")
}

fn main() -> ExitCode {
    if ovn::is_inside() {
        return ovn::inside();
    }
    let arguments = Arguments::from_args();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let made = |kind: &&str| -> Box<dyn Run> {
        match *kind {
            "incus" => Box::new(incus::suite(cores + 1)),
            "ovn" => Box::new(ovn::suite(cores + 1)),
            kind => Box::new(suite(container(kind), cores)),
        }
    };
    let lanes = LANES.map(|lane| {
        let wanted = lane.iter().filter(|kind| is_wanted(kind));
        wanted.map(made).collect::<Vec<_>>()
    });
    if !arguments.list {
        if !wharf_testkit::process::is_root() {
            return wharf_tests::lanes::skip(lanes.into());
        }
        // The packet filter rules of a killed run would redirect ports of these tests to nothing.
        PrivateEngine::end_abandoned(None);
        if let Err(error) = machine::end_abandoned() {
            eprintln!("machines of a killed run: {error:#}");
        }
    }
    wharf_tests::lanes::run(&arguments, lanes.into())
}
