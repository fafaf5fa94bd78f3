//! Operations on an existing instance: stop, start, resize, delete, and the queries.

use crate::calls::Calls;
use crate::fake::given::{node, spec, target};
use crate::fake::{Break, Fake};
use serde_json::json;
use wharf_guest::{Error, Node, Phase, Spec};

const GIB: u64 = 1 << 30;

/// Creates running instances of one owner.
fn running(fake: &Fake, node: &Node, instances: u8) {
    for n in 1..=instances {
        Calls::new(node, fake).ensure(&spec(n)).unwrap();
    }
}

#[test]
fn stop_and_start_are_idempotent_and_repeat_the_generation() {
    let (fake, node) = (Fake::new(), node("{}"));
    running(&fake, &node, 1);
    let calls = Calls::new(&node, &fake);
    let target = target(&spec(1));
    for _ in 0..2 {
        let report = calls.stop(&target, 1500).unwrap();
        assert!(matches!(report.phase, Phase::Stopped(_)));
        assert_eq!(report.generation, target.generation);
    }
    assert!(matches!(
        calls.start(&target).unwrap().phase,
        Phase::Booting
    ));
    assert!(matches!(calls.start(&target).unwrap().phase, Phase::Ready));
}

#[test]
fn a_start_applies_the_size() {
    let (fake, node) = (Fake::new(), node("{}"));
    running(&fake, &node, 1);
    let calls = Calls::new(&node, &fake);
    let mut target = target(&spec(1));
    calls.stop(&target, 0).unwrap();
    target.size.mem_gib = 7;
    calls.start(&target).unwrap();
    let world = fake.world.borrow();
    let body = &world.containers.values().next().unwrap().body;
    assert_eq!(body["HostConfig"]["Memory"], 7 * GIB);
}

#[test]
fn start_leaves_a_container_that_never_ran_to_ensure() {
    let (fake, node) = (Fake::new(), node("{}"));
    let calls = Calls::new(&node, &fake);
    // Breaks after the network, the image and the product are read and the container is created.
    fake.break_call(5, Break::Before);
    calls.ensure(&spec(1)).unwrap_err();
    let target = target(&spec(1));
    assert!(matches!(
        calls.start(&target).unwrap().phase,
        Phase::Creating
    ));
    assert!(matches!(
        calls.stop(&target, 0).unwrap().phase,
        Phase::Stopped(_)
    ));
    assert!(fake.world.borrow().started_bare.is_empty());
}

#[test]
fn a_removed_network_is_created_again() {
    let (fake, node) = (Fake::new(), node("{}"));
    running(&fake, &node, 1);
    let calls = Calls::new(&node, &fake);
    calls.stop(&target(&spec(1)), 0).unwrap();
    fake.world.borrow_mut().networks.clear();
    assert!(matches!(
        calls.start(&target(&spec(1))).unwrap().phase,
        Phase::Booting
    ));
}

#[test]
fn a_network_of_another_installation_is_not_used() {
    let (fake, node) = (Fake::new(), node("{}"));
    running(&fake, &node, 1);
    fake.world.borrow_mut().containers.clear();
    let calls = Calls::new(&node, &fake);
    let foreign = Node {
        installation: "other".into(),
        ..node.clone()
    };
    let foreign = Calls::new(&foreign, &fake);
    // Its addresses are taken, under a name that has the end of the other installation's id.
    let taken = foreign.create_network(&target(&spec(1)));
    assert!(
        matches!(&taken, Err(Error::Insufficient(short)) if short[0].field == "lan_subnet"),
        "{taken:?}"
    );
    calls.create_network(&target(&spec(1))).unwrap();
    let called = |owner: &str| {
        let mut world = fake.world.borrow_mut();
        world.networks.values_mut().next().unwrap().1["Labels"]["io.wharf.installation"] =
            owner.into();
    };
    called("other");
    assert!(matches!(
        calls.create_network(&target(&spec(1))),
        Err(Error::Conflict(_))
    ));
    called(&node.installation);
    // A network made by hand, for example.
    let mut world = fake.world.borrow_mut();
    let made = &mut world.networks.values_mut().next().unwrap().1;
    made["IPAM"]["Config"][0]["Subnet"] = "10.80.1.0/28".into();
    drop(world);
    assert!(matches!(
        calls.create_network(&target(&spec(1))),
        Err(Error::Conflict(_))
    ));
}

