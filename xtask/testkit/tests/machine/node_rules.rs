//! The rules of a node, in network namespaces that this test makes: no packet leaves the machine, and
//! its own rules stay as they are. The rules are those of the generator, and those of the page on
//! networking.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wharf_testkit::engine::{Allowed, Ruleset};
use wharf_testkit::packages::{self, Need};
use wharf_testkit::process::{is_root, wait_until};
use wharf_testkit::workspace::root;

/// Addresses of the machine beyond the node that nobody may reach.
const DENIED: [&str; 10] = [
    "169.254.169.254",
    "168.63.129.16",
    "100.100.100.200",
    "10.9.9.9",
    "172.20.0.9",
    "192.168.9.9",
    "100.64.0.9",
    "fd00:ec2::254",
    "fd12::9",
    "10.8.8.8",
];
/// Public ones.
const PUBLIC: [&str; 2] = ["203.0.113.9", "2001:db8:9::9"];
/// Addresses of the node, on its side of the instance's network and beyond, and another owner's instance.
const NEAR: [&str; 6] = [
    "10.80.1.1",
    "198.51.100.1",
    "169.254.77.1",
    "2001:db8:1::1",
    "10.80.2.7",
    "2001:db8:2::7",
];
/// The instance's own address.
const OWN: &str = "10.80.1.7";
/// The instance's forged source: an address of the internet, and one of another owner.
const FORGED: [&str; 2] = ["203.0.113.66", "10.80.2.77"];

/// Prints the addresses that accept a connection, in a line.
const REACH: &str = r#"
import socket, sys, concurrent.futures
def reached(address):
    try:
        socket.create_connection((address, 8000), 2).close()
        return [address]
    except OSError:
        return []
with concurrent.futures.ThreadPoolExecutor(32) as threads:
    print(*sum(threads.map(reached, sys.argv[1:]), []))
"#;
/// Accepts connections on all addresses, and prints the source of each datagram.
const SERVE: &str = r#"
import socket, threading
def accept(family, address):
    server = socket.socket(family)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    server.bind((address, 8000)); server.listen(64)
    while True: server.accept()[0].close()
for family, address in (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::"):
    threading.Thread(target=accept, args=(family, address), daemon=True).start()
heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
heard.bind(("0.0.0.0", 9000))
print("ready", flush=True)
while True:
    data, (source, _) = heard.recvfrom(64)
    print(data.decode(), source, flush=True)
"#;
/// Sends a datagram from each source.
const SEND: &str = r#"
import socket, sys
for source in sys.argv[1:]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.SOL_IP, 15, 1)
        sender.bind((source, 0))
        sender.sendto(b"from", ("203.0.113.9", 9000))
"#;

/// The namespaces of a node, two instances of two owners, and a machine beyond.
struct Scene {
    prefix: String,
    servers: Vec<Child>,
}

