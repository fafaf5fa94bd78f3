//! The driver against a private Incus cluster of three members, over HTTPS with a certificate that is
//! restricted to one project. It takes six minutes, and runs where `WHARF_TEST_INCUS` is set.
//!
//! One test shares the cluster, because members use much of a small machine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod failures;
mod given;
mod https;
mod inside;
mod life;
mod moves;

use given::Rig;
use std::time::Instant;

/// The variable that asks for the cluster.
const ASKED: &str = "WHARF_TEST_INCUS";

/// A step of the test.
type Step = (&'static str, fn(&mut Rig));

const STEPS: [Step; 14] = [
    ("probe", life::probe),
    ("mark", life::mark),
    ("survey", life::survey),
    ("creation", life::creation),
    ("inside", inside::view),
    ("isolation", inside::isolation),
    ("stats", life::stats),
    ("resize", life::resize),
    ("stop and start", life::stop_and_start),
    ("many at once", life::many_at_once),
    ("a move", moves::stopped),
    ("a killed daemon", failures::killed_daemon),
    ("a cut link", failures::cut_link),
    ("no quorum", failures::no_quorum),
];

#[test]
fn instances_live_on_a_cluster() {
    if std::env::var_os(ASKED).is_none() {
        eprintln!("skipped: {ASKED} is not set, so there is no Incus cluster");
        return;
    }
    assert!(
        wharf_testkit::incus::can_install(),
        "Incus cannot be installed here"
    );
    wharf_testkit::incus::Cluster::end_abandoned();
    let mut rig = Rig::start();
    for (name, step) in STEPS {
        let start = Instant::now();
        step(&mut rig);
        eprintln!("{name}: {:.1?}", start.elapsed());
    }
    rig.stop();
}
