//! Calls that break at any request are repeated, and end as if nothing had happened.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod busy;
mod engine;
mod ids;
mod ovn;

use driver_incus::context::Context;
use driver_incus::{delete, digest, ensure, inspect, lifecycle, names, relocate, resize};
use engine::Fake;
use serde_json::json;
use wharf_guest::fake::Host;
use wharf_guest::{
    Blueprint, Content, Error, File, Image, Network, Node, Observed, Phase, PublishedPort,
    Readiness, Report, ResourceType, Secret, Size, Spec, Tag, Target,
};

const FILE: &str = include_str!("../requests.toml");
const INSTALLATION: &str = "11111111-2222-4333-8444-555555555555";
const SETTINGS: &str =
    r#"{"member":"m1","gateway":"10.79.0.1","publish_address":"192.0.2.1","dns":"9.9.9.9"}"#;

fn node(fake: &Fake) -> Node {
    Node {
        name: "n1".into(),
        installation: INSTALLATION.into(),
        settings: if fake.ovn { ovn::SETTINGS } else { SETTINGS }.into(),
        hint: String::new(),
    }
}

fn create(fake: &Fake, spec: &Spec) -> Result<Report, Error> {
    let node = node(fake);
    let host = Host::create(FILE, &node, spec, fake);
    ensure::ensure(&Context::new(&node, &host)?, spec)
}

fn move_here(fake: &Fake, spec: &Spec) -> Result<Report, Error> {
    let node = node(fake);
    let host = Host::move_here(FILE, &node, spec, fake);
    relocate::move_here(&Context::new(&node, &host)?, spec)
}

/// Makes a call about an existing instance.
fn change(
    fake: &Fake,
    target: &Target,
    call: impl FnOnce(&Context, &Target) -> Result<Report, Error>,
) -> Result<Report, Error> {
    let node = node(fake);
    let host = Host::change(FILE, &node, target, fake);
    call(&Context::new(&node, &host)?, target)
}

fn stop(fake: &Fake, target: &Target) -> Result<Report, Error> {
    change(fake, target, |ctx, target| {
        lifecycle::stop(ctx, target, 1000)
    })
}

fn start(fake: &Fake, target: &Target) -> Result<Report, Error> {
    change(fake, target, lifecycle::start)
}

fn resize(fake: &Fake, target: &Target) -> Result<Report, Error> {
    change(fake, target, resize::resize)
}

fn delete(fake: &Fake, target: &Target) -> Result<Report, Error> {
    change(fake, target, delete::delete)
}

fn list(fake: &Fake) -> Result<Vec<Observed>, Error> {
    let node = node(fake);
    let host = Host::node(FILE, &node, fake);
    inspect::list(&Context::new(&node, &host)?)
}

fn spec() -> Spec {
    let file = |path: &str, content| File {
        path: path.into(),
        mode: 0o600,
        uid: 0,
        gid: 0,
        content,
    };
    let user = Content::Bytes(b"u\n".to_vec());
    let password = Content::SecretCrypt(Secret::Password);
    Spec {
        tag: Tag {
            instance: "00000000-0000-4000-8000-000000000001".into(),
            incarnation: 1,
        },
        generation: 3,
        resource_type: ResourceType::Container,
        hostname: "calm-river-1".into(),
        size: Size {
            n_vcpus: 2,
            mem_gib: 4,
            disk_size_gib: 20,
        },
        network: Network {
            id: "owner1".into(),
            subnet: "10.79.5.0/24".into(),
            gateway: "10.79.5.1".into(),
            address: "10.79.5.2".into(),
        },
        published: vec![PublishedPort {
            node_port: 20_001,
            instance_port: 22,
            private: false,
        }],
        public_network: None,
        wan_ports: Vec::new(),
        volumes: Vec::new(),
        gpu_devices: vec!["0000:01:00.0".into()],
        source: None,
        fetched: false,
        may_exist: false,
        blueprint: Blueprint {
            images: vec![Image {
                engine_kind: "incus".into(),
                reference: "localhost/wharf/base:1".into(),
            }],
            files: vec![
                file("/etc/wharf/first-boot/user", user),
                file("/etc/wharf/first-boot/password", password),
            ],
            environment: vec![("WHARF_FLAVOR".into(), "base".into())],
            command: Vec::new(),
            health: Readiness::Ssh,
            ssh: true,
            web_port: None,
        },
    }
}

