//! Content of snapshots that leaves for a backup, and content that comes back from one.

use crate::calls::Calls;
use crate::fake::given::{node, spec, target};
use crate::fake::{Break, Fake, Moved};
use serde_json::Value;
use wharf_guest::{Error, Phase, SnapshotState, Source, Spec};

const ID: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
const CARRIER: &str = "wharf-carrier-7c9e6679-7425-40de-944b-e07fc1f90ae7";
const NAME: &str = "wharf-00000000-0000-4000-8000-000000000001";
const FILES: [&str; 2] = ["/home/user/a", "/home/user/b"];
/// The file of the first start.
const PASSWORD: &str = "/etc/wharf/first-boot/password";

fn of() -> Source {
    Source {
        snapshot: ID.to_owned(),
        instance: spec(1).tag,
    }
}

/// An engine with a snapshot of a running instance, which has changed since. The host takes everything at once.
fn taken() -> Fake {
    let fake = Fake::new();
    let node = node("{}");
    let calls = Calls::new(&node, &fake);
    calls.ensure(&spec(1)).unwrap();
    let write = |files: &[&str]| {
        let mut world = fake.world.borrow_mut();
        let own = world.containers.get_mut(NAME).unwrap();
        own.files = files.iter().map(|file| (*file).to_owned()).collect();
    };
    write(&FILES);
    calls.take(&target(&spec(1)), ID).unwrap();
    fake.world.borrow_mut().finish();
    write(&["/home/user/later"]);
    fake.world.borrow_mut().moved = Some(Moved::All);
    fake
}

/// Calls until the host has everything. At no point is a carrier taken for an instance, or started.
fn sent(fake: &Fake) -> Result<SnapshotState, Error> {
    let node = node("{}");
    let calls = Calls::new(&node, fake);
    for _ in 0..10 {
        let report = calls.send(&of())?;
        let world = fake.world.borrow();
        let carrier = world.containers.get(CARRIER);
        assert!(carrier.is_none_or(|carrier| !carrier.started));
        assert!(world.containers[NAME].running);
        match report.state {
            SnapshotState::Copying(_) => assert!(carrier.is_some() && world.sent.is_none()),
            state => return Ok(state),
        }
    }
    panic!("it does not end");
}

fn names(fake: &Fake) -> Vec<String> {
    fake.world.borrow().containers.keys().cloned().collect()
}

#[test]
fn the_content_of_a_snapshot_is_sent_and_leaves_nothing() {
    let fake = taken();
    let node = node("{}");
    let calls = Calls::new(&node, &fake);
    calls.send(&of()).unwrap();
    assert_eq!(names(&fake), [NAME, CARRIER]);
    // It has the labels of the instance, from its image.
    let listed = calls.list().unwrap();
    assert!(matches!(&listed[..], [one] if matches!(one.phase, Phase::Ready)));
    let seen = calls.inspect(&spec(1).tag).unwrap();
    assert!(matches!(seen.phase, Phase::Ready), "{seen:?}");
    let complete = sent(&fake).unwrap();
    assert!(matches!(complete, SnapshotState::Ready(of) if of.clonable));
    assert_eq!(fake.world.borrow().sent.as_deref().unwrap(), FILES);
    assert_eq!(names(&fake), [NAME]);
    let kept = calls.list_snapshots().unwrap();
    assert!(matches!(&kept[..], [one] if one.id == ID));
}

/// As after kill -9, or with the host's transfer in progress.
#[test]
fn everything_is_sent_after_any_failed_call_and_a_drop_removes_the_rest() {
    for killed in [true, false] {
        for when in [Break::Before, Break::After] {
            for nth in 0.. {
                let fake = taken();
                fake.break_call(nth, when);
                let mut rounds = 0;
                while sent(&fake).is_err() {
                    if killed {
                        fake.world.borrow_mut().transfer = None;
                    }
                    rounds += 1;
                    assert!(rounds < 5, "{when:?} {nth}");
                }
                let has_broken = fake.broke();
                fake.break_call(usize::MAX / 2, when);
                assert_eq!(fake.world.borrow().sent.as_deref().unwrap(), FILES);
                dropped(&fake);
                if !has_broken {
                    assert!(nth > 4, "{nth} calls");
                    break;
                }
            }
        }
    }
}

/// Drops the snapshot, and asserts that the instance alone is left.
fn dropped(fake: &Fake) {
    let node = node("{}");
    let gone = Calls::new(&node, fake).drop_snapshot(&of()).unwrap();
    assert!(matches!(gone.state, SnapshotState::Absent), "{gone:?}");
    assert_eq!(names(fake), [NAME]);
    let world = fake.world.borrow();
    assert!(world.snapshots.is_empty() && world.transfer.is_none());
}

#[test]
fn a_drop_ends_the_transfer_and_removes_the_carrier_first() {
    let fake = taken();
    fake.world.borrow_mut().moved = None;
    let node = node("{}");
    let calls = Calls::new(&node, &fake);
    for _ in 0..2 {
        let sending = calls.send(&of()).unwrap();
        assert!(matches!(sending.state, SnapshotState::Copying(_)));
    }
    assert!(fake.world.borrow().transfer.is_some());
    dropped(&fake);
    let absent = calls.send(&of()).unwrap();
    assert!(matches!(absent.state, SnapshotState::Absent), "{absent:?}");
    assert_eq!(names(&fake), [NAME]);
}

