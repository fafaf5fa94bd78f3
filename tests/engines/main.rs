//! Tests on real engines, which this binary starts and removes. Every test runs on every kind:
//! `dockerd::…`, `podman-4::…`, `podman-5::…`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod beside;
mod clock;
mod console;
mod context;
mod crash;
mod engine_restart;
mod gpus;
mod grow;
mod grow_killed;
mod inside;
mod isolation;
mod journey;
mod leftovers;
mod lifecycle;
mod limits;
mod login;
mod machine;
mod many;
mod out_of_band;
mod outage;
mod own_image;
mod own_size;
mod remote;
mod resize;
mod stats;
mod terminal;
mod vms;

use context::Context;
use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;
use std::sync::Arc;
use wharf_testkit::engine::{Kind, PrivateEngine};
use wharf_tests::{is_wanted, trial};

type Test = wharf_tests::Test<Context>;

/// The resources that a test leaves to concurrent tests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// Mostly waiting.
    Much,
    /// Keeps a core or the disk busy.
    Little,
    /// Loads the machine, or measures it.
    Nothing,
}

/// The order of the parts.
const PARTS: [Beside; 3] = [Beside::Much, Beside::Little, Beside::Nothing];

const ALONE: [&str; 6] = [
    "the_console_opens_a_terminal_of_a_new_instance",
    "stats_are_those_of_a_known_load",
    "stats_are_502_while_the_engine_hangs",
    "changes_of_the_clock_have_no_effect",
    "many_instances_come_up_and_go_at_once",
    TWO_VMS,
];
/// Tests that copy a whole disk, or run one virtual machine.
const BUSY: [&str; 4] = [GROW_KILLED, GROW, VM_ISOLATION, VM_ENDS];

impl Beside {
    fn of(name: &str) -> Self {
        if ALONE.contains(&name) {
            Self::Nothing
        } else if BUSY.contains(&name) {
            Self::Little
        } else {
            Self::Much
        }
    }

    /// The number of concurrent tests on this number of cores.
    fn threads(self, kind: Kind, cores: usize) -> usize {
        match self {
            // Each new container copies its image, and creations wait for each other.
            Self::Much if kind == Kind::Podman5 => cores,
            Self::Much => 2 * cores,
            Self::Little => cores,
            Self::Nothing => 1,
        }
    }
}

const GROW: &str = "a_disk_grows_with_all_its_content";
const GROW_KILLED: &str = "disk_growth_completes_after_kills";

/// Tests of virtual machines; an emulated one needs a core of its own.
const TWO_VMS: &str = "two_vms_of_two_owners_with_logins_disks_ports_and_networks";
const VM_ISOLATION: &str = "from_a_vm_nothing_of_the_node_is_reachable";
const VM_ENDS: &str = "a_vm_that_ends_by_itself_is_shut_off_and_restarts";
const VMS: [&str; 3] = [TWO_VMS, VM_ISOLATION, VM_ENDS];

/// Tests that start dockerds of their own.
const THREE_MACHINES: &str = "three_machines_behind_mutual_tls_and_a_cut_link";
const CERTIFICATES: &str = "a_wrong_certificate_is_named_by_node_check";

/// Tests of the bridges that Docker makes for its networks.
const VANISHED_BRIDGE: &str = "a_network_whose_bridge_vanished_is_made_again";
const EARLIER_NETWORK: &str = "a_network_of_an_earlier_version_goes_on";

/// Tests for one kind of engine.
const ONE_KIND: [&str; 7] = [
    TWO_VMS,
    VM_ISOLATION,
    VM_ENDS,
    THREE_MACHINES,
    CERTIFICATES,
    VANISHED_BRIDGE,
    EARLIER_NETWORK,
];
/// VMs would take as long on every other kind.
const ONE_KIND_IS: Kind = Kind::Dockerd;