fn target() -> Target {
    let spec = spec();
    Target {
        tag: spec.tag,
        generation: 4,
        resource_type: ResourceType::Container,
        size: spec.size,
        network: spec.network,
        public_network: None,
        wan_ports: Vec::new(),
        volumes: Vec::new(),
    }
}

#[test]
fn digests_in_configurations_keep_their_values() {
    let mut given = spec();
    assert_eq!(digest::of(&given), "f59a8f48c38f0a35");
    given.published.push(PublishedPort {
        node_port: 30_001,
        instance_port: 8888,
        private: true,
    });
    assert_eq!(digest::of(&given), "e1f4a4e8f24d797c");
}

/// Calls `ensure` as the host does, until it has no further work.
fn settle(fake: &Fake, may_exist: bool) -> Phase {
    let mut spec = spec();
    spec.may_exist = may_exist;
    settle_as(fake, &spec)
}

fn settle_as(fake: &Fake, spec: &Spec) -> Phase {
    let mut spec = spec.clone();
    for _ in 0..10 {
        match create(fake, &spec) {
            Ok(Report {
                phase,
                again_ms: None,
                ..
            }) => return phase,
            Ok(_) | Err(Error::RetryLater(_)) => {}
            Err(error) => panic!("{error:?}"),
        }
        spec.may_exist = true;
    }
    panic!("no end")
}

#[test]
fn the_instance_has_the_promised_body() {
    let fake = Fake::default();
    assert!(matches!(settle(&fake, false), Phase::Ready));
    let instances = fake.instances.borrow();
    let one = &instances[&names::instance(INSTALLATION, &spec().tag)];
    let config = &one.body["config"];
    assert_eq!(
        one.body,
        json!({
            "name": "wh-55555555-00000000-0000-4000-8000-000000000001-1",
            "type": "container",
            "source": { "type": "image", "alias": "localhost/wharf/base:1" },
            "profiles": [],
            "config": {
                "limits.cpu": "2",
                "limits.memory": "4GiB",
                "limits.processes": "4096",
                "boot.autostart": "false",
                "security.idmap.isolated": "true",
                "user.wharf.installation": INSTALLATION,
                "user.wharf.spec": config["user.wharf.spec"],
                "user.wharf.hostname": "calm-river-1",
                "user.wharf.start": "done",
                "user.wharf.restore": "none",
                "security.syscalls.deny": "ioctl errno 25 [1,37888,SCMP_CMP_MASKED_EQ,65280]",
                "user.wharf.net": "10.79.5.2/32 10.79.0.1 9.9.9.9",
                "environment.WHARF_FLAVOR": "base",
            },
            "devices": {
                "root": { "type": "disk", "path": "/", "pool": "default", "size": "20GiB" },
                "eth0": {
                    "type": "nic",
                    "name": "eth0",
                    "network": "wharf0",
                    "ipv4.address": "10.79.5.2",
                    "hwaddr": "02:42:0a:4f:05:02",
                    "security.mac_filtering": "true",
                    "security.ipv4_filtering": "true",
                    "security.ipv6_filtering": "true",
                    "security.port_isolation": "true",
                },
                "port22": {
                    "type": "proxy",
                    "nat": "true",
                    "listen": "tcp:192.0.2.1:20001",
                    "connect": "tcp:10.79.5.2:22",
                },
                "gpu0": { "type": "gpu", "gputype": "physical", "pci": "0000:01:00.0" },
            },
        })
    );
    assert_eq!(
        one.files,
        [
            "/etc/wharf",
            "/etc/wharf/first-boot",
            "/etc/wharf/first-boot/user",
            "/etc/wharf/first-boot/password"
        ]
    );
}

/// Runs `begin`, whose `nth` request breaks, then `check`, for every request and both ways to break.
fn at_every_request(begin: impl Fn(&Fake) -> Option<Error>, check: impl Fn(&Fake)) {
    at_every_request_of(Fake::default, begin, check);
}

