//! Virtual machines: a container without capabilities, on two networks.

use crate::calls::Calls;
use crate::fake::given::{node, target, vm};
use crate::fake::{Break, Container, Fake};
use serde_json::json;
use wharf_guest::{Error, Phase, Report, Spec};

fn ensure_with(fake: &Fake, settings: &str, spec: &Spec) -> Result<Report, Error> {
    Calls::new(&node(settings), fake).ensure(spec)
}

fn made(fake: &Fake) -> Container {
    let world = fake.world.borrow();
    world.containers.values().next().unwrap().clone()
}

#[test]
fn the_container_has_no_capabilities_and_room_for_qemu() {
    let fake = Fake::new();
    fake.world.borrow_mut().kvm = true;
    let report = ensure_with(&fake, "{}", &vm(1)).unwrap();
    assert!(matches!(report.phase, Phase::Booting));
    let container = made(&fake);
    let host = &container.body["HostConfig"];
    assert_eq!(host["CapDrop"], json!(["ALL"]));
    assert_eq!(host["SecurityOpt"], json!(["no-new-privileges"]));
    let ports = json!({ "net.ipv4.ip_unprivileged_port_start": "0" });
    assert_eq!(host["Sysctls"], ports);
    let kvm = json!([{
        "PathOnHost": "/dev/kvm", "PathInContainer": "/dev/kvm", "CgroupPermissions": "rw",
    }]);
    assert_eq!(host["Devices"], kvm);
    assert_eq!(host["Memory"], (4_u64 << 30) + (384 << 20));
    assert_eq!(host["StorageOpt"]["size"], "23G");
    assert_eq!(container.others["wharf-0public"], "203.0.113.2");
    let world = fake.world.borrow();
    let public = &world.networks["wharf-0public"].1;
    assert_eq!(public["IPAM"]["Config"][0]["Gateway"], "203.0.113.1");
    let bridge = "com.docker.network.bridge.name";
    assert_eq!(public["Options"][bridge], "whf0public");
}

#[test]
fn a_node_without_kvm_gets_a_container_without_it() {
    let fake = Fake::new();
    let report = ensure_with(&fake, "{}", &vm(1)).unwrap();
    assert!(matches!(report.phase, Phase::Booting));
    assert!(made(&fake).body["HostConfig"]["Devices"].is_null());
    assert_eq!(fake.world.borrow().containers.len(), 1);
    let off = Fake::new();
    off.world.borrow_mut().kvm = true;
    ensure_with(&off, r#"{"kvm":"off"}"#, &vm(1)).unwrap();
    assert!(made(&off).body["HostConfig"]["Devices"].is_null());
}

#[test]
fn the_operators_network_is_used_and_never_created() {
    let fake = Fake::new();
    let settings = r#"{"public_network":"uplink"}"#;
    let refused = ensure_with(&fake, settings, &vm(1)).unwrap_err();
    assert!(
        matches!(&refused, Error::Invalid(e) if e.field == "settings.public_network"),
        "{refused:?}"
    );
    let uplink = (99, json!({ "Name": "uplink" }));
    fake.world
        .borrow_mut()
        .networks
        .insert("uplink".into(), uplink);
    ensure_with(&fake, settings, &vm(1)).unwrap();
    assert_eq!(made(&fake).others["uplink"], "203.0.113.2");
    let node = node(settings);
    let calls = Calls::new(&node, &fake);
    calls.delete(&target(&vm(1))).unwrap();
    let world = fake.world.borrow();
    assert_eq!(world.networks.keys().collect::<Vec<_>>(), ["uplink"]);
}

#[test]
fn ensure_continues_after_any_failed_call() {
    for nth in 0.. {
        for when in [Break::Before, Break::After] {
            let fake = Fake::new();
            fake.break_call(nth, when);
            let first = ensure_with(&fake, "{}", &vm(1));
            if !fake.broke() {
                assert!(nth > 10, "{nth} calls only");
                return;
            }
            assert!(matches!(first, Err(Error::Unreachable(_))), "{first:?}");
            let report = ensure_with(&fake, "{}", &vm(1)).unwrap();
            let up = matches!(report.phase, Phase::Booting | Phase::Ready);
            assert!(up, "{nth} {when:?}: {report:?}");
            let world = fake.world.borrow();
            assert!(world.started_bare.is_empty(), "{nth} {when:?}");
            assert_eq!((world.containers.len(), world.networks.len()), (1, 2));
            let mut all = world.containers.values();
            assert!(
                all.all(|c| c.running && c.others.len() == 1),
                "{nth} {when:?}"
            );
        }
    }
}

#[test]
fn ports_are_set_by_the_images_program() {
    let fake = Fake::new();
    ensure_with(&fake, "{}", &vm(1)).unwrap();
    let node = node("{}");
    let calls = Calls::new(&node, &fake);
    let mut target = target(&vm(1));
    target.wan_ports = vec![22, 8080];
    calls.set_ports(&target).unwrap();
    let command = ["/usr/local/sbin/wharf-vm", "set-ports", "22", "8080"];
    assert_eq!(made(&fake).programs, [command]);
    fake.world.borrow_mut().exit_code = 1;
    let failed = calls.set_ports(&target);
    assert!(matches!(failed, Err(Error::Other(_))), "{failed:?}");
}

#[test]
fn the_last_machine_removes_both_networks() {
    let fake = Fake::new();
    ensure_with(&fake, "{}", &vm(1)).unwrap();
    ensure_with(&fake, "{}", &vm(2)).unwrap();
    let node = node("{}");
    let calls = Calls::new(&node, &fake);
    calls.delete(&target(&vm(1))).unwrap();
    assert_eq!(fake.world.borrow().networks.len(), 2);
    calls.delete(&target(&vm(2))).unwrap();
    assert!(fake.world.borrow().networks.is_empty());
}