/// Comma-separated names of engines, or `all`: each test runs on these.
const ENGINES: &str = "WHARF_TEST_ENGINES";
/// The engine for all tests unless the variable is set; the other engines then run [`CORE`].
const PLAIN_RUN: Kind = Kind::Dockerd;
/// Tests of differences between engines. A run of all tests on all engines takes half an hour. None
/// of these starts a second engine: two Podmans on a node share their firewall rules for ports.
const CORE: [&str; 11] = [
    "running_means_that_ssh_accepts",
    "data_in_the_home_directory_survives_stop_and_restart",
    "an_instance_that_powers_itself_off_becomes_exited",
    "the_limits_are_seen_from_inside",
    "an_instance_sees_its_own_size",
    "the_disk_size_is_a_limit",
    "sizes_change_while_it_runs_and_are_seen_from_inside",
    "an_instance_has_its_gpu_exclusively_until_it_stops",
    "a_deleted_instance_leaves_nothing_in_the_engine",
    "an_instance_removed_by_hand_is_exited_and_can_be_deleted",
    "from_a_root_shell_inside_nothing_of_the_node_is_reachable",
];

const TESTS: &[(&str, Test)] = &[
    // The longest first, so that the others run beside it.
    (GROW_KILLED, grow_killed::converges),
    (
        "operations_complete_after_twenty_kills",
        crash::at_twenty_points,
    ),
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
    (
        "the_command_line_creates_an_instance_and_logs_in",
        journey::create_and_log_in,
    ),
    ("each_instance_has_host_keys_of_its_own", login::host_keys),
    ("an_instance_sees_its_own_size", own_size::is_shown),
    (
        "base_has_tools_and_the_operators_package_sources",
        own_size::base_is_comfortable,
    ),
    (
        "an_image_of_the_operators_is_built_and_logged_in_to",
        own_image::is_built_and_logged_in_to,
    ),
    (
        "a_terminal_is_resized_attached_again_and_exits",
        terminal::of_a_container,
    ),
    (
        "the_console_opens_a_terminal_of_a_new_instance",
        console::terminal,
    ),
    ("the_limits_are_seen_from_inside", limits::seen_from_inside),
    ("the_disk_size_is_a_limit", limits::disk),
    (GROW, grow::with_all_that_is_on_it),
    (
        "sizes_change_while_it_runs_and_are_seen_from_inside",
        resize::live,
    ),
    (
        "an_instance_has_its_gpu_exclusively_until_it_stops",
        gpus::one_at_a_time,
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
        "a_network_kept_by_the_engine_serves_the_next_owner",
        leftovers::a_network,
    ),
    (
        "two_installations_on_one_engine_do_not_disturb_each_other",
        beside::two_installations,
    ),
    (VANISHED_BRIDGE, beside::a_vanished_bridge),
    (EARLIER_NETWORK, beside::a_network_of_an_earlier_version),
    (
        "requests_are_answered_during_an_outage_and_work_resumes_after_it",
        outage::socket_gone,
    ),
    (
        "an_instance_removed_by_hand_is_exited_and_can_be_deleted",
        out_of_band::removed,
    ),
    (
        "an_instance_stopped_or_started_by_hand_follows_the_intent",
        out_of_band::stopped_and_started,
    ),
    (
        "an_instance_renamed_by_hand_keeps_working",
        out_of_band::renamed,
    ),
    (
        "two_installations_on_one_engine_leave_each_other_alone",
        out_of_band::two_installations,
    ),
    (
        "instances_survive_a_restart_of_the_engine",
        engine_restart::instances_survive,
    ),
    (
        "instances_survive_a_start_of_the_engine_on_an_empty_store",
        engine_restart::on_an_empty_store,
    ),
    ("changes_of_the_clock_have_no_effect", clock::set_back),
    (
        "from_a_root_shell_inside_nothing_of_the_node_is_reachable",
        isolation::root_shell,
    ),
    (
        "one_owners_instances_reach_each_other_on_lan_ipv4",
        isolation::same_owner,
    ),
    (THREE_MACHINES, remote::three_machines),
    (CERTIFICATES, remote::wrong_certificates),
    (TWO_VMS, vms::two_owners),
    (VM_ISOLATION, vms::isolation),
    (VM_ENDS, vms::ends_by_itself),
    // The last one: storage cleans up after it for a while.
    ("many_instances_come_up_and_go_at_once", many::at_once),
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    if arguments.list || !wharf_testkit::process::is_root() {
        let all = Kind::ALL
            .iter()
            .flat_map(|kind| TESTS.iter().map(|(name, _)| full(*kind, name)));
        return wharf_tests::without_engine(&arguments, all.collect());
    }
    // The packet filter rules of a killed run would redirect ports of these tests to nothing.
    PrivateEngine::end_abandoned(None);
    if let Err(error) = machine::end_abandoned() {
        eprintln!("machines of a killed run: {error:#}");
    }
    let mut failed = false;
    // One kind after the other: concurrent engines would slow each other down.
    for kind in kinds() {
        if TESTS
            .iter()
            .any(|(name, _)| is_wanted(&arguments, &full(kind, name)))
        {
            failed |= !on(kind, &arguments);
        }
    }
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Returns the engines to test on.
fn kinds() -> Vec<Kind> {
    let Ok(wanted) = std::env::var(ENGINES) else {
        return Kind::ALL.to_vec();
    };
    let named = |kind: &Kind| wanted == "all" || wanted.split(',').any(|name| name == kind.name());
    Kind::ALL.into_iter().filter(named).collect()
}

/// Returns the tests for one kind of engine; reports those that do not run.
fn tests_on(kind: Kind) -> Vec<&'static (&'static str, Test)> {
    if kind != ONE_KIND_IS {
        eprintln!(
            "NOT RUN on {kind}: the tests of virtual machines, of TLS and of Docker's bridges, which run on \
             {ONE_KIND_IS}"
        );
    }
    let plain = std::env::var_os(ENGINES).is_none();
    let core = plain && kind != PLAIN_RUN;
    let (run, left): (Vec<_>, Vec<_>) = TESTS
        .iter()
        .filter(|(name, _)| kind == ONE_KIND_IS || !ONE_KIND.contains(name))
        .partition(|(name, _)| !core || CORE.contains(name));
    if core {
        let left = left.len();
        eprintln!("NOT RUN on {kind}: {left} tests more; {ENGINES}={kind} runs them too");
    }
    run
}