fn at_every_request_of(
    engine: impl Fn() -> Fake,
    begin: impl Fn(&Fake) -> Option<Error>,
    check: impl Fn(&Fake),
) {
    for done in [false, true] {
        for nth in 0.. {
            let fake = engine();
            fake.break_at.set(Some((nth, done)));
            let error = begin(&fake);
            if fake.break_at.take().is_some() {
                assert!(nth > 0 && error.is_none(), "{error:?}");
                break;
            }
            assert!(nth < 100, "no end");
            check(&fake);
        }
    }
}

#[test]
fn a_creation_is_continued_after_any_break() {
    at_every_request(
        |fake| create(fake, &spec()).err(),
        |fake| {
            assert!(matches!(settle(fake, true), Phase::Ready));
            let instances = fake.instances.borrow();
            let one = instances.values().next().unwrap();
            assert!(instances.len() == 1 && one.running && one.files.len() >= 4);
            assert!(one.published, "the start was interrupted");
        },
    );
}

/// A start of an interrupted call goes on; the first start reads the files, and removes them.
#[test]
fn nothing_is_written_during_an_interrupted_start() {
    let fake = Fake::default();
    settle(&fake, false);
    for one in fake.instances.borrow_mut().values_mut() {
        one.body["config"][names::START] = names::BEGUN.into();
        one.files.clear();
        (one.running, one.has_run) = (false, false);
    }
    let mut spec = spec();
    spec.may_exist = true;
    fake.operating.set(true);
    let report = create(&fake, &spec).unwrap();
    assert!(matches!(report.phase, Phase::Booting) && report.again_ms.is_some());
    let no_files = |one: &engine::FakeInstance| one.files.is_empty();
    assert!(fake.instances.borrow().values().all(no_files));
    // The operation may be listed too late.
    fake.operating.set(false);
    fake.files_gone.set(true);
    let error = create(&fake, &spec).unwrap_err();
    assert!(matches!(error, Error::RetryLater(_)), "{error:?}");
    fake.files_gone.set(false);
    assert!(matches!(settle(&fake, true), Phase::Ready));
}

/// The engine dates a start before it runs the instance.
#[test]
fn an_instance_in_an_interrupted_start_is_not_stopped() {
    let fake = Fake::default();
    settle(&fake, false);
    let mut spec = spec();
    spec.may_exist = true;
    for one in fake.instances.borrow_mut().values_mut() {
        one.body["config"][names::START] = names::BEGUN.into();
        (one.running, one.has_run) = (false, true);
    }
    fake.operating.set(true);
    let report = create(&fake, &spec).unwrap();
    assert!(matches!(report.phase, Phase::Booting) && report.again_ms.is_some());
    fake.operating.set(false);
    // The engine has given it up, and it is repeated.
    let report = create(&fake, &spec).unwrap();
    assert!(matches!(report.phase, Phase::Booting), "{report:?}");
    assert!(matches!(settle(&fake, true), Phase::Ready));
    // A start that has ended is not repeated.
    for one in fake.instances.borrow_mut().values_mut() {
        one.running = false;
    }
    let report = create(&fake, &spec).unwrap();
    assert!(matches!(report.phase, Phase::Stopped(_)), "{report:?}");
}

/// The engine copies under another name, so that the instance is still on its old member.
#[test]
fn a_move_that_ends_between_two_looks_is_no_absence() {
    let fake = Fake::default();
    settle(&fake, false);
    fake.moving.set(true);
    let report = move_here(&fake, &spec()).unwrap();
    assert!(matches!(report.phase, Phase::Elsewhere(_)), "{report:?}");
    assert!(report.again_ms.is_some());
}

