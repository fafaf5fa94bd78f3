//! A larger disk for an instance that does not run.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod fake;

use driver_docker::context::Context;
use driver_docker::{delete, ensure, grow, inspect, lifecycle, resize};
use fake::given::{node, spec, target};
use fake::{Break, Fake, Moved};
use wharf_guest::{Error, Phase, Spec};

/// A stopped instance with data, and what it is to be.
fn stopped(fake: &Fake) -> Spec {
    let (node, small) = (node("{}"), spec(1));
    let ctx = Context::new(&node, fake).unwrap();
    ensure::ensure(&ctx, &small).unwrap();
    lifecycle::stop(&ctx, &target(&small), 0).unwrap();
    let mut world = fake.world.borrow_mut();
    let container = world.containers.values_mut().next().unwrap();
    container.files = vec!["/home/user/a".into(), "/home/user/b".into()];
    let mut large = small;
    large.size.disk_size_gib = 40;
    large
}

/// One container, running, with the data and the larger disk.
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

/// What the host does until it runs; never are there two that run, and never less than all data.
fn restart(fake: &Fake, wanted: &Spec) -> Result<(), Error> {
    let node = node("{}");
    let ctx = Context::new(&node, fake).unwrap();
    for _ in 0..20 {
        match lifecycle::start(&ctx, &target(wanted))?.phase {
            Phase::Growing(_) => match grow::grow(&ctx, wanted)?.phase {
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
    panic!("it does not come to an end")
}

#[test]
fn its_content_moves_to_a_container_that_takes_its_place() {
    let fake = Fake::new();
    let wanted = stopped(&fake);
    fake.world.borrow_mut().moved = Some(Moved::All);
    restart(&fake, &wanted).unwrap();
    assert_grown(&fake);
}

#[test]
fn what_is_on_the_way_is_no_second_instance_and_is_given_up_with_a_stop() {
    let fake = Fake::new();
    let wanted = stopped(&fake);
    let node = node("{}");
    let ctx = Context::new(&node, &fake).unwrap();
    for _ in 0..3 {
        let report = grow::grow(&ctx, &wanted).unwrap();
        assert!(matches!(report.phase, Phase::Growing(_)), "{report:?}");
    }
    assert_eq!(fake.world.borrow().containers.len(), 2);
    let listed = inspect::list(&ctx).unwrap();
    assert!(matches!(&listed[..], [one] if matches!(one.phase, Phase::Stopped(_))));
    let phase = inspect::inspect(&ctx, &wanted.tag).unwrap().phase;
    assert!(matches!(phase, Phase::Stopped(_)));
    lifecycle::stop(&ctx, &target(&wanted), 0).unwrap();
    assert_eq!(fake.world.borrow().containers.len(), 1);
    assert!(fake.world.borrow().transfer.is_none());
}

#[test]
fn a_deletion_on_the_way_leaves_nothing() {
    let fake = Fake::new();
    let wanted = stopped(&fake);
    let node = node("{}");
    let ctx = Context::new(&node, &fake).unwrap();
    grow::grow(&ctx, &wanted).unwrap();
    delete::delete(&ctx, &target(&wanted)).unwrap();
    assert!(fake.world.borrow().containers.is_empty());
    assert!(fake.world.borrow().transfer.is_none());
}

/// As after kill -9: the transfer is gone with the host, what the engine has stays.
#[test]
fn whichever_call_breaks_it_ends_grown_and_whole() {
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
fn without_room_it_keeps_the_disk_it_has_and_says_so() {
    let fake = Fake::new();
    let wanted = stopped(&fake);
    fake.world.borrow_mut().moved = Some(Moved::Full);
    let refused = restart(&fake, &wanted).unwrap_err();
    let Error::Insufficient(short) = &refused else {
        panic!("{refused:?}")
    };
    assert_eq!(
        (short[0].field.as_str(), short[0].available),
        ("disk_size_gib", 20)
    );
    assert_eq!(fake.world.borrow().containers.len(), 1);
    // At its old size it starts.
    restart(&fake, &spec(1)).unwrap();
}

#[test]
fn a_transfer_that_broke_is_begun_anew() {
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
fn a_disk_without_a_limit_is_as_large_as_it_is() {
    let fake = Fake::new();
    fake.world.borrow_mut().disk_limits = false;
    let wanted = stopped(&fake);
    restart(&fake, &wanted).unwrap();
    let world = fake.world.borrow();
    assert_eq!(world.containers.len(), 1);
    assert!(world.containers.values().all(|one| one.started));
}

#[test]
fn one_that_runs_says_to_stop_it_first() {
    let fake = Fake::new();
    let node = node("{}");
    let ctx = Context::new(&node, &fake).unwrap();
    ensure::ensure(&ctx, &spec(1)).unwrap();
    let mut larger = target(&spec(1));
    larger.size.disk_size_gib = 40;
    let refused = resize::resize(&ctx, &larger).unwrap_err();
    assert!(
        matches!(&refused, Error::Invalid(wrong) if wrong.field == "disk_size_gib"
            && wrong.message.contains("stop it first")),
        "{refused:?}"
    );
}
