//! A driver for Incus that tries to take over its member, its cluster, other projects and other owners.

use crate::engine::{Asked, Engine};
use crate::fixtures::Plugins;
use crate::{logged, uuid};
use wharf_tests::{Ports, Server, until};

/// Runs the driver on a node with these settings, and returns the requests that reached the engine, and the
/// name of the instance there.
fn attacked(lan_cidr: &str, settings: &str) -> (Vec<Asked>, String) {
    let plugins = Plugins::of_incus();
    let engine = Engine::refusing();
    let settings = format!(
        "plugins_dir = \"{}\"\n{}[[node]]\nname = \"m1\"\ndriver = \"hostile-incus\"\n\
         endpoint = \"unix://{}\"\nlan_cidr = \"{lan_cidr}\"\n\
         capacity = {{ n_vcpus = 8, mem_gib = 8, disk_size_gib = 100 }}\n\
         settings = {{ member = \"m1\", {settings} }}\n",
        plugins.path().display(),
        Ports::take().settings(),
        engine.socket().display()
    );
    let server = Server::start(&settings).unwrap();
    let api = server.user("ann@example.com").unwrap();
    let created = api.small_container().unwrap();
    let id = format!("instance={}", uuid(&created));
    until("the driver has sent all requests", || {
        let log = server.log();
        assert!(!log.contains("not even what is allowed"), "{log}");
        Ok(logged(&server, &[&id, " passed: "]).then_some(()))
    })
    .unwrap();
    let log = server.log();
    let verdict = log
        .lines()
        .find(|line| line.contains(&id) && line.contains(" passed: "));
    println!("{}", verdict.unwrap().split("why=").last().unwrap());
    assert!(verdict.unwrap().contains("0 of "), "{verdict:?}");
    let name = verdict.unwrap().split("as wh-").nth(1).unwrap();
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let name = format!("wh-{}", &name[..end.unwrap_or(name.len())]);
    api.delete(uuid(&created)).unwrap().expect(204).unwrap();
    server.finish().unwrap();
    (engine.asked(), name)
}

#[test]
fn no_dangerous_request_reaches_incus() {
    let (asked, name) = attacked(
        "10.79.0.0/16",
        "gateway = \"10.79.0.1\", publish_address = \"192.0.2.10\"",
    );
    // Only allowed requests reached the engine, in the form that was checked.
    let own = format!("/1.0/instances/{name}");
    let mut creations = 0;
    for request in &asked {
        let line = request.line.as_str();
        if line == "POST /1.0/instances?project=wharf&target=m1 HTTP/1.1" {
            creations += 1;
            assert!(
                request.body["config"].get("raw.lxc").is_none(),
                "{request:?}"
            );
            assert_eq!(request.body["config"]["security.idmap.isolated"], "true");
        } else {
            let allowed = [
                format!("GET {own}?project=wharf HTTP/1.1"),
                format!("PUT {own}/state?project=wharf HTTP/1.1"),
            ];
            let is_file = line.starts_with(&format!("POST {own}/files?project=wharf&path="));
            assert!(
                is_file || allowed.iter().any(|one| one == line),
                "{request:?}"
            );
        }
    }
    assert!(creations > 0, "{asked:?}");
}

#[test]
fn no_dangerous_request_about_networks_reaches_incus() {
    let (asked, name) = attacked(
        "10.80.0.0/16",
        "uplink = \"up0\", acl = \"rules\", publish_cidr = \"198.18.0.0/16\", publish_from = 0, \
         dns = \"9.9.9.9\"",
    );
    let network = format!("/1.0/networks/{}", &name[..12]);
    for request in &asked {
        let line = request.line.as_str();
        let config = &request.body["config"];
        match line {
            "POST /1.0/networks?project=wharf HTTP/1.1" => {
                assert_eq!(config["network"], "up0");
                assert_eq!(config["security.acls"], "rules");
            }
            "POST /1.0/instances?project=wharf&target=m1 HTTP/1.1" => {
                let nic = request.body["devices"]["eth0"].as_object().unwrap();
                assert_eq!(nic.len(), 4, "{nic:?}");
            }
            _ => {
                let line = line.replacen(&network, "NETWORK", 1);
                let own = ["POST NETWORK10.80.", "PUT NETWORK10.80."];
                assert!(own.iter().any(|own| line.starts_with(own)), "{request:?}");
                assert_eq!(config["user.wharf.instance"], name);
            }
        }
    }
    assert!(asked.len() >= 4, "{asked:?}");
}
