//! Snapshots, restores and clones on an engine that is killed in a copy, or loses calls and answers.

use crate::calls::Calls;
use crate::fake::given::{node, spec, target};
use crate::fake::snapshot::{COPIED, REMEMBERED};
use crate::fake::{Break, Fake};
use wharf_guest::{Error, Phase, SnapshotState, Source, Spec};

pub const ID: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
const OTHER: &str = "1b671a64-40d5-491e-99b0-da01ff1f3341";
const NAME: &str = "wharf-00000000-0000-4000-8000-000000000001";
const CLONE: &str = "wharf-00000000-0000-4000-8000-000000000002";
/// The limit of a disk of 20 GiB on an image of 512 MiB, and its blocks that are not full.
const LIMIT: u64 = (20 << 30) + (512 << 20) + (32 << 20) + (64 << 20);

/// An engine with a running instance.
pub fn running() -> Fake {
    let fake = Fake::new();
    let node = node("{}");
    Calls::new(&node, &fake).ensure(&spec(1)).unwrap();
    fake
}

/// A snapshot of the first instance.
pub fn of(id: &str) -> Source {
    Source {
        snapshot: id.to_owned(),
        instance: spec(1).tag,
    }
}

pub fn state(calls: &Calls<'_>, id: &str) -> SnapshotState {
    calls.take(&target(&spec(1)), id).unwrap().state
}

/// Takes a snapshot of the first instance.
pub fn taken(calls: &Calls<'_>, fake: &Fake, id: &str) {
    assert!(matches!(state(calls, id), SnapshotState::Copying(_)));
    fake.world.borrow_mut().finish();
    assert!(matches!(state(calls, id), SnapshotState::Ready(_)));
    fake.world.borrow_mut().job = false;
}

/// The specification of a clone of the first instance.
fn clone() -> Spec {
    Spec {
        source: Some(of(ID)),
        ..spec(2)
    }
}

pub fn stands_still(fake: &Fake) -> bool {
    fake.world.borrow().containers[NAME].paused
}

#[test]
fn an_instance_that_stands_still_for_a_copy_counts_as_running() {
    let (fake, node) = (running(), node("{}"));
    let calls = Calls::new(&node, &fake);
    for _ in 0..3 {
        assert!(matches!(state(&calls, ID), SnapshotState::Copying(_)));
        assert!(stands_still(&fake));
        assert!(matches!(calls.list().unwrap()[0].phase, Phase::Ready));
        assert!(matches!(
            calls.inspect(&spec(1).tag).unwrap().phase,
            Phase::Ready
        ));
        let start = calls.start(&target(&spec(1))).unwrap();
        assert!(matches!(start.phase, Phase::Ready) && stands_still(&fake));
        let stop = calls.stop(&target(&spec(1)), 0);
        assert!(matches!(stop, Err(Error::RetryLater(_))), "{stop:?}");
    }
    fake.world.borrow_mut().finish();
    let SnapshotState::Ready(complete) = state(&calls, ID) else {
        panic!("it is complete");
    };
    assert_eq!((complete.bytes, complete.clonable), (3 << 30, true));
    let listed = calls.list_snapshots().unwrap();
    assert!(matches!(&listed[..], [one] if one.id == ID && one.instance.incarnation == 1));
}

#[test]
fn the_size_of_the_image_is_known_below_several_snapshots() {
    let (fake, node) = (running(), node("{}"));
    let calls = Calls::new(&node, &fake);
    taken(&calls, &fake, ID);
    calls.ensure(&clone()).unwrap();
    let of_clone = target(&clone());
    calls.take(&of_clone, OTHER).unwrap();
    fake.world.borrow_mut().finish();
    let report = calls.take(&of_clone, OTHER).unwrap();
    assert!(matches!(report.state, SnapshotState::Ready(complete) if complete.bytes == 6 << 30));
}