/// Runs the selected tests on one kind of engine; returns whether all passed.
fn on(kind: Kind, arguments: &Arguments) -> bool {
    let context = match Context::start(kind) {
        Ok(context) => Arc::new(context),
        Err(error) => {
            eprintln!("{kind} does not start: {error:#}");
            return false;
        }
    };
    let mut failed = false;
    let tests = tests_on(kind);
    let vms = tests
        .iter()
        .any(|(name, _)| VMS.contains(name) && is_wanted(arguments, &full(kind, name)));
    // The image takes a minute, mostly waiting, so the tests without VMs run meanwhile. If the
    // build fails, the first test of a VM reports it.
    let image = vms.then(|| {
        let context = Arc::clone(&context);
        std::thread::spawn(move || drop(context.with_vm_image()))
    });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for beside in PARTS {
        let part = tests.iter().filter(|(name, _)| {
            Beside::of(name) == beside && is_wanted(arguments, &full(kind, name))
        });
        let trials: Vec<Trial> = part
            .map(|(name, test)| trial(full(kind, name), &context, *test))
            .collect();
        if trials.is_empty() {
            continue;
        }
        let mut arguments = arguments.clone();
        let most = arguments.test_threads.unwrap_or(usize::MAX);
        arguments.test_threads = Some(most.min(beside.threads(kind, cores)));
        failed |= libtest_mimic::run(&arguments, trials).has_failed();
    }
    if let Some(image) = image {
        drop(image.join());
    }
    wharf_tests::stop(context, Context::stop) && !failed
}

fn full(kind: Kind, name: &str) -> String {
    format!("{kind}::{name}")
}
