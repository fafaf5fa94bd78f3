//! OVN mode: the network of the owner and the forwards of the ports come and go with the instance.

use super::engine::{Fake, FakeNetwork};
use super::{
    INSTALLATION, at_every_request_of, create, delete, move_here, settle, settle_as, spec, stop,
    target,
};
use driver_incus::names;
use serde_json::{Value, json};
use wharf_guest::{Error, Phase, Report, Target};

pub const SETTINGS: &str = r#"{"member":"m1","uplink":"up0","acl":"rules","dns":"9.9.9.9",
    "publish_cidr":"198.18.40.128/26","publish_from":20000}"#;
const NETWORK: &str = "wh-55555555-10.79.5.1";
const ADDRESS: &str = "198.18.40.129";

fn fake() -> Fake {
    Fake {
        ovn: true,
        ..Fake::default()
    }
}

fn network() -> Value {
    json!({
        "name": NETWORK,
        "type": "ovn",
        "config": {
            "network": "up0",
            "ipv4.address": "10.79.5.1/24",
            "ipv4.nat": "true",
            "ipv6.address": "none",
            "security.acls": "rules",
            "user.wharf.owner": "owner1",
        },
    })
}

fn forward(address: &str) -> Value {
    json!({
        "listen_address": ADDRESS,
        "config": { "user.wharf.instance": names::instance(INSTALLATION, &spec().tag) },
        "ports": [{
            "protocol": "tcp",
            "listen_port": "20001",
            "target_port": "22",
            "target_address": address,
        }],
    })
}

/// The engine has the instance, its network and its only forward.
fn is_whole(fake: &Fake, network: &str, address: &str) {
    let (instances, networks) = (fake.instances.borrow(), fake.networks.borrow());
    assert_eq!((instances.len(), networks.len()), (1, 1));
    let nic = &instances.values().next().unwrap().body["devices"]["eth0"];
    assert_eq!(
        (&nic["network"], &nic["ipv4.address"]),
        (&json!(network), &json!(address))
    );
    let forwards = &networks[network].forwards;
    assert_eq!(forwards.values().collect::<Vec<_>>(), [&forward(address)]);
}

fn is_empty(fake: &Fake) -> bool {
    fake.instances.borrow().is_empty() && fake.networks.borrow().is_empty()
}

#[test]
fn the_instance_has_the_promised_bodies() {
    let fake = fake();
    assert!(matches!(settle(&fake, false), Phase::Ready));
    is_whole(&fake, NETWORK, "10.79.5.2");
    assert_eq!(fake.networks.borrow()[NETWORK].body, network());
    let instances = fake.instances.borrow();
    let body = &instances.values().next().unwrap().body;
    assert_eq!(
        body["config"]["user.wharf.net"],
        "10.79.5.2/24 10.79.5.1 9.9.9.9"
    );
    assert_eq!(
        body["devices"],
        json!({
            "root": { "type": "disk", "path": "/", "pool": "default", "size": "20GiB" },
            "eth0": {
                "type": "nic",
                "name": "eth0",
                "network": NETWORK,
                "ipv4.address": "10.79.5.2",
                "hwaddr": "02:42:0a:4f:05:02",
            },
            "gpu0": { "type": "gpu", "gputype": "physical", "pci": "0000:01:00.0" },
        })
    );
}

#[test]
fn a_creation_is_continued_after_any_break() {
    at_every_request_of(
        fake,
        |fake| create(fake, &spec()).err(),
        |fake| {
            assert!(matches!(settle(fake, true), Phase::Ready));
            is_whole(fake, NETWORK, "10.79.5.2");
        },
    );
}

#[test]
fn a_deletion_is_completed_after_any_break() {
    let remove = |fake: &Fake| delete(fake, &target());
    at_every_request_of(
        fake,
        |fake| {
            let at = fake.break_at.take().unwrap();
            settle(fake, false);
            fake.break_at.set(Some((fake.calls.get() + at.0, at.1)));
            remove(fake).err()
        },
        |fake| {
            assert!(matches!(remove(fake).unwrap().phase, Phase::Absent));
            assert!(is_empty(fake));
        },
    );
}

