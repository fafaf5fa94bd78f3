//! The driver against a private Incus cluster of three members, over HTTPS with a certificate that is
//! restricted to one project. Where Incus cannot be installed, it says so and tests nothing.
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

use given::Rig;
use std::time::Instant;

/// A step of the test.
type Step = (&'static str, fn(&mut Rig));

const STEPS: [Step; 13] = [
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
    ("a killed daemon", failures::killed_daemon),
    ("a cut link", failures::cut_link),
    ("no quorum", failures::no_quorum),
];

#[test]
fn instances_live_on_a_cluster() {
    if !wharf_testkit::incus::can_install() {
        // The continuous integration runs where Incus is offered.
        assert!(
            std::env::var_os("CI").is_none(),
            "Incus cannot be installed here"
        );
        eprintln!("skipped: Incus cannot be installed here");
        return;
    }
    wharf_testkit::incus::Cluster::end_abandoned();
    let mut rig = Rig::start();
    for (name, step) in STEPS {
        let start = Instant::now();
        step(&mut rig);
        eprintln!("{name}: {:.1?}", start.elapsed());
    }
    rig.stop();
}