#[test]
fn a_network_of_an_earlier_version_goes_on() {
    const EARLIER: &str = "wharf-n0a5000001c";
    let (fake, node) = (Fake::new(), node("{}"));
    let made = json!({
        "Name": EARLIER, "IPAM": { "Config": [{ "Subnet": "10.80.0.0/28" }] },
        "Labels": { "io.wharf.installation": node.installation, "io.wharf.owner": "owner1" },
    });
    fake.world
        .borrow_mut()
        .networks
        .insert(EARLIER.into(), (7, made));
    running(&fake, &node, 2);
    for container in fake.world.borrow().containers.values() {
        assert_eq!(container.body["HostConfig"]["NetworkMode"], EARLIER);
        assert_eq!(container.network, Some(7));
    }
    for n in 1..=2 {
        assert_eq!(fake.world.borrow().networks.len(), 1);
        let calls = Calls::new(&node, &fake);
        calls.delete(&target(&spec(n))).unwrap();
    }
    assert!(fake.world.borrow().networks.is_empty());
    running(&fake, &node, 1);
    let names: Vec<_> = fake.world.borrow().networks.keys().cloned().collect();
    assert_eq!(names, ["wharf-n0a500000555"]);
}

#[test]
fn a_network_whose_bridge_has_vanished_is_made_again() {
    let (fake, node) = (Fake::new(), node("{}"));
    running(&fake, &node, 2);
    let start = |n| Calls::new(&node, &fake).start(&target(&spec(n)));
    let stop = |n| {
        let calls = Calls::new(&node, &fake);
        calls.stop(&target(&spec(n)), 0).unwrap();
    };
    stop(1);
    fake.world.borrow_mut().no_bridge = true;
    // The other instance runs on the network, so the engine keeps it.
    assert!(matches!(start(1), Err(Error::Conflict(why)) if why.contains("once they are stopped")));
    stop(2);
    for n in [1, 2] {
        assert!(matches!(start(n).unwrap().phase, Phase::Booting));
    }
    assert!(!fake.world.borrow().no_bridge);
}

#[test]
fn a_leftover_network_serves_its_next_owner() {
    let (fake, node) = (Fake::new(), node("{}"));
    running(&fake, &node, 1);
    let calls = Calls::new(&node, &fake);
    let mut second = spec(2);
    second.network.id = "owner2".into();
    // The first owner's container is still there.
    for _ in 0..2 {
        assert!(matches!(calls.ensure(&second), Err(Error::Conflict(_))));
        second.may_exist = true;
    }
    fake.world.borrow_mut().containers.clear();
    second.may_exist = false;
    let report = calls.ensure(&second).unwrap();
    assert!(matches!(report.phase, Phase::Booting));
    assert_eq!(fake.world.borrow().networks.len(), 1);
    calls.delete(&target(&second)).unwrap();
    assert!(fake.world.borrow().networks.is_empty());
}

#[test]
fn delete_completes_after_any_failed_call() {
    for nth in 0.. {
        for when in [Break::Before, Break::After] {
            let (fake, node) = (Fake::new(), node("{}"));
            running(&fake, &node, 1);
            let calls = Calls::new(&node, &fake);
            fake.break_call(nth, when);
            let first = calls.delete(&target(&spec(1)));
            if !fake.broke() {
                assert!(nth > 4, "inspect, kill, remove, list and network break");
                return;
            }
            assert!(matches!(first, Err(Error::Unreachable(_))), "{first:?}");
            let report = calls.delete(&target(&spec(1))).unwrap();
            assert!(matches!(report.phase, Phase::Absent));
            let world = fake.world.borrow();
            assert!(
                world.containers.is_empty() && world.networks.is_empty(),
                "{nth} {when:?}"
            );
        }
    }
}

#[test]
fn a_network_stays_while_a_stopped_instance_belongs_to_it() {
    let (fake, node) = (Fake::new(), node("{}"));
    running(&fake, &node, 2);
    let calls = Calls::new(&node, &fake);
    calls.stop(&target(&spec(1)), 0).unwrap();
    calls.delete(&target(&spec(2))).unwrap();
    assert_eq!(fake.world.borrow().networks.len(), 1);
    calls.delete(&target(&spec(1))).unwrap();
    assert_eq!(fake.world.borrow().networks.len(), 0);
}