#[test]
fn a_network_with_another_instance_stays() {
    let fake = fake();
    settle(&fake, false);
    let mut other = spec();
    other.tag.instance = "00000000-0000-4000-8000-000000000002".into();
    other.network.address = "10.79.5.3".into();
    other.published[0].node_port = 20_002;
    settle_as(&fake, &other);
    let of_other = names::instance(INSTALLATION, &other.tag);
    delete(&fake, &target()).unwrap();
    assert_eq!(
        fake.instances.borrow().keys().collect::<Vec<_>>(),
        [&of_other]
    );
    let networks = fake.networks.borrow();
    let left: Vec<_> = networks[NETWORK].forwards.values().collect();
    assert!(left.len() == 1 && left[0]["config"]["user.wharf.instance"] == of_other);
}

#[test]
fn an_orphan_goes_with_its_forwards() {
    let fake = fake();
    settle(&fake, false);
    let mut orphan: Target = target();
    orphan.network.gateway = "0.0.0.0".into();
    delete(&fake, &orphan).unwrap();
    assert!(is_empty(&fake));
}

/// Puts a network with this change in place of the owner's.
fn with_network(change: impl FnOnce(&mut FakeNetwork)) -> Fake {
    let fake = fake();
    let mut found = FakeNetwork {
        body: network(),
        ..FakeNetwork::default()
    };
    change(&mut found);
    fake.networks.borrow_mut().insert(NETWORK.into(), found);
    fake
}

#[test]
fn a_broken_network_and_that_of_a_former_owner_are_replaced() {
    for fake in [
        with_network(|found| found.status = "Errored".into()),
        with_network(|found| found.body["config"]["user.wharf.owner"] = "owner0".into()),
        with_network(|found| found.body["config"]["security.acls"] = "open".into()),
    ] {
        assert!(matches!(settle(&fake, false), Phase::Ready));
        is_whole(&fake, NETWORK, "10.79.5.2");
        assert_eq!(fake.networks.borrow()[NETWORK].body, network());
    }
}

#[test]
fn a_network_in_creation_and_one_in_use_are_waited_for() {
    let pending = with_network(|found| found.status = "Pending".into());
    let foreign = with_network(|found| found.body["config"]["user.wharf.owner"] = "owner0".into());
    let nic = json!({ "devices": { "eth0": { "network": NETWORK } } });
    let user = super::engine::FakeInstance {
        body: nic,
        ..Default::default()
    };
    foreign.instances.borrow_mut().insert("other".into(), user);
    for fake in [pending, foreign] {
        let result = create(&fake, &spec());
        assert!(matches!(result, Err(Error::RetryLater(_))), "{result:?}");
    }
}

#[test]
fn an_address_of_another_network_is_a_conflict() {
    let fake = fake();
    let mut other = FakeNetwork::default();
    other.forwards.insert(ADDRESS.into(), json!({}));
    fake.networks.borrow_mut().insert("other".into(), other);
    let result = create(&fake, &spec());
    assert!(
        matches!(&result, Err(Error::Insufficient(short)) if short[0].field == "node_port"),
        "{result:?}"
    );
    assert!(fake.instances.borrow().values().all(|one| !one.running));
}

#[test]
fn a_move_is_completed_after_any_break() {
    let mut there = spec();
    there.network.address = "10.79.6.2".into();
    there.network.gateway = "10.79.6.1".into();
    there.network.subnet = "10.79.6.0/24".into();
    for there in [spec(), there] {
        at_every_request_of(
            fake,
            |fake| {
                let at = fake.break_at.take().unwrap();
                settle(fake, false);
                stop(fake, &target()).unwrap();
                for one in fake.instances.borrow_mut().values_mut() {
                    one.location = "m2".into();
                }
                fake.break_at.set(Some((fake.calls.get() + at.0, at.1)));
                move_here(fake, &there).err()
            },
            |fake| {
                let report: Report = move_here(fake, &there).unwrap();
                assert!(matches!(report.phase, Phase::Stopped(_)), "{report:?}");
                let network = names::network(INSTALLATION, &there.network.gateway);
                let mut networks = fake.networks.borrow_mut();
                // The old network may stay, without forwards.
                networks.retain(|name, one| *name == network || !one.forwards.is_empty());
                drop(networks);
                is_whole(fake, &network, &there.network.address);
                assert!(matches!(settle_as(fake, &there), Phase::Stopped(_)));
            },
        );
    }
}