#[test]
fn a_copy_goes_on_without_the_host() {
    let (fake, node) = (running(), node("{}"));
    let calls = Calls::new(&node, &fake);
    state(&calls, ID);
    fake.world.borrow_mut().job = false;
    for _ in 0..2 {
        assert!(matches!(state(&calls, ID), SnapshotState::Copying(_)));
    }
    let dropped = calls.drop_snapshot(&of(ID)).unwrap();
    assert!(
        matches!(dropped.state, SnapshotState::Copying(_)),
        "it would come up later"
    );
    fake.world.borrow_mut().finish();
    assert!(matches!(state(&calls, ID), SnapshotState::Ready(_)));
}

#[test]
fn an_engine_that_was_killed_in_a_copy_lets_the_instance_go_on() {
    let (fake, node) = (running(), node("{}"));
    let calls = Calls::new(&node, &fake);
    let halted = || {
        state(&calls, ID);
        fake.world.borrow_mut().kill();
        assert!(stands_still(&fake));
    };
    halted();
    calls.start(&target(&spec(1))).unwrap();
    assert!(!stands_still(&fake));
    halted();
    calls.drop_snapshot(&of(ID)).unwrap();
    assert!(!stands_still(&fake));
    halted();
    // Nothing of the first copy is ready: another one begins.
    assert!(matches!(state(&calls, ID), SnapshotState::Copying(_)));
    fake.world.borrow_mut().finish();
    assert!(matches!(state(&calls, ID), SnapshotState::Ready(_)) && !stands_still(&fake));
    fake.world.borrow_mut().job = false;
    calls.take(&target(&spec(1)), OTHER).unwrap();
    fake.world.borrow_mut().kill();
    calls.stop(&target(&spec(1)), 0).unwrap();
    assert!(!fake.world.borrow().containers[NAME].running);
}

/// Asserts that no call lets the instance go on, or takes the copy for complete.
fn assert_copied(calls: &Calls<'_>, fake: &Fake) {
    assert!(matches!(state(calls, ID), SnapshotState::Copying(_)));
    calls.start(&target(&spec(1))).unwrap();
    let stop = calls.stop(&target(&spec(1)), 0);
    assert!(matches!(stop, Err(Error::RetryLater(_))), "{stop:?}");
    assert!(stands_still(fake));
}

/// Makes all that the engine remembers a day older.
fn a_day_passes(fake: &Fake) {
    for event in &mut fake.world.borrow_mut().events {
        event.time -= 86_400_000_000_000;
    }
}

#[test]
fn a_busy_engine_forgets_that_it_copies() {
    let (fake, node) = (running(), node("{}"));
    let calls = Calls::new(&node, &fake);
    state(&calls, ID);
    fake.world.borrow_mut().job = false;
    for _ in 0..REMEMBERED {
        fake.world.borrow_mut().happens("busy", "exec_create");
    }
    assert_copied(&calls, &fake);
    a_day_passes(&fake);
    calls.start(&target(&spec(1))).unwrap();
    assert!(!stands_still(&fake));
}

#[test]
fn no_engine_copies_for_a_day() {
    let (fake, node) = (running(), node("{}"));
    let calls = Calls::new(&node, &fake);
    let mut world = fake.world.borrow_mut();
    world.containers.get_mut(NAME).unwrap().paused = true;
    world.happens(NAME, "pause");
    drop(world);
    assert_copied(&calls, &fake);
    a_day_passes(&fake);
    calls.stop(&target(&spec(1)), 0).unwrap();
    assert!(!fake.world.borrow().containers[NAME].running);
}

#[test]
fn an_engine_without_a_clock_lets_nothing_go_on() {
    let (fake, node) = (running(), node("{}"));
    let calls = Calls::new(&node, &fake);
    state(&calls, ID);
    fake.world.borrow_mut().headless = true;
    let start = calls.start(&target(&spec(1)));
    assert!(matches!(start, Err(Error::RetryLater(_))), "{start:?}");
    assert!(stands_still(&fake));
}

