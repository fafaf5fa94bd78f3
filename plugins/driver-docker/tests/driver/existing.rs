//! Operations on an existing instance: stop, start, resize, delete, and the queries.

use crate::fake::given::{node, spec, target};
use crate::fake::{Break, Fake};
use driver_docker::context::Context;
use driver_docker::{delete, ensure, inspect, lifecycle, network, resize, stats};
use serde_json::json;
use wharf_guest::{Error, Node, Phase, Spec};

const GIB: u64 = 1 << 30;

/// Creates running instances of one owner.
fn running(fake: &Fake, node: &Node, instances: u8) {
    for n in 1..=instances {
        ensure::ensure(&Context::new(node, fake).unwrap(), &spec(n)).unwrap();
    }
}

#[test]
fn stop_and_start_are_idempotent_and_repeat_the_generation() {
    let (fake, node) = (Fake::new(), node("{}"));
    running(&fake, &node, 1);
    let ctx = Context::new(&node, &fake).unwrap();
    let target = target(&spec(1));
    for _ in 0..2 {
        let report = lifecycle::stop(&ctx, &target, 1500).unwrap();
        assert!(matches!(report.phase, Phase::Stopped(_)));
        assert_eq!(report.generation, target.generation);
    }
    assert!(matches!(
        lifecycle::start(&ctx, &target).unwrap().phase,
        Phase::Booting
    ));
    assert!(matches!(
        lifecycle::start(&ctx, &target).unwrap().phase,
        Phase::Ready
    ));
}

#[test]
fn a_start_applies_the_size() {
    let (fake, node) = (Fake::new(), node("{}"));
    running(&fake, &node, 1);
    let ctx = Context::new(&node, &fake).unwrap();
    let mut target = target(&spec(1));
    lifecycle::stop(&ctx, &target, 0).unwrap();
    target.size.mem_gib = 7;
    lifecycle::start(&ctx, &target).unwrap();
    let world = fake.world.borrow();
    let body = &world.containers.values().next().unwrap().body;
    assert_eq!(body["HostConfig"]["Memory"], 7 * GIB);
}

#[test]
fn start_leaves_a_container_that_never_ran_to_ensure() {
    let (fake, node) = (Fake::new(), node("{}"));
    let ctx = Context::new(&node, &fake).unwrap();
    // Breaks after the network and the image are read and the container is created.
    fake.break_call(4, Break::Before);
    ensure::ensure(&ctx, &spec(1)).unwrap_err();
    let target = target(&spec(1));
    assert!(matches!(
        lifecycle::start(&ctx, &target).unwrap().phase,
        Phase::Creating
    ));
    assert!(matches!(
        lifecycle::stop(&ctx, &target, 0).unwrap().phase,
        Phase::Stopped(_)
    ));
    assert!(fake.world.borrow().started_bare.is_empty());
}

#[test]
fn a_removed_network_is_created_again() {
    let (fake, node) = (Fake::new(), node("{}"));
    running(&fake, &node, 1);
    let ctx = Context::new(&node, &fake).unwrap();
    lifecycle::stop(&ctx, &target(&spec(1)), 0).unwrap();
    fake.world.borrow_mut().networks.clear();
    assert!(matches!(
        lifecycle::start(&ctx, &target(&spec(1))).unwrap().phase,
        Phase::Booting
    ));
}

