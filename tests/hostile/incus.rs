//! A driver for Incus that asks for what it must not have.

use crate::engine::AskedRequest;
use crate::requests::attack;

/// The requests of the call that creates the instance.
const OF_CREATION: &[&str] = &[
    "send create DIGEST -> sent: 500",
    "send write-file file=/etc/wharf/first-boot/user -> sent: 500",
    "send start -> sent: 500",
    "show create DIGEST -> written: POST /1.0/instances?project=wharf&target=m1 ",
    "send exec -> refused: ",
    "send write-mark -> refused: write-mark",
    "send move-here -> refused: move-here",
    "send readdress DIGEST -> refused: readdress",
    "send images -> refused: images",
    // Volumes: those of other calls and of other owners, and other devices.
    "send create-volume -> refused: create-volume",
    "send delete-volume -> refused: delete-volume",
    "send attach source=/ -> refused: attach: there is no argument",
    "send detach device=root -> refused: detach: argument device",
    "job create DIGEST -> refused: create",
    "transfer create DIGEST -> refused: ",
    // Files that the blueprint does not have.
    "send write-file file=/etc/passwd -> refused: write-file: argument file",
    "send write-file file=/etc/wharf/../passwd -> refused: write-file: argument file",
    "send write-file -> refused: write-file: argument file",
    "send make-directory directory=/etc/cron.d -> refused: make-directory: argument directory",
    // Ids that the engine has not told in this call.
    "send wait operation=00000000-0000-4000-8000-00000000000f -> refused: wait: argument operation",
    "send read-listed instance=another -> refused: read-listed: argument instance",
    // Networks of other owners, and those of OVN mode.
    "send delete-network network=wharf0 -> refused: delete-network: argument network",
    "send delete-network network=wh-00000000-10.99.0.1 -> refused: delete-network: argument network",
    "send create-network -> refused: create-network",
    "send create-forward port=22 -> refused: create-forward: argument port",
    // Values outside the arguments' sets.
    "send create digest=0123456789ABCDEF -> refused: create: argument digest",
    "send choose-ids isolated=false -> refused: choose-ids: argument isolated",
    "send stop grace=3601 -> refused: stop: argument grace",
    "send create DIGEST raw.lxc=x -> refused: create: ",
    "send create DIGEST environment.LD_PRELOAD=/x.so -> refused: create: ",
];

/// Those of a call that reads the instance.
const OF_STATS: &[&str] = &[
    "send usage -> sent: 500",
    "send delete -> refused: delete",
    "send kill -> refused: kill",
    "send write-file file=/etc/wharf/first-boot/user -> refused: write-file",
];

/// Those of a call about the node.
const OF_PROBE: &[&str] = &[
    "send disks -> sent: 500",
    "send read -> refused: read",
    "send read-listed instance=another -> refused: read-listed: argument instance",
    "send delete -> refused: delete",
];

/// The requests in OVN mode of the call that creates the instance.
const OVN_OF_CREATION: &[&str] = &[
    "send create-network -> sent: 500",
    "show create-forward port=22 -> refused: create-forward: argument port",
    "send create-forward port=1 -> refused: create-forward: argument port",
    "send create-forward port=0 -> refused: create-forward: argument port",
    "send create-forward -> refused: create-forward: argument port",
    "send delete-forward address=198.18.0.1 -> refused: delete-forward: argument address",
    "send delete-network network=up0 -> refused: delete-network: argument network",
    "send forwards network=wh-00000000-10.99.0.1 -> refused: forwards: argument network",
];

#[test]
fn a_driver_for_incus_gets_the_requests_of_its_call_alone() {
    let bridge = "member = \"m1\", gateway = \"10.80.0.1\", publish_address = \"192.0.2.10\", ";
    let (asked, id) = attack("incus", bridge, [OF_PROBE, OF_CREATION, OF_STATS]);
    let own = |asked: &AskedRequest| asked.line.contains(&id);
    let creation = "POST /1.0/instances?project=wharf&target=m1 ";
    let lines = [
        "GET /1.0/storage-pools/default/volumes/container?",
        creation,
    ];
    for asked in &asked {
        let allowed = lines.iter().any(|line| asked.line.starts_with(line)) || own(asked);
        assert!(allowed, "{asked:?}");
    }
    let creation = asked.iter().find(|asked| asked.line.starts_with(creation));
    let config = &creation.unwrap().body["config"];
    assert_eq!(config["security.idmap.isolated"], "true");
    assert!(config.get("raw.lxc").is_none());
}

#[test]
fn a_driver_for_incus_gets_the_network_of_its_owner_alone() {
    let ovn = "member = \"m1\", uplink = \"up0\", acl = \"rules\", dns = \"9.9.9.9\", \
               publish_cidr = \"198.18.0.0/16\", publish_from = 0, ";
    let (asked, _) = attack("incus", ovn, [&[], OVN_OF_CREATION, &[]]);
    assert!(!asked.is_empty());
    for asked in &asked {
        let config = &asked.body["config"];
        assert_eq!(asked.line, "POST /1.0/networks?project=wharf HTTP/1.1");
        assert_eq!(config["network"], "up0");
        assert_eq!(config["security.acls"], "rules");
    }
}