/// The engine copies on after the host, and nothing stands still meanwhile.
#[test]
fn a_copy_of_a_stopped_instance_is_ready_only_without_a_start() {
    let (fake, node) = (running(), node("{}"));
    let calls = Calls::new(&node, &fake);
    calls.stop(&target(&spec(1)), 0).unwrap();
    let copied = || {
        let copying = state(&calls, ID);
        assert!(matches!(copying, SnapshotState::Copying(_)), "{copying:?}");
        fake.world.borrow_mut().job = false;
    };
    copied();
    calls.start(&target(&spec(1))).unwrap();
    fake.world.borrow_mut().finish();
    calls.stop(&target(&spec(1)), 0).unwrap();
    // That one is torn.
    copied();
    fake.world.borrow_mut().finish();
    assert!(matches!(state(&calls, ID), SnapshotState::Ready(_)));
    let names: Vec<_> = fake.world.borrow().snapshots.keys().cloned().collect();
    assert_eq!(names, [format!("localhost/wharf-snapshot/{ID}:1")]);
}

#[test]
fn a_copy_of_a_stopped_instance_that_ends_late_is_removed() {
    let (fake, node) = (running(), node("{}"));
    let calls = Calls::new(&node, &fake);
    calls.stop(&target(&spec(1)), 0).unwrap();
    state(&calls, ID);
    let absent = || calls.drop_snapshot(&of(ID)).unwrap().state;
    assert!(matches!(absent(), SnapshotState::Absent));
    fake.world.borrow_mut().finish();
    let listed = calls.list_snapshots().unwrap();
    assert!(matches!(&listed[..], [one] if matches!(one.state, SnapshotState::Copying(_))));
    assert!(matches!(absent(), SnapshotState::Absent));
    assert!(fake.world.borrow().snapshots.is_empty());
}

#[test]
fn podman_answers_about_no_container_that_it_copies() {
    let fake = Fake::new();
    fake.world.borrow_mut().podman = true;
    let node = node("{}");
    let calls = Calls::new(&node, &fake);
    calls.ensure(&spec(1)).unwrap();
    state(&calls, ID);
    let mut world = fake.world.borrow_mut();
    world.kill();
    // Its events would say so too.
    world.happens(NAME, "pause");
    drop(world);
    calls.start(&target(&spec(1))).unwrap();
    assert!(!stands_still(&fake));
}

#[test]
fn a_full_node_and_data_on_other_volumes_fail() {
    let (fake, node) = (running(), node("{}"));
    let calls = Calls::new(&node, &fake);
    fake.world.borrow_mut().copies_fail = Some((500, "write: no space left on device"));
    assert!(matches!(state(&calls, ID), SnapshotState::Failed(_)));
    fake.world.borrow_mut().copies_fail = Some((500, "something else"));
    assert!(calls.take(&target(&spec(1)), ID).is_err());
    fake.world.borrow_mut().copies_fail = None;
    let mount = serde_json::json!([{ "Name": "anonymous", "Destination": "/var/lib/x" }]);
    let mut world = fake.world.borrow_mut();
    world.containers.get_mut(NAME).unwrap().body["Mounts"] = mount;
    drop(world);
    assert!(matches!(state(&calls, ID), SnapshotState::Failed(why) if why.contains("/var/lib/x")));
}

