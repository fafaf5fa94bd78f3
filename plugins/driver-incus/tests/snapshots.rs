//! Snapshots and restores, on an engine that breaks off, is killed, or has a full disk.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod fake;
mod sample;

use driver_incus::api::model::{Pool, Project};
use driver_incus::context::Context;
use driver_incus::snapshots;
use fake::Fake;
use sample::{ONE, node, spec, target};
use serde_json::json;
use wharf_guest::fake::Host;
use wharf_guest::{Complete, Error, Phase, Report, SnapshotKind, SnapshotReport, SnapshotState};

const FILE: &str = include_str!("../requests.toml");
const TWO: &str = "00000000-0000-4000-8000-000000000002";

fn take(fake: &Fake, id: &str) -> Result<SnapshotReport, Error> {
    let (node, target) = (node(), target());
    let host = Host::take(FILE, &node, &target, id, fake);
    snapshots::take(&Context::new(&node, &host)?, &target, id)
}

fn restore(fake: &Fake, id: &str) -> Result<Report, Error> {
    let (node, spec) = (node(), spec());
    let host = Host::restore(FILE, &node, &spec, id, fake);
    snapshots::restore(&Context::new(&node, &host)?, &spec, id)
}

/// Repeats a take until it is ready, and returns the bytes.
fn taken(fake: &Fake, id: &str) -> u64 {
    for _ in 0..5 {
        if let Ok(SnapshotReport {
            state: SnapshotState::Ready(Complete { bytes, .. }),
            ..
        }) = take(fake, id)
        {
            return bytes;
        }
    }
    panic!("it is never ready");
}

#[test]
fn a_take_that_breaks_anywhere_ends_with_one_complete_snapshot() {
    for at in 0..8 {
        let fake = Fake::new();
        fake.killed_at.set(Some(at));
        assert_eq!(taken(&fake, ONE), 3 << 30, "killed at {at}");
        let all = fake.snapshots.borrow();
        let mut all = all.values();
        assert!(all.next().is_some_and(|one| one.is_there) && all.next().is_none());
    }
}

#[test]
fn bytes_count_what_a_snapshot_shares_with_earlier_ones() {
    let fake = Fake::new();
    assert_eq!(taken(&fake, ONE), 3 << 30);
    fake.used.set(2 << 30);
    assert_eq!(taken(&fake, TWO), 5 << 30);
    // Without snapshots, the disk shares nothing.
    fake.snapshots.borrow_mut().clear();
    fake.used.set(4 << 30);
    assert_eq!(taken(&fake, ONE), 4 << 30);
    fake.snapshots.borrow_mut().clear();
    fake.used.set(0);
    let report = take(&fake, TWO).unwrap();
    assert!(
        matches!(report.state, SnapshotState::Failed(_)),
        "{report:?}"
    );
}

#[test]
fn a_full_disk_has_more_room_only_for_the_snapshot() {
    let fake = Fake::new();
    fake.full.set(true);
    taken(&fake, ONE);
    assert_eq!(*fake.sizes.borrow(), ["10256MiB", "10GiB"]);
    let restored = restore(&fake, ONE).unwrap();
    assert!(matches!(restored.phase, Phase::Stopped(_)));
    assert_eq!(fake.devices.borrow()["root"]["size"], "10GiB");
}

#[test]
fn a_restored_instance_has_the_disk_of_then_and_all_else_of_now() {
    let fake = Fake::new();
    fake.config.borrow_mut()["user.wharf.start"] = "begun".into();
    let old = json!({ "type": "disk", "source": "wv-x", "path": "/x" });
    fake.devices.borrow_mut()[format!("vol-{TWO}")] = old;
    taken(&fake, ONE);
    *fake.disk.borrow_mut() = "later".into();
    fake.devices.borrow_mut()[format!("vol-{TWO}")] = json!({ "type": "none" });
    let report = restore(&fake, ONE).unwrap();
    assert!(matches!(report.phase, Phase::Stopped(_)) && report.generation == 7);
    assert_eq!(*fake.disk.borrow(), "present");
    let (config, devices) = (fake.config.borrow(), fake.devices.borrow());
    assert_eq!(config["limits.memory"], "2GiB");
    assert_eq!(config["user.wharf.start"], "done");
    assert_eq!(config["user.wharf.restore"], "none");
    assert_eq!(devices[format!("vol-{TWO}")], json!({ "type": "none" }));
    assert_eq!(devices["port22"]["listen"], "tcp:192.0.2.1:20001");
    // Another size comes first, so that the limit is set.
    assert_eq!(*fake.sizes.borrow(), ["10256MiB", "10GiB"]);
}

#[test]
fn a_restore_meets_no_volume_that_is_gone() {
    let fake = Fake::new();
    fake.config.borrow_mut()["volatile.idmap.base"] = "65536".into();
    for id in [ONE, TWO] {
        let old = json!({ "type": "disk", "source": format!("wv-{id}"), "path": format!("/{id}") });
        fake.devices.borrow_mut()[format!("vol-{id}")] = old;
    }
    fake.devices.borrow_mut()["gpu0"] = json!({ "type": "gpu" });
    taken(&fake, ONE);
    for id in [ONE, TWO] {
        fake.devices.borrow_mut()[format!("vol-{id}")] = json!({ "type": "none" });
        fake.gone.borrow_mut().push(format!("wv-{id}"));
    }
    let report = restore(&fake, ONE).unwrap();
    assert!(matches!(report.phase, Phase::Stopped(_)));
    let devices = fake.devices.borrow();
    for name in [format!("vol-{ONE}"), format!("vol-{TWO}"), "gpu0".into()] {
        assert_eq!(devices[&name], json!({ "type": "none" }), "{name}");
    }
    assert_eq!(devices["port22"]["listen"], "tcp:192.0.2.1:20001");
}