#[test]
fn a_repeated_move_waits_for_the_copy_of_an_interrupted_one() {
    let fake = Fake::default();
    settle(&fake, false);
    for one in fake.instances.borrow_mut().values_mut() {
        (one.running, one.location) = (false, "m2".into());
    }
    // The host gives a move up after some failures, and never one that goes on.
    fake.lacks_pool.set(true);
    let error = move_here(&fake, &spec()).unwrap_err();
    assert!(format!("{error:?}").contains("Storage pool"), "{error:?}");
    fake.lacks_pool.set(false);
    fake.operating.set(true);
    let report = move_here(&fake, &spec()).unwrap();
    assert!(matches!(report.phase, Phase::Elsewhere(_)), "{report:?}");
    assert!(
        fake.instances
            .borrow()
            .values()
            .all(|one| one.location == "m2")
    );
    fake.operating.set(false);
    let report = move_here(&fake, &spec()).unwrap();
    assert!(matches!(report.phase, Phase::Stopped(_)), "{report:?}");
}

#[test]
fn stop_resize_and_delete_are_repeated_after_any_break() {
    let wanted = || {
        let mut target = target();
        target.size.mem_gib = 8;
        target
    };
    let life = |fake: &Fake| {
        resize(fake, &wanted())
            .and_then(|_| stop(fake, &wanted()))
            .and_then(|_| start(fake, &wanted()))
            .and_then(|_| delete(fake, &wanted()))
    };
    at_every_request(
        |fake| {
            let at = fake.break_at.take().unwrap();
            settle(fake, false);
            fake.break_at.set(Some((fake.calls.get() + at.0, at.1)));
            life(fake).err()
        },
        |fake| {
            let gone = match life(fake) {
                Ok(report) => matches!(report.phase, Phase::Absent),
                // It was deleted.
                Err(error) => matches!(error, Error::NotFound),
            };
            assert!(gone && fake.instances.borrow().is_empty());
        },
    );
}

#[test]
fn a_start_is_completed_after_any_break() {
    at_every_request(
        |fake| {
            let at = fake.break_at.take().unwrap();
            settle(fake, false);
            stop(fake, &target()).unwrap();
            fake.break_at.set(Some((fake.calls.get() + at.0, at.1)));
            start(fake, &target()).err()
        },
        |fake| {
            let again = |_| start(fake, &target()).unwrap();
            let mut reports = (0..10).map(again);
            let report = reports.find(|report| report.again_ms.is_none()).unwrap();
            assert!(matches!(report.phase, Phase::Ready), "{report:?}");
            let instances = fake.instances.borrow();
            assert!(instances.values().all(|one| one.published));
        },
    );
}

#[test]
fn a_move_is_completed_after_any_break() {
    let mut there = spec();
    there.network.address = "10.79.6.2".into();
    at_every_request(
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
            let report = move_here(fake, &there).unwrap();
            assert!(matches!(report.phase, Phase::Stopped(_)), "{report:?}");
            for one in fake.instances.borrow().values() {
                assert!(one.location.is_empty() && !one.running);
                let port = &one.body["devices"]["port22"];
                assert_eq!(port["connect"], "tcp:10.79.6.2:22");
            }
            assert!(matches!(settle_as(fake, &there), Phase::Stopped(_)));
        },
    );
}

#[test]
fn an_instance_without_a_disk_is_made_again() {
    let fake = Fake::default();
    fake.dies_in_creation.set(true);
    assert!(matches!(settle(&fake, false), Phase::Ready));
    assert!(fake.instances.borrow().values().all(|one| one.complete));
}

#[test]
fn a_list_reads_only_what_does_not_run() {
    let fake = Fake::default();
    settle(&fake, false);
    let before = fake.calls.get();
    let listed = list(&fake).unwrap();
    assert!(matches!(listed.as_slice(), [one] if matches!(one.phase, Phase::Ready)));
    assert_eq!(fake.calls.get() - before, 2);
    stop(&fake, &target()).unwrap();
    let listed = list(&fake).unwrap();
    assert!(matches!(listed.as_slice(), [one] if matches!(one.phase, Phase::Stopped(_))));
}

#[test]
fn what_incus_cannot_do_is_unsupported() {
    let mut vm = spec();
    vm.resource_type = ResourceType::Vm;
    let mut command = spec();
    command.blueprint.command = vec!["sleep".into()];
    let mut gpu = spec();
    gpu.gpu_devices = vec!["nvidia.com/gpu=0".into()];
    for spec in [vm, command, gpu] {
        let error = create(&Fake::default(), &spec);
        assert!(matches!(error, Err(Error::Unsupported(_))), "{error:?}");
    }
}