#[test]
fn a_copy_is_no_larger_than_the_disk() {
    for (podman, storage, settings, image) in [
        (false, "btrfs", "{}", 544 << 20),
        (true, "btrfs", "{}", 544 << 20),
        (false, "btrfs", r#"{"btrfs_quotas":"simple"}"#, 0),
        (false, "overlay2", "{}", 0),
    ] {
        let (fake, node) = (running(), node(settings));
        let calls = Calls::new(&node, &fake);
        fake.world.borrow_mut().podman = podman;
        fake.world.borrow_mut().storage = storage;
        // 20 GiB, and what the limit has beside it.
        let most = (20 << 30) + (64 << 20) + image;
        for written in [20 << 40, most + 1] {
            fake.world.borrow_mut().written = written;
            let failed = state(&calls, ID);
            let SnapshotState::Failed(why) = failed else {
                panic!("{storage} {settings} {written}: {failed:?}");
            };
            assert!(why.contains("sparse files become full"), "{why}");
            assert!(fake.world.borrow().copy.is_none());
        }
        fake.world.borrow_mut().written = most;
        taken(&calls, &fake, ID);
        // The data of its snapshot makes no room in a clone.
        calls.ensure(&clone()).unwrap();
        let of_clone = target(&clone());
        fake.world.borrow_mut().written = most + 1;
        let failed = calls.take(&of_clone, OTHER).unwrap().state;
        assert!(matches!(failed, SnapshotState::Failed(_)), "{failed:?}");
        fake.world.borrow_mut().written = most;
        let begun = calls.take(&of_clone, OTHER).unwrap();
        assert!(
            matches!(begun.state, SnapshotState::Copying(_)),
            "{begun:?}"
        );
        assert_eq!(begun.again_ms, Some(10_000), "each call measures again");
    }
}

#[test]
fn a_clone_has_the_files_of_both() {
    let (fake, node) = (running(), node("{}"));
    let calls = Calls::new(&node, &fake);
    let mut world = fake.world.borrow_mut();
    let source = world.containers.get_mut(NAME).unwrap();
    source.files = vec!["/home/user/a".into()];
    // The labels of its image, which the clone would have too.
    source.body["Labels"]["io.wharf.grown-from"] = "10G".into();
    drop(world);
    taken(&calls, &fake, ID);
    calls.ensure(&clone()).unwrap();
    let world = fake.world.borrow();
    let made = &world.containers[CLONE];
    assert_eq!(
        made.files,
        ["/home/user/a", "/etc/wharf/first-boot/password"]
    );
    assert!(made.running && world.started_bare.is_empty());
    assert_eq!(made.body["Labels"]["io.wharf.grown-from"], "none");
    // The image is 512 MiB large; the snapshot's data is a part of the size.
    assert_eq!(made.body["HostConfig"]["StorageOpt"]["size"], "21088M");
}

#[test]
fn a_clone_needs_its_snapshot_and_a_disk_for_it() {
    let (fake, node) = (running(), node("{}"));
    let calls = Calls::new(&node, &fake);
    let gone = calls.ensure(&clone()).unwrap();
    assert!(matches!(gone.phase, Phase::Failed(_)), "{gone:?}");
    taken(&calls, &fake, ID);
    let mut small = clone();
    small.size.disk_size_gib = 2;
    let refused = calls.ensure(&small).unwrap_err();
    assert!(
        matches!(&refused, Error::Insufficient(short) if short[0].requested == 3),
        "{refused:?}"
    );
    // The engine counts a file of the image that was written again twice.
    let refused_at = |bytes: u64| {
        let mut world = fake.world.borrow_mut();
        let snapshot = world.snapshots.values_mut().next().unwrap();
        snapshot.copied = bytes;
        drop(world);
        let made = calls.ensure(&clone());
        fake.world.borrow_mut().containers.remove(CLONE);
        matches!(made, Err(Error::Insufficient(_)))
    };
    assert!(!refused_at(LIMIT) && refused_at(LIMIT + 1));
    fake.world
        .borrow_mut()
        .snapshots
        .values_mut()
        .next()
        .unwrap()
        .copied = COPIED;
    // Simple quotas do not count it.
    let simple = crate::fake::given::node(r#"{"btrfs_quotas":"simple"}"#);
    Calls::new(&simple, &fake).ensure(&small).unwrap();
}

/// Acts as the host until the instance is restored. At no point may its only data be gone.
fn restored(fake: &Fake) -> Result<(), Error> {
    let node = node("{}");
    let report = Calls::new(&node, fake).restore(&spec(1), ID);
    let world = fake.world.borrow();
    assert!(world.containers.values().any(|one| !one.files.is_empty()));
    assert!(matches!(report?.phase, Phase::Stopped(_)));
    Ok(())
}

/// A stopped instance that had the file `a` at its snapshot, and has `b` now.
fn changed() -> Fake {
    let (fake, node) = (running(), node("{}"));
    let calls = Calls::new(&node, &fake);
    let file = |name: &str| {
        let mut world = fake.world.borrow_mut();
        world.containers.get_mut(NAME).unwrap().files = vec![name.to_owned()];
    };
    file("a");
    taken(&calls, &fake, ID);
    file("b");
    calls.stop(&target(&spec(1)), 0).unwrap();
    fake
}

#[test]
fn a_restore_completes_after_any_failed_call() {
    for when in [Break::Before, Break::After] {
        for nth in 0.. {
            let fake = changed();
            fake.break_call(nth, when);
            let mut rounds = 0;
            while restored(&fake).is_err() {
                rounds += 1;
                assert!(rounds < 10, "{when:?} {nth}");
            }
            let broke = fake.broke();
            fake.break_call(1000, when);
            // Another call finds nothing to do.
            let before = fake.world.borrow().next_container;
            restored(&fake).unwrap();
            let world = fake.world.borrow();
            assert_eq!(world.next_container, before);
            let names: Vec<_> = world.containers.keys().map(String::as_str).collect();
            assert_eq!(names, [NAME], "{when:?} {nth}");
            assert_eq!(world.containers[NAME].files, ["a"]);
            drop(world);
            let node = node("{}");
            Calls::new(&node, &fake).start(&target(&spec(1))).unwrap();
            assert!(fake.world.borrow().containers[NAME].running);
            if !broke {
                assert!(nth > 8, "{nth} calls");
                break;
            }
        }
    }
}

/// A removal that fails for ever must end neither with the old disk nor with two.
#[test]
fn a_restore_that_has_replaced_the_disk_goes_on() {
    let (fake, node) = (changed(), node("{}"));
    let calls = Calls::new(&node, &fake);
    fake.world.borrow_mut().removals_fail = true;
    for _ in 0..2 {
        let restored = calls.restore(&spec(1), ID);
        assert!(
            matches!(restored, Err(Error::RetryLater(_))),
            "{restored:?}"
        );
        let start = calls.start(&target(&spec(1))).unwrap();
        assert!(matches!(start.phase, Phase::Growing(_)), "{start:?}");
        calls.grow(&spec(1)).unwrap_err();
    }
    fake.world.borrow_mut().removals_fail = false;
    let stop = calls.stop(&target(&spec(1)), 0).unwrap();
    assert!(matches!(stop.phase, Phase::Stopped(_)));
    let start = calls.start(&target(&spec(1))).unwrap();
    assert!(matches!(start.phase, Phase::Growing(_)), "{start:?}");
    calls.grow(&spec(1)).unwrap();
    calls.start(&target(&spec(1))).unwrap();
    let world = fake.world.borrow();
    assert_eq!(world.containers.len(), 1);
    assert!(world.containers[NAME].running);
    assert_eq!(world.containers[NAME].files, ["a"]);
}

#[test]
fn a_restore_that_cannot_be_keeps_the_disk() {
    let (fake, node) = (changed(), node("{}"));
    let calls = Calls::new(&node, &fake);
    let gone = calls.restore(&spec(1), OTHER).unwrap_err();
    assert!(
        matches!(&gone, Error::Invalid(wrong) if wrong.field == "snapshot"),
        "{gone:?}"
    );
    let mut small = spec(1);
    small.size.disk_size_gib = 2;
    let refused = calls.restore(&small, ID);
    assert!(
        matches!(refused, Err(Error::Insufficient(_))),
        "{refused:?}"
    );
    assert_eq!(fake.world.borrow().containers[NAME].files, ["b"]);
    calls.start(&target(&spec(1))).unwrap();
    let up = calls.restore(&spec(1), ID).unwrap();
    assert!(matches!(up.phase, Phase::Ready), "it runs: {up:?}");
    assert_eq!(fake.world.borrow().containers[NAME].files, ["b"]);
}

#[test]
fn a_snapshot_goes_once_no_instance_is_made_from_it() {
    let (fake, node) = (running(), node("{}"));
    let calls = Calls::new(&node, &fake);
    taken(&calls, &fake, ID);
    calls.ensure(&clone()).unwrap();
    let dropped = || calls.drop_snapshot(&of(ID)).unwrap().state;
    assert!(matches!(dropped(), SnapshotState::InUse));
    calls.delete(&target(&clone())).unwrap();
    calls.delete(&target(&spec(1))).unwrap();
    for _ in 0..2 {
        assert!(matches!(dropped(), SnapshotState::Absent));
    }
    assert!(calls.list_snapshots().unwrap().is_empty());
}
