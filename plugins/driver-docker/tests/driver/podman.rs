//! Differences of Podman.

use crate::calls::Calls;
use crate::fake::given::{node, spec, target};
use crate::fake::{Break, Fake};
use driver_docker::names;
use serde_json::Value;
use wharf_guest::{DiskGrow, Error, Phase};

const GIB: u64 = 1 << 30;

fn podman() -> Fake {
    let fake = Fake::new();
    fake.world.borrow_mut().podman = true;
    fake
}

fn limit(fake: &Fake) -> u64 {
    fake.world
        .borrow()
        .containers
        .values()
        .next()
        .unwrap()
        .limit
}

#[test]
fn a_container_whose_first_start_was_cut_is_made_again() {
    let (fake, node) = (podman(), node("{}"));
    let calls = Calls::new(&node, &fake);
    fake.world.borrow_mut().half_started = Some(names::container(&spec(1).tag));
    let made = calls.ensure(&spec(1));
    assert!(matches!(made, Err(Error::RetryLater(_))), "{made:?}");
    assert!(fake.world.borrow().containers.is_empty());
    fake.world.borrow_mut().half_started = None;
    let phase = calls.ensure(&spec(1)).unwrap().phase;
    assert!(matches!(phase, Phase::Booting), "{phase:?}");
}

#[test]
fn networks_have_no_name_server() {
    let (fake, node) = (podman(), node("{}"));
    Calls::new(&node, &fake).ensure(&spec(1)).unwrap();
    assert_eq!(fake.world.borrow().networks.len(), 1);
}

#[test]
fn public_ports_are_bound_to_no_address_in_place_of_all() {
    let bound = |fake: &Fake| {
        let node = node("{}");
        Calls::new(&node, fake).ensure(&spec(1)).unwrap();
        let world = fake.world.borrow();
        let body = &world.containers.values().next().unwrap().body;
        body["HostConfig"]["PortBindings"]["22/tcp"][0]["HostIp"].clone()
    };
    assert_eq!(bound(&podman()), Value::Null);
    assert_eq!(bound(&Fake::new()), "0.0.0.0");
}

#[test]
fn a_size_survives_a_stop() {
    let (fake, node) = (podman(), node("{}"));
    let calls = Calls::new(&node, &fake);
    calls.ensure(&spec(1)).unwrap();
    let mut target = target(&spec(1));
    target.size.mem_gib = 6;
    calls.resize(&target).unwrap();
    assert_eq!(limit(&fake), 6 * GIB);
    calls.stop(&target, 0).unwrap();
    calls.start(&target).unwrap();
    assert_eq!(limit(&fake), 6 * GIB);
    // A stopped container gets the size at its next start.
    calls.stop(&target, 0).unwrap();
    target.size.mem_gib = 3;
    calls.resize(&target).unwrap();
    calls.start(&target).unwrap();
    assert_eq!(limit(&fake), 3 * GIB);
    // Back to the size of the creation, which the engine has reported all along.
    target.size.mem_gib = spec(1).size.mem_gib;
    calls.resize(&target).unwrap();
    assert_eq!(limit(&fake), 4 * GIB);
}

#[test]
fn start_applies_the_size_after_any_failed_call() {
    for nth in 0.. {
        let (fake, node) = (podman(), node("{}"));
        let calls = Calls::new(&node, &fake);
        calls.ensure(&spec(1)).unwrap();
        let mut target = target(&spec(1));
        target.size.mem_gib = 6;
        calls.stop(&target, 0).unwrap();
        fake.break_call(nth, Break::After);
        let first = calls.start(&target);
        if !fake.broke() {
            assert!(nth > 3, "inspect, update, start, stats and update break");
            return;
        }
        assert!(matches!(first, Err(Error::Unreachable(_))), "{first:?}");
        calls.start(&target).unwrap();
        assert_eq!(limit(&fake), 6 * GIB);
    }
}

