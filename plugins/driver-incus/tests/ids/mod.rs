//! Instances of a member share no ids.

use super::*;

/// Another instance of the node.
fn other() -> Spec {
    let mut other = spec();
    other.tag.instance = "00000000-0000-4000-8000-000000000002".into();
    other.network.address = "10.79.5.3".into();
    other
}

/// Incus stores a range after it has released the lock of the choice. The engine of the tests refuses to start
/// an instance with the ids of another one.
#[test]
fn instances_that_got_one_range_of_ids_get_others_before_they_start() {
    let fake = Fake::default();
    fake.rivals.set(3);
    settle_as(&fake, &other());
    assert!(matches!(settle(&fake, false), Phase::Ready));
    assert_eq!(fake.rivals.get(), 0, "another choice was not compared");
    at_every_request(
        |fake| {
            fake.rivals.set(1);
            let mut spec = spec();
            let first = create(fake, &spec).err();
            spec.may_exist = true;
            first.or_else(|| create(fake, &spec).err())
        },
        |fake| assert!(matches!(settle(fake, true), Phase::Ready)),
    );
}

/// A move keeps the range of the member that the instance leaves.
#[test]
fn a_moved_instance_gets_other_ids_if_an_instance_of_the_member_has_its_own() {
    let moved = |fake: &Fake| move_here(fake, &spec());
    at_every_request(
        |fake| {
            let at = fake.break_at.take().unwrap();
            settle(fake, false);
            stop(fake, &target()).unwrap();
            settle_as(fake, &other());
            let base = names::instance(INSTALLATION, &other().tag);
            let base = fake.instances.borrow()[&base].base;
            let mut instances = fake.instances.borrow_mut();
            let name = names::instance(INSTALLATION, &spec().tag);
            let one = instances.get_mut(&name).unwrap();
            (one.location, one.base) = ("m2".into(), base);
            drop(instances);
            fake.break_at.set(Some((fake.calls.get() + at.0, at.1)));
            match moved(fake) {
                Err(Error::RetryLater(_)) => moved(fake).err(),
                ended => ended.err(),
            }
        },
        |fake| {
            let report = (0..10).find_map(|_| moved(fake).ok()).unwrap();
            assert!(matches!(report.phase, Phase::Stopped(_)), "{report:?}");
            start(fake, &target()).unwrap();
            assert!(fake.instances.borrow().values().all(|one| one.running));
        },
    );
}