#[test]
fn content_that_cannot_be_sent_leaves_no_carrier() {
    let fake = taken();
    fake.world.borrow_mut().moved = Some(Moved::Immovable);
    let failed = sent(&fake).unwrap();
    assert!(matches!(&failed, SnapshotState::Failed(why) if why.contains("cannot move")));
    assert_eq!(names(&fake), [NAME]);
    fake.world.borrow_mut().moved = Some(Moved::Broke);
    let broke = sent(&fake).unwrap_err();
    assert!(matches!(broke, Error::Unreachable(_)), "{broke:?}");
    assert_eq!(names(&fake), [NAME]);
    // The host may not be there yet.
    fake.world.borrow_mut().takes_none = true;
    let waits = sent(&fake).unwrap_err();
    assert!(matches!(waits, Error::RetryLater(_)), "{waits:?}");
    fake.world.borrow_mut().takes_none = false;
    fake.world.borrow_mut().moved = Some(Moved::All);
    assert!(matches!(sent(&fake), Ok(SnapshotState::Ready(_))));
    assert_eq!(names(&fake), [NAME]);
}

#[test]
fn podman_sends_nothing() {
    let fake = taken();
    fake.world.borrow_mut().podman = true;
    let refused = sent(&fake).unwrap_err();
    assert!(
        matches!(&refused, Error::Unsupported(why) if why.contains("this engine")),
        "{refused:?}"
    );
    assert_eq!(names(&fake), [NAME]);
}

fn restored() -> Spec {
    Spec {
        fetched: true,
        may_exist: true,
        ..spec(1)
    }
}

/// An engine of a host that offers the content.
fn offered() -> Fake {
    let fake = Fake::new();
    fake.offer.replace(Some(FILES.map(str::to_owned).into()));
    fake.world.borrow_mut().moved = Some(Moved::All);
    fake
}

/// Acts as the host until the instance runs.
fn brought(fake: &Fake) -> Result<(), Error> {
    let node = node("{}");
    let calls = Calls::new(&node, fake);
    for _ in 0..20 {
        match calls.fetch(&restored())?.phase {
            Phase::Elsewhere(_) => {
                let world = fake.world.borrow();
                assert!(world.containers.values().all(|one| !one.started));
            }
            Phase::Creating => {
                let own = fake.world.borrow().containers[NAME].clone();
                assert!(!own.started && own.files.starts_with(&FILES.map(str::to_owned)));
                let started = calls.ensure(&restored())?;
                assert!(matches!(started.phase, Phase::Booting), "{started:?}");
                return Ok(());
            }
            // The answer to the start was lost.
            Phase::Ready => return Ok(()),
            other => panic!("{other:?}"),
        }
    }
    panic!("it does not come");
}

#[test]
fn a_restored_instance_starts_for_the_first_time_with_its_content_and_its_files() {
    for when in [Break::Before, Break::After] {
        for nth in 0.. {
            let fake = offered();
            fake.break_call(nth, when);
            let mut rounds = 0;
            while brought(&fake).is_err() {
                fake.world.borrow_mut().transfer = None;
                fake.offer.replace(Some(FILES.map(str::to_owned).into()));
                rounds += 1;
                assert!(rounds < 10, "{when:?} {nth}");
            }
            let has_broken = fake.broke();
            fake.break_call(usize::MAX / 2, when);
            assert_eq!(names(&fake), [NAME]);
            let own = fake.world.borrow().containers[NAME].clone();
            assert_eq!(own.files, [FILES[0], FILES[1], PASSWORD]);
            assert!(own.running && own.starts == 1);
            assert_eq!(own.body["Labels"]["io.wharf.grown-from"], Value::Null);
            let node = node("{}");
            let again = Calls::new(&node, &fake).ensure(&restored()).unwrap();
            assert!(matches!(again.phase, Phase::Ready), "{again:?}");
            if !has_broken {
                assert!(nth > 8, "{nth} calls");
                break;
            }
        }
    }
}

#[test]
fn nothing_is_made_in_place_of_content_that_is_absent() {
    for may_exist in [true, false] {
        let fake = offered();
        let node = node("{}");
        let wanted = Spec {
            may_exist,
            ..restored()
        };
        let absent = Calls::new(&node, &fake).ensure(&wanted).unwrap_err();
        assert!(matches!(absent, Error::NotFound), "{absent:?}");
        assert!(names(&fake).is_empty());
    }
}

#[test]
fn content_stays_where_the_engine_refuses_the_files_of_lxcfs_at_the_start() {
    let fake = offered();
    fake.world.borrow_mut().locked = true;
    let node = node("{}");
    let calls = Calls::new(&node, &fake);
    while !matches!(calls.fetch(&restored()).unwrap().phase, Phase::Creating) {}
    let failed = calls.ensure(&restored()).unwrap();
    assert!(matches!(failed.phase, Phase::Failed(_)), "{failed:?}");
    assert_eq!(names(&fake), [NAME]);
}
