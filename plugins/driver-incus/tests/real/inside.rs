//! The inside of an instance.

use crate::given::{INSTALLATION, Rig, spec};
use driver_incus::names;

pub fn view(rig: &mut Rig) {
    let one = spec(1);
    assert_eq!(rig.run(&one, "hostname").trim(), "calm-river-1");
    assert_eq!(rig.run(&one, "cat /etc/hostname").trim(), "calm-river-1");
    assert_eq!(rig.run(&one, "nproc").trim(), "1");
    let memory = rig.run(&one, "free --mebi | awk '/^Mem/ {print $2}'");
    assert_eq!(memory.trim(), "1024", "an instance sees its own memory");
    assert!(
        rig.run(&one, "cat /etc/resolv.conf")
            .contains("nameserver 10.79.0.1")
    );
    assert!(
        rig.run(&one, "getent passwd river")
            .starts_with("river:x:1000:")
    );
    // The first start has removed the secrets.
    assert_eq!(rig.run(&one, "ls -A /etc/wharf").trim(), "environment\nnet");
    assert!(
        rig.run(&one, "tr '\\0' '\\n' </proc/1/environ")
            .contains("WHARF_FLAVOR=base")
    );
    assert!(
        rig.run(&one, "tr '\\0' '\\n' </proc/1/environ")
            .contains("LANG=C.UTF-8")
    );
}

pub fn isolation(rig: &mut Rig) {
    let (one, two) = (spec(1), spec(2));
    rig.make(0, &two);
    // Root of an instance is an account without rights on the node, and another one for each.
    let map = |spec| rig.run(spec, "cat /proc/self/uid_map");
    let first = |map: String| map.split_whitespace().nth(1).unwrap().to_owned();
    let (one_root, two_root) = (first(map(&one)), first(map(&two)));
    assert!(
        one_root != "0" && one_root != two_root,
        "{one_root} {two_root}"
    );
    // Addresses of the machines, and of other instances, are out of reach.
    let members = rig.cluster.members();
    let closed = [
        format!("{}/8443", members[0].address()),
        format!("{}/8443", members[1].address()),
        "10.79.0.1/8443".to_owned(),
        format!("{}/22", two.network.address),
        "169.254.169.254/80".to_owned(),
    ];
    for address in closed {
        let command = format!("timeout 2 bash -c '</dev/tcp/{address}' && echo open");
        assert!(!rig.run(&one, &command).contains("open"), "{address}");
    }
    assert!(
        rig.run(
            &two,
            "timeout 2 bash -c '</dev/tcp/127.0.0.1/22' && echo open"
        )
        .contains("open")
    );
    // An address of another instance carries no packets.
    let command = format!(
        "ip address add {}/32 dev eth0; ping -c1 -W1 -I {} 10.79.0.1",
        two.network.address, two.network.address
    );
    assert!(!rig.run(&one, &command).contains("1 received"));
    rig.run(
        &one,
        &format!("ip address delete {}/32 dev eth0", two.network.address),
    );
    crate::failures::remove(rig, 0, 2);
    // The certificate of the node is confined to its project.
    let path = format!("/1.0/instances/{}", names::instance(INSTALLATION, &one.tag));
    for path in [
        path.as_str(),
        "/1.0/warnings",
        "/1.0/instances?project=default",
    ] {
        let request = wharf_guest::Call::get(&wharf_guest::Path::new(path));
        let answer = request.send(&rig.engine(0)).unwrap();
        assert!(answer.status >= 400, "{path}: {}", answer.status);
    }
}