impl Scene {
    fn make() -> Self {
        let scene = Self {
            prefix: format!("whrules{}", std::process::id()),
            servers: Vec::new(),
        };
        for name in ["node", "mine", "theirs", "beyond"] {
            scene.ip(&format!("netns add {}", scene.name(name)));
            scene.at(name, "link set lo up");
        }
        // Not promised by a new namespace.
        for key in ["ipv4.ip_forward", "ipv6.conf.all.forwarding"] {
            scene.sysctl(&format!("net.{key}=1"));
        }
        scene.sysctl("net.ipv4.conf.all.rp_filter=0");
        scene.sysctl("net.ipv4.conf.default.rp_filter=0");
        for (instance, bridge, net) in [("mine", "whfn0a500100", 1), ("theirs", "whfn0a500200", 2)]
        {
            scene.at("node", &format!("link add {bridge} type bridge"));
            scene.at("node", &format!("link set {bridge} up"));
            scene.at(
                "node",
                &format!("address add 10.80.{net}.1/24 dev {bridge}"),
            );
            scene.at(
                "node",
                &format!("address add 2001:db8:{net}::1/64 dev {bridge} nodad"),
            );
            scene.cable("node", instance, instance);
            scene.at("node", &format!("link set {instance} master {bridge}"));
            scene.at(instance, &format!("address add 10.80.{net}.7/24 dev eth0"));
            scene.at(
                instance,
                &format!("address add 2001:db8:{net}::7/64 dev eth0 nodad"),
            );
            scene.at(instance, &format!("route add default via 10.80.{net}.1"));
            scene.at(
                instance,
                &format!("-6 route add default via 2001:db8:{net}::1"),
            );
        }
        scene.at("node", "address add 169.254.77.1/32 dev lo");
        for forged in FORGED {
            scene.at("mine", &format!("address add {forged}/32 dev lo"));
        }
        scene.cable("node", "uplink", "beyond");
        for (side, device, own) in [("node", "uplink", 1), ("beyond", "eth0", 2)] {
            scene.at(
                side,
                &format!("address add 198.51.100.{own}/24 dev {device}"),
            );
            scene.at(
                side,
                &format!("address add 2001:db8:ff::{own}/64 dev {device} nodad"),
            );
        }
        scene.at("beyond", "route add default via 198.51.100.1");
        scene.at("beyond", "-6 route add default via 2001:db8:ff::1");
        for address in DENIED.iter().chain(&PUBLIC) {
            let six = address.contains(':');
            let (length, via, flags) = if six {
                (128, "2001:db8:ff::2", "nodad")
            } else {
                (32, "198.51.100.2", "")
            };
            scene.at(
                "beyond",
                &format!("address add {address}/{length} dev lo {flags}"),
            );
            scene.at("node", &format!("route add {address}/{length} via {via}"));
        }
        scene
    }

    fn name(&self, of: &str) -> String {
        format!("{}{of}", self.prefix)
    }

    fn ip(&self, words: &str) {
        let output = Command::new("ip")
            .args(words.split_whitespace())
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ip {words}: {error}");
    }

    fn at(&self, name: &str, words: &str) {
        self.ip(&format!("-netns {} {words}", self.name(name)));
    }

    /// A cable from `device` of one namespace to `eth0` of another.
    fn cable(&self, from: &str, device: &str, to: &str) {
        let (from_name, to_name) = (self.name(from), self.name(to));
        let peer = format!("peer name eth0 netns {to_name}");
        self.ip(&format!(
            "-netns {from_name} link add {device} type veth {peer}"
        ));
        self.at(from, &format!("link set {device} up"));
        self.at(to, "link set eth0 up");
    }

    fn sysctl(&self, setting: &str) {
        assert!(
            self.inside("node", "sysctl")
                .args(["-qw", setting])
                .status()
                .unwrap()
                .success()
        );
    }