#[test]
fn a_size_below_the_usage_is_refused() {
    let (fake, node) = (podman(), node("{}"));
    let calls = Calls::new(&node, &fake);
    calls.ensure(&spec(1)).unwrap();
    let mut target = target(&spec(1));
    target.size.mem_gib = 9;
    calls.resize(&target).unwrap();
    // More than at the creation, but less than the usage: resident memory and the allowance for the
    // rest.
    target.size.mem_gib = 7;
    for resident in [7 * GIB + 1024, 7 * GIB - (100 << 20)] {
        fake.world.borrow_mut().memory_used = 7 * GIB + 1024;
        fake.world.borrow_mut().resident_kib = vec![resident >> 10];
        let refused = calls.resize(&target);
        assert!(
            matches!(&refused, Err(Error::Invalid(e)) if e.field == "mem_gib"),
            "{refused:?}"
        );
        assert_eq!(limit(&fake), 9 * GIB);
    }
    // The kernel refuses this size.
    fake.world.borrow_mut().resident_kib.clear();
    let refused = calls.resize(&target);
    assert!(
        matches!(&refused, Err(Error::Invalid(e)) if e.message.contains("more than that")),
        "{refused:?}"
    );
}

#[test]
fn page_cache_does_not_prevent_a_smaller_size() {
    let (fake, node) = (podman(), node("{}"));
    let calls = Calls::new(&node, &fake);
    calls.ensure(&spec(1)).unwrap();
    // Shared memory of 2 GiB may be full.
    fake.world.borrow_mut().memory_used = 7 * GIB / 2;
    fake.world.borrow_mut().cached = 2 * GIB;
    fake.world.borrow_mut().resident_kib = vec![1 << 19];
    let mut target = target(&spec(1));
    target.size.mem_gib = 3;
    calls.resize(&target).unwrap();
    assert_eq!(limit(&fake), 3 * GIB);
    target.size.mem_gib = 2;
    let refused = calls.resize(&target);
    assert!(matches!(&refused, Err(Error::Invalid(e)) if e.field == "mem_gib"));
}

#[test]
fn a_start_undoes_a_change_that_was_rolled_back() {
    let (fake, node) = (podman(), node("{}"));
    let calls = Calls::new(&node, &fake);
    calls.ensure(&spec(1)).unwrap();
    let mut changed = target(&spec(1));
    changed.size.mem_gib = 6;
    // The change takes effect on the engine, which reports 4 before and after.
    calls.resize(&changed).unwrap();
    assert_eq!(limit(&fake), 6 * GIB);
    calls.start(&target(&spec(1))).unwrap();
    assert_eq!(limit(&fake), 4 * GIB);
    // Memory in use by then stays until it is freed; the start fails until then.
    calls.resize(&changed).unwrap();
    fake.world.borrow_mut().memory_used = 5 * GIB;
    fake.world.borrow_mut().resident_kib = vec![5 << 20];
    let later = calls.start(&target(&spec(1)));
    assert!(matches!(later, Err(Error::Other(_))), "{later:?}");
    fake.world.borrow_mut().memory_used = GIB;
    calls.start(&target(&spec(1))).unwrap();
    assert_eq!(limit(&fake), 4 * GIB);
}

#[test]
fn page_cache_does_not_count_as_usage() {
    let (fake, node) = (podman(), node("{}"));
    let calls = Calls::new(&node, &fake);
    calls.ensure(&spec(1)).unwrap();
    let used = || calls.stats(&spec(1).tag).unwrap().mem_used_bytes;
    fake.world.borrow_mut().memory_used = 3 * GIB;
    fake.world.borrow_mut().resident_kib = vec![1 << 20, 512];
    assert_eq!(used(), GIB + (512 << 10));
    // Shared memory counts for each process, so the sum can exceed the total.
    fake.world.borrow_mut().memory_used = GIB;
    assert_eq!(used(), GIB);
}

#[test]
fn probe_reports_the_product() {
    let (fake, node) = (podman(), node("{}"));
    let calls = Calls::new(&node, &fake);
    for headless in [true, false] {
        fake.world.borrow_mut().headless = headless;
        let health = calls.probe().unwrap();
        assert_eq!(health.version, "Podman Engine 4.3.1");
    }
    let health = calls.probe().unwrap();
    assert!(health.features.live_resize && health.features.disk_grow == DiskGrow::No);
    assert!(
        !health.features.vms,
        "virtual machines are untested on Podman"
    );
    let report = calls.ensure(&spec(1)).unwrap();
    assert!(matches!(report.phase, Phase::Booting));
}

#[test]
fn a_setting_that_deadlocks_is_refused() {
    let (fake, node) = (podman(), node(r#"{ "userns": "auto" }"#));
    let refused = Calls::new(&node, &fake).probe();
    assert!(
        matches!(&refused, Err(Error::Unsupported(why)) if why.starts_with("settings.userns: ")),
        "{refused:?}"
    );
}