#[test]
fn another_incarnation_is_not_touched() {
    let (fake, node) = (Fake::new(), node("{}"));
    running(&fake, &node, 1);
    let calls = Calls::new(&node, &fake);
    let mut earlier = target(&spec(1));
    earlier.tag.incarnation = 0;
    assert!(matches!(
        calls.delete(&earlier).unwrap().phase,
        Phase::Absent
    ));
    assert!(matches!(
        calls.stop(&earlier, 0).unwrap().phase,
        Phase::Absent
    ));
    assert!(matches!(calls.start(&earlier), Err(Error::NotFound)));
    assert!(matches!(
        calls.inspect(&earlier.tag).unwrap().phase,
        Phase::Absent
    ));
    assert!(matches!(
        calls.inspect(&spec(1).tag).unwrap().phase,
        Phase::Ready
    ));
}

#[test]
fn renamed_containers_are_found_by_their_labels() {
    let (fake, node) = (Fake::new(), node("{}"));
    running(&fake, &node, 1);
    let calls = Calls::new(&node, &fake);
    {
        let mut world = fake.world.borrow_mut();
        let (_, container) = world.containers.pop_first().unwrap();
        world.containers.insert("pets".into(), container.clone());
        world.containers.insert("more-pets".into(), container);
    }
    let phase = || calls.inspect(&spec(1).tag).unwrap().phase;
    assert!(matches!(phase(), Phase::Ready));
    calls.stop(&target(&spec(1)), 0).unwrap();
    assert!(matches!(phase(), Phase::Stopped(_)));
    calls.start(&target(&spec(1))).unwrap();
    assert!(matches!(phase(), Phase::Ready));
    calls.delete(&target(&spec(1))).unwrap();
    assert!(matches!(phase(), Phase::Absent));
    let world = fake.world.borrow();
    assert!(world.containers.is_empty() && world.networks.is_empty());
}

#[test]
fn a_renamed_container_is_not_created_twice() {
    let (fake, node) = (Fake::new(), node("{}"));
    running(&fake, &node, 1);
    let calls = Calls::new(&node, &fake);
    {
        let mut world = fake.world.borrow_mut();
        let (_, container) = world.containers.pop_first().unwrap();
        world.containers.insert("pets".into(), container);
    }
    let again = Spec {
        may_exist: true,
        ..spec(1)
    };
    let report = calls.ensure(&again).unwrap();
    assert!(matches!(report.phase, Phase::Ready));
    assert_eq!(fake.world.borrow().containers.len(), 1);
}

#[test]
fn a_resize_is_all_or_nothing() {
    let (fake, node) = (Fake::new(), node("{}"));
    running(&fake, &node, 1);
    let calls = Calls::new(&node, &fake);
    let memory = || {
        let world = fake.world.borrow();
        world.containers.values().next().unwrap().body["HostConfig"]["Memory"]
            .as_u64()
            .unwrap()
    };
    let mut target = target(&spec(1));
    target.size.mem_gib = 6;
    calls.resize(&target).unwrap();
    assert_eq!(memory(), 6 * GIB);
    fake.world.borrow_mut().memory_used = 5 * GIB + 1;
    target.size.mem_gib = 5;
    let refused = calls.resize(&target);
    assert!(
        matches!(&refused, Err(Error::Invalid(e)) if e.field == "mem_gib"),
        "{refused:?}"
    );
    assert_eq!(memory(), 6 * GIB);
    target.size.mem_gib = 6;
    target.size.disk_size_gib += 1;
    let refused = calls.resize(&target);
    assert!(matches!(&refused, Err(Error::Invalid(e)) if e.field == "disk_size_gib"));
}

#[test]
fn queries_are_answered() {
    let (fake, node) = (Fake::new(), node("{}"));
    running(&fake, &node, 3);
    let calls = Calls::new(&node, &fake);
    assert_eq!(calls.list().unwrap().len(), 3);
    fake.world.borrow_mut().memory_used = 42;
    let usage = calls.stats(&spec(1).tag).unwrap();
    assert_eq!(
        (usage.cpu_ns, usage.mem_used_bytes, usage.disk_used_bytes),
        (77, 42, 12345)
    );
    assert_eq!(usage.at_ns % 1_000_000_000, 500_000_000);
    assert!(matches!(calls.stats(&spec(9).tag), Err(Error::NotFound)));
    calls.stop(&target(&spec(1)), 0).unwrap();
    assert!(matches!(calls.stats(&spec(1).tag), Err(Error::Conflict(_))));
    let foreign = Node {
        installation: "other".into(),
        ..node.clone()
    };
    assert!(Calls::new(&foreign, &fake).list().unwrap().is_empty());
}