    fn inside(&self, name: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(name), program]);
        command
    }

    /// Loads rules in the node's namespace.
    fn load(&self, rules: &str) {
        let mut nft = self.inside("node", "nft");
        let mut nft = nft.args(["-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
        let text = format!("flush ruleset\n{rules}");
        nft.stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        assert!(nft.wait().unwrap().success(), "{rules}");
    }

    /// Serves on all addresses of a namespace, and returns the lines of the server.
    fn serve(&mut self, name: &str) -> impl Iterator<Item = String> + use<> {
        let mut python = self.inside(name, "python3");
        let python = python.args(["-c", SERVE]).stdout(Stdio::piped()).spawn();
        let mut server = python.unwrap();
        let lines = BufReader::new(server.stdout.take().unwrap()).lines();
        self.servers.push(server);
        let mut lines = lines.map(Result::unwrap);
        assert_eq!(lines.next().unwrap(), "ready");
        lines
    }

    /// The addresses that are reached from a namespace.
    fn reached(&self, from: &str, addresses: &[&str]) -> Vec<String> {
        let mut python = self.inside(from, "python3");
        let output = python.args(["-c", REACH]).args(addresses).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// The sources that the machine beyond sees, without the last: the last datagram has the instance's own
    /// source, or `own` after translation.
    fn heard(&self, lines: &mut impl Iterator<Item = String>, own: &str) -> Vec<String> {
        let mut python = self.inside("mine", "python3");
        python.args(["-c", SEND]).args(FORGED).arg(OWN);
        assert!(python.status().unwrap().success());
        let mut heard = Vec::new();
        loop {
            let line = lines.next().unwrap();
            let source = line.strip_prefix("from ").unwrap().to_owned();
            if source == own {
                return heard;
            }
            heard.push(source);
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for server in &mut self.servers {
            drop(server.kill());
            drop(server.wait());
        }
        for name in ["mine", "theirs", "beyond", "node"] {
            drop(
                Command::new("ip")
                    .args(["netns", "delete", &self.name(name)])
                    .status(),
            );
        }
    }
}

/// The rules of the page, with the addresses that it leaves open.
fn documented(allowed: &str) -> String {
    let page = std::fs::read_to_string(root().join("docs/networking.md")).unwrap();
    let (_, rest) = page
        .split_once("```\ntable inet wharf {")
        .expect("the page has the rules");
    let (rules, _) = rest.split_once("\n```").unwrap();
    let example = "{ 192.0.2.53 }";
    assert!(
        rules.contains(example),
        "the page has an example of an allowed address"
    );
    format!(
        "table inet wharf {{{}",
        rules.replace(example, &format!("{{ {allowed} }}"))
    )
}

#[test]
fn instances_reach_no_private_network_and_forge_no_source() {
    if !is_root() {
        assert!(std::env::var_os("CI").is_none(), "needs root");
        println!("SKIPPED: needs root");
        return;
    }
    let need = |program, package| Need {
        program,
        package,
        why: "tests the node's rules",
    };
    packages::ensure(&[
        need("nft", "nftables"),
        need("ip", "iproute2"),
        need("python3", "python3"),
    ])
    .unwrap();
    let mut scene = Scene::make();
    let mut lines = scene.serve("beyond");
    let _others = ["node", "mine", "theirs"].map(|name| scene.serve(name));
    let all: Vec<_> = DENIED.into_iter().chain(NEAR).chain(PUBLIC).collect();

    // Without rules all of it works, or the test would prove nothing.
    scene.load("");
    // IPv6 takes a moment to find its neighbours.
    let reached = || scene.reached("mine", &all);
    let is_up = wait_until(Duration::from_secs(30), || reached() == all);
    assert!(is_up, "{:?}", reached());
    assert_eq!(scene.reached("beyond", &[OWN]), [OWN]);
    assert_eq!(scene.heard(&mut lines, OWN), FORGED);

    let generated = |ranges: &[&str], translate: bool| {
        let ranges: Vec<_> = ranges.iter().map(|range| (*range).to_owned()).collect();
        let rules = Ruleset {
            allowed: Allowed::new(&ranges).unwrap(),
            translate,
            ..Ruleset::default()
        };
        rules.text("wharf_test")
    };
    let one = ["10.8.8.8", PUBLIC[0], PUBLIC[1]];
    for (name, rules, own, reached) in [
        ("generated", generated(&[], false), OWN, &one[1..]),
        ("translated", generated(&[], true), NEAR[1], &one[1..]),
        ("allowed", generated(&["10.8.0.0/16"], false), OWN, &one[..]),
        (
            "never metadata",
            generated(&["169.254.0.0/16", "168.63.129.16"], false),
            OWN,
            &one[1..],
        ),
        ("documented", documented("10.8.8.8"), OWN, &one[..]),
    ] {
        scene.load(&rules);
        assert_eq!(scene.reached("mine", &all), reached, "{name}");
        assert!(scene.heard(&mut lines, own).is_empty(), "{name}");
        // From outside, past the published ports.
        assert!(scene.reached("beyond", &[OWN]).is_empty(), "{name}");
    }
    // Answers to a private client pass. A published port's destination is not the matter here.
    let mut client = scene.inside("beyond", "python3");
    let ping = "import socket\ns = socket.socket()\ns.bind(('10.9.9.9', 0))\ns.settimeout(3)\n\
        try: s.connect(('10.80.1.7', 1))\nexcept ConnectionRefusedError: print('answered')";
    scene.load(
        &generated(&[], false).replace("ct state new ct status and dnat != dnat drop", "accept"),
    );
    let output = client.args(["-c", ping]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "answered");
}