#[test]
fn a_network_of_another_installation_is_not_used() {
    let (fake, node) = (Fake::new(), node("{}"));
    running(&fake, &node, 1);
    fake.world.borrow_mut().containers.clear();
    let ctx = Context::new(&node, &fake).unwrap();
    let foreign = Node {
        installation: "other".into(),
        ..node.clone()
    };
    let foreign = Context::new(&foreign, &fake).unwrap();
    let network = spec(1).network;
    // Its addresses are taken, under a name that has the end of the other installation's id.
    let taken = network::create(&foreign, &network);
    assert!(
        matches!(&taken, Err(Error::Insufficient(short)) if short[0].field == "lan_subnet"),
        "{taken:?}"
    );
    network::create(&ctx, &network).unwrap();
    let called = |owner: &str| {
        let mut world = fake.world.borrow_mut();
        world.networks.values_mut().next().unwrap().1["Labels"]["io.wharf.installation"] =
            owner.into();
    };
    called("other");
    assert!(matches!(
        network::create(&ctx, &network),
        Err(Error::Conflict(_))
    ));
    called(&node.installation);
    // A network made by hand, for example.
    let mut world = fake.world.borrow_mut();
    let made = &mut world.networks.values_mut().next().unwrap().1;
    made["IPAM"]["Config"][0]["Subnet"] = "10.80.1.0/28".into();
    drop(world);
    assert!(matches!(
        network::create(&ctx, &network),
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
        let ctx = Context::new(&node, &fake).unwrap();
        delete::delete(&ctx, &target(&spec(n))).unwrap();
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
    let start = |n| lifecycle::start(&Context::new(&node, &fake).unwrap(), &target(&spec(n)));
    let stop = |n| {
        let ctx = Context::new(&node, &fake).unwrap();
        lifecycle::stop(&ctx, &target(&spec(n)), 0).unwrap();
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
    let ctx = Context::new(&node, &fake).unwrap();
    let mut second = spec(2);
    second.network.id = "owner2".into();
    // The first owner's container is still there.
    for _ in 0..2 {
        assert!(matches!(
            ensure::ensure(&ctx, &second),
            Err(Error::Conflict(_))
        ));
        second.may_exist = true;
    }
    fake.world.borrow_mut().containers.clear();
    second.may_exist = false;
    let report = ensure::ensure(&ctx, &second).unwrap();
    assert!(matches!(report.phase, Phase::Booting));
    assert_eq!(fake.world.borrow().networks.len(), 1);
    delete::delete(&ctx, &target(&second)).unwrap();
    assert!(fake.world.borrow().networks.is_empty());
}

#[test]
fn delete_completes_after_any_failed_call() {
    for nth in 0.. {
        for when in [Break::Before, Break::After] {
            let (fake, node) = (Fake::new(), node("{}"));
            running(&fake, &node, 1);
            let ctx = Context::new(&node, &fake).unwrap();
            fake.break_call(nth, when);
            let first = delete::delete(&ctx, &target(&spec(1)));
            if !fake.broke() {
                assert!(nth > 4, "inspect, kill, remove, list and network break");
                return;
            }
            assert!(matches!(first, Err(Error::Unreachable(_))), "{first:?}");
            let report = delete::delete(&ctx, &target(&spec(1))).unwrap();
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
    let ctx = Context::new(&node, &fake).unwrap();
    lifecycle::stop(&ctx, &target(&spec(1)), 0).unwrap();
    delete::delete(&ctx, &target(&spec(2))).unwrap();
    assert_eq!(fake.world.borrow().networks.len(), 1);
    delete::delete(&ctx, &target(&spec(1))).unwrap();
    assert_eq!(fake.world.borrow().networks.len(), 0);
}

#[test]
fn another_incarnation_is_not_touched() {
    let (fake, node) = (Fake::new(), node("{}"));
    running(&fake, &node, 1);
    let ctx = Context::new(&node, &fake).unwrap();
    let mut earlier = target(&spec(1));
    earlier.tag.incarnation = 0;
    assert!(matches!(
        delete::delete(&ctx, &earlier).unwrap().phase,
        Phase::Absent
    ));
    assert!(matches!(
        lifecycle::stop(&ctx, &earlier, 0).unwrap().phase,
        Phase::Absent
    ));
    assert!(matches!(
        lifecycle::start(&ctx, &earlier),
        Err(Error::NotFound)
    ));
    assert!(matches!(
        inspect::inspect(&ctx, &earlier.tag).unwrap().phase,
        Phase::Absent
    ));
    assert!(matches!(
        inspect::inspect(&ctx, &spec(1).tag).unwrap().phase,
        Phase::Ready
    ));
}

#[test]
fn renamed_containers_are_found_by_their_labels() {
    let (fake, node) = (Fake::new(), node("{}"));
    running(&fake, &node, 1);
    let ctx = Context::new(&node, &fake).unwrap();
    {
        let mut world = fake.world.borrow_mut();
        let (_, container) = world.containers.pop_first().unwrap();
        world.containers.insert("pets".into(), container.clone());
        world.containers.insert("more-pets".into(), container);
    }
    let phase = || inspect::inspect(&ctx, &spec(1).tag).unwrap().phase;
    assert!(matches!(phase(), Phase::Ready));
    lifecycle::stop(&ctx, &target(&spec(1)), 0).unwrap();
    assert!(matches!(phase(), Phase::Stopped(_)));
    lifecycle::start(&ctx, &target(&spec(1))).unwrap();
    assert!(matches!(phase(), Phase::Ready));
    delete::delete(&ctx, &target(&spec(1))).unwrap();
    assert!(matches!(phase(), Phase::Absent));
    let world = fake.world.borrow();
    assert!(world.containers.is_empty() && world.networks.is_empty());
}

#[test]
fn a_renamed_container_is_not_created_twice() {
    let (fake, node) = (Fake::new(), node("{}"));
    running(&fake, &node, 1);
    let ctx = Context::new(&node, &fake).unwrap();
    {
        let mut world = fake.world.borrow_mut();
        let (_, container) = world.containers.pop_first().unwrap();
        world.containers.insert("pets".into(), container);
    }
    let again = Spec {
        may_exist: true,
        ..spec(1)
    };
    let report = ensure::ensure(&ctx, &again).unwrap();
    assert!(matches!(report.phase, Phase::Ready));
    assert_eq!(fake.world.borrow().containers.len(), 1);
}

#[test]
fn a_resize_is_all_or_nothing() {
    let (fake, node) = (Fake::new(), node("{}"));
    running(&fake, &node, 1);
    let ctx = Context::new(&node, &fake).unwrap();
    let memory = || {
        let world = fake.world.borrow();
        world.containers.values().next().unwrap().body["HostConfig"]["Memory"]
            .as_u64()
            .unwrap()
    };
    let mut target = target(&spec(1));
    target.size.mem_gib = 6;
    resize::resize(&ctx, &target).unwrap();
    assert_eq!(memory(), 6 * GIB);
    fake.world.borrow_mut().memory_used = 5 * GIB + 1;
    target.size.mem_gib = 5;
    let refused = resize::resize(&ctx, &target);
    assert!(
        matches!(&refused, Err(Error::Invalid(e)) if e.field == "mem_gib"),
        "{refused:?}"
    );
    assert_eq!(memory(), 6 * GIB);
    target.size.mem_gib = 6;
    target.size.disk_size_gib += 1;
    let refused = resize::resize(&ctx, &target);
    assert!(matches!(&refused, Err(Error::Invalid(e)) if e.field == "disk_size_gib"));
}

#[test]
fn queries_are_answered() {
    let (fake, node) = (Fake::new(), node("{}"));
    running(&fake, &node, 3);
    let ctx = Context::new(&node, &fake).unwrap();
    assert_eq!(inspect::list(&ctx).unwrap().len(), 3);
    fake.world.borrow_mut().memory_used = 42;
    let usage = stats::stats(&ctx, &spec(1).tag, true).unwrap();
    assert_eq!(
        (usage.cpu_ns, usage.mem_used_bytes, usage.disk_used_bytes),
        (77, 42, 12345)
    );
    assert_eq!(usage.at_ns % 1_000_000_000, 500_000_000);
    assert!(matches!(
        stats::stats(&ctx, &spec(9).tag, true),
        Err(Error::NotFound)
    ));
    lifecycle::stop(&ctx, &target(&spec(1)), 0).unwrap();
    assert!(matches!(
        stats::stats(&ctx, &spec(1).tag, true),
        Err(Error::Conflict(_))
    ));
    let foreign = Node {
        installation: "other".into(),
        ..node.clone()
    };
    assert!(
        inspect::list(&Context::new(&foreign, &fake).unwrap())
            .unwrap()
            .is_empty()
    );
}
