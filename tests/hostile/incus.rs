//! A driver for Incus that tries to take over its member, its cluster and other projects.

use crate::engine::Engine;
use crate::fixtures::Plugins;
use crate::{logged, uuid};
use wharf_tests::{Ports, Server, until};

#[test]
fn no_dangerous_request_reaches_incus() {
    let plugins = Plugins::of_incus();
    let engine = Engine::refusing();
    let settings = format!(
        "plugins_dir = \"{}\"\n{}[[node]]\nname = \"m1\"\ndriver = \"hostile-incus\"\n\
         endpoint = \"unix://{}\"\nlan_cidr = \"10.79.0.0/16\"\n\
         capacity = {{ n_vcpus = 8, mem_gib = 8, disk_size_gib = 100 }}\n\
         settings = {{ member = \"m1\", gateway = \"10.79.0.1\", publish_address = \"192.0.2.10\" }}\n",
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

    // Only allowed requests reached the engine, in the form that was checked.
    let name = verdict.unwrap().split("as wh-").nth(1).unwrap();
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let own = format!("/1.0/instances/wh-{}", &name[..end.unwrap_or(name.len())]);
    let asked = engine.asked();
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
    api.delete(uuid(&created)).unwrap().expect(204).unwrap();
    server.finish().unwrap();
}