#[test]
fn a_restored_range_of_ids_that_another_one_has_is_changed_at_once() {
    let fake = Fake::new();
    fake.config.borrow_mut()["volatile.idmap.base"] = "65536".into();
    taken(&fake, ONE);
    // A further call would restore the range once more.
    let report = restore(&fake, ONE).unwrap();
    assert!(matches!(report.phase, Phase::Stopped(_)));
    assert_eq!(fake.config.borrow()["volatile.idmap.base"], "131072");
}

#[test]
fn a_restore_that_breaks_anywhere_is_continued() {
    for at in 0..10 {
        let fake = Fake::new();
        taken(&fake, ONE);
        *fake.disk.borrow_mut() = "later".into();
        fake.killed_at.set(Some(fake.calls.get() + at));
        let ended = (0..3).any(|_| {
            restore(&fake, ONE).is_ok_and(|report| matches!(report.phase, Phase::Stopped(_)))
        });
        assert!(ended && *fake.disk.borrow() == "present", "killed at {at}");
        assert_eq!(fake.devices.borrow()["root"]["size"], "10GiB");
        assert_eq!(fake.config.borrow()["user.wharf.restore"], "none");
    }
}

#[test]
fn a_restored_disk_is_never_said_to_be_as_it_was() {
    for nth in 1.. {
        let mut left = 0;
        for times in [1, 5] {
            let fake = Fake::new();
            fake.config.borrow_mut()["volatile.idmap.base"] = "65536".into();
            taken(&fake, ONE);
            *fake.disk.borrow_mut() = "later".into();
            fake.fails.set((nth, times));
            for call in 0.. {
                fake.since.set(None);
                let phase = restore(&fake, ONE).unwrap().phase;
                assert_eq!(*fake.disk.borrow(), "present");
                if matches!(phase, Phase::Stopped(_)) {
                    break;
                }
                assert!(matches!(phase, Phase::Growing(_)) && call < 5, "{phase:?}");
            }
            left = fake.fails.get().1;
            assert_eq!(fake.devices.borrow()["root"]["size"], "10GiB");
            assert_eq!(fake.config.borrow()["user.wharf.restore"], "none");
        }
        if left > 0 {
            assert!(nth > 6, "{nth} requests");
            break;
        }
    }
}

#[test]
fn the_remains_of_a_restore_are_not_taken_for_another_one() {
    let fake = Fake::new();
    taken(&fake, ONE);
    taken(&fake, TWO);
    fake.left_over.set(true);
    *fake.disk.borrow_mut() = "later".into();
    for id in [ONE, ONE, TWO] {
        let error = restore(&fake, id).unwrap_err();
        assert!(
            matches!(&error, Error::Other(why) if why.contains(".incustmp")),
            "{error:?}"
        );
    }
    assert_eq!(*fake.disk.borrow(), "later");
}

#[test]
fn the_remains_of_an_ended_restore_are_not_taken_for_another_one() {
    let fake = Fake::new();
    taken(&fake, ONE);
    taken(&fake, TWO);
    // The restore itself is the fifth call.
    fake.killed_at.set(Some(fake.calls.get() + 4));
    let ended = (0..3)
        .any(|_| restore(&fake, ONE).is_ok_and(|report| matches!(report.phase, Phase::Stopped(_))));
    assert!(ended && fake.left_over.get());
    *fake.disk.borrow_mut() = "later".into();
    for at in 0..7 {
        fake.killed_at.set(Some(fake.calls.get() + at));
        for _ in 0..3 {
            let restored = restore(&fake, TWO);
            let ended = restored.is_ok_and(|report| matches!(report.phase, Phase::Stopped(_)));
            assert!(!ended, "killed at {at}");
        }
    }
    assert_eq!(*fake.disk.borrow(), "later");
}

#[test]
fn a_restricted_project_takes_none_and_says_why() {
    let fake = Fake {
        forbids: true,
        ..Fake::new()
    };
    let Err(Error::Unsupported(why)) = take(&fake, ONE) else {
        panic!("it is taken");
    };
    assert!(why.contains("restricted.snapshots=allow"), "{why}");
    let pool = |driver: &str| Pool {
        driver: driver.to_owned(),
    };
    let project = |pairs: &[(&str, &str)]| Project {
        config: pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        ..Project::default()
    };
    let restricted = project(&[("restricted", "true")]);
    let open = project(&[("restricted", "true"), ("restricted.snapshots", "allow")]);
    let shared =
        |pool: &Pool, project: &Project| snapshots::kind(pool, project) == SnapshotKind::Shared;
    assert!(!shared(&pool("btrfs"), &restricted));
    assert!(shared(&pool("btrfs"), &open));
    assert!(shared(&pool("btrfs"), &Project::default()));
    // It restores only the newest one.
    assert!(!shared(&pool("zfs"), &open));
}
