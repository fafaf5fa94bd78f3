//! Growth of the disk of a stopped instance.

use crate::calls::Calls;
use crate::fake::given::{node, spec, target};
use crate::fake::{Break, Fake, Moved};
use wharf_guest::{Error, Phase, Spec};

/// Creates a stopped instance with data; returns its new specification.
fn stopped(fake: &Fake) -> Spec {
    let (node, small) = (node("{}"), spec(1));
    let calls = Calls::new(&node, fake);
    calls.ensure(&small).unwrap();
    calls.stop(&target(&small), 0).unwrap();
    let mut world = fake.world.borrow_mut();
    let container = world.containers.values_mut().next().unwrap();
    container.files = vec!["/home/user/a".into(), "/home/user/b".into()];
    let mut large = small;
    large.size.disk_size_gib = 40;
    large
}

/// Asserts that there is one running container with the data and the larger disk.
fn assert_grown(fake: &Fake) {
    let world = fake.world.borrow();
    let names: Vec<_> = world.containers.keys().map(String::as_str).collect();
    assert_eq!(names, ["wharf-00000000-0000-4000-8000-000000000001"]);
    let container = world.containers.values().next().unwrap();
    assert!(container.running);
    assert_eq!(container.files, ["/home/user/a", "/home/user/b"]);
    assert_eq!(container.body["HostConfig"]["StorageOpt"]["size"], "41568M");
    assert_eq!(container.body["Labels"]["io.wharf.disk"], "40G");
}

/// Acts as the host until the instance runs. At no point may two containers run, or data be
/// missing.
fn restart(fake: &Fake, wanted: &Spec) -> Result<(), Error> {
    let node = node("{}");
    let calls = Calls::new(&node, fake);
    for _ in 0..20 {
        match calls.start(&target(wanted))?.phase {
            Phase::Growing(_) => match calls.grow(wanted)?.phase {
                Phase::Growing(_) | Phase::Stopped(_) => {}
                other => panic!("{other:?}"),
            },
            Phase::Booting | Phase::Ready => return Ok(()),
            other => panic!("{other:?}"),
        }
        let world = fake.world.borrow();
        assert!(world.containers.values().all(|one| !one.running));
        assert!(world.containers.values().any(|one| one.files.len() == 2));
    }
    panic!("the growth does not end")
}

#[test]
fn a_grown_container_gets_no_mounts_that_the_engine_refuses_at_starts() {
    let fake = Fake::new();
    fake.world.borrow_mut().locked = true;
    let large = stopped(&fake);
    fake.world.borrow_mut().moved = Some(Moved::All);
    restart(&fake, &large).unwrap();
    assert_grown(&fake);
}

#[test]
fn the_content_moves_to_a_replacement_container() {
    let fake = Fake::new();
    let wanted = stopped(&fake);
    fake.world.borrow_mut().moved = Some(Moved::All);
    restart(&fake, &wanted).unwrap();
    assert_grown(&fake);
}

#[test]
fn a_replacement_is_not_listed_and_a_stop_removes_it() {
    let fake = Fake::new();
    let wanted = stopped(&fake);
    let node = node("{}");
    let calls = Calls::new(&node, &fake);
    for _ in 0..3 {
        let report = calls.grow(&wanted).unwrap();
        assert!(matches!(report.phase, Phase::Growing(_)), "{report:?}");
    }
    assert_eq!(fake.world.borrow().containers.len(), 2);
    let listed = calls.list().unwrap();
    assert!(matches!(&listed[..], [one] if matches!(one.phase, Phase::Stopped(_))));
    let phase = calls.inspect(&wanted.tag).unwrap().phase;
    assert!(matches!(phase, Phase::Stopped(_)));
    calls.stop(&target(&wanted), 0).unwrap();
    assert_eq!(fake.world.borrow().containers.len(), 1);
    assert!(fake.world.borrow().transfer.is_none());
}

#[test]
fn a_deletion_during_growth_leaves_nothing() {
    let fake = Fake::new();
    let wanted = stopped(&fake);
    let node = node("{}");
    let calls = Calls::new(&node, &fake);
    calls.grow(&wanted).unwrap();
    calls.delete(&target(&wanted)).unwrap();
    assert!(fake.world.borrow().containers.is_empty());
    assert!(fake.world.borrow().transfer.is_none());
}

/// As after kill -9: the transfer ends with the host, and the engine's objects stay.
#[test]
fn growth_completes_after_any_failed_call() {
    for when in [Break::Before, Break::After] {
        for nth in 0.. {
            let fake = Fake::new();
            let wanted = stopped(&fake);
            fake.world.borrow_mut().moved = Some(Moved::All);
            fake.break_call(nth, when);
            let mut rounds = 0;
            while restart(&fake, &wanted).is_err() {
                fake.world.borrow_mut().transfer = None;
                rounds += 1;
                assert!(rounds < 10, "{when:?} {nth}");
            }
            assert_grown(&fake);
            if !fake.broke() {
                assert!(nth > 8, "{nth} calls");
                break;
            }
        }
    }
}

#[test]
fn a_full_node_keeps_the_old_disk_and_reports_it() {
    keeps_the_old_disk(Moved::Full);
}

#[test]
fn content_that_cannot_move_keeps_the_old_disk_and_is_reported() {
    keeps_the_old_disk(Moved::Immovable);
}

fn keeps_the_old_disk(moved: Moved) {
    let fake = Fake::new();
    let wanted = stopped(&fake);
    fake.world.borrow_mut().moved = Some(moved);
    let refused = restart(&fake, &wanted).unwrap_err();
    let Error::Insufficient(short) = &refused else {
        panic!("{refused:?}")
    };
    assert_eq!(
        (short[0].field.as_str(), short[0].available),
        ("disk_size_gib", 20)
    );
    assert_eq!(fake.world.borrow().containers.len(), 1);
    // It starts with its old size.
    restart(&fake, &spec(1)).unwrap();
}

#[test]
fn a_broken_transfer_is_repeated() {
    let fake = Fake::new();
    let wanted = stopped(&fake);
    fake.world.borrow_mut().moved = Some(Moved::Broke);
    restart(&fake, &wanted).unwrap_err();
    assert_eq!(fake.world.borrow().containers.len(), 1);
    fake.world.borrow_mut().moved = Some(Moved::All);
    restart(&fake, &wanted).unwrap();
    assert_grown(&fake);
}

#[test]
fn a_disk_without_a_limit_never_grows() {
    let fake = Fake::new();
    fake.world.borrow_mut().disk_limits = false;
    let wanted = stopped(&fake);
    restart(&fake, &wanted).unwrap();
    let world = fake.world.borrow();
    assert_eq!(world.containers.len(), 1);
    assert!(world.containers.values().all(|one| one.started));
}

#[test]
fn a_running_instance_must_be_stopped_first() {
    let fake = Fake::new();
    let node = node("{}");
    let calls = Calls::new(&node, &fake);
    calls.ensure(&spec(1)).unwrap();
    let mut larger = target(&spec(1));
    larger.size.disk_size_gib = 40;
    let refused = calls.resize(&larger).unwrap_err();
    assert!(
        matches!(&refused, Error::Invalid(wrong) if wrong.field == "disk_size_gib"
            && wrong.message.contains("stop it first")),
        "{refused:?}"
    );
}
