//! A driver that asks its engine for the node.

use crate::engine::Engine;
use crate::fixtures::Plugins;
use crate::{create_on, logged, server, uuid};
use wharf_tests::until;

#[test]
fn nothing_that_would_give_it_the_node_reaches_the_engine() {
    let plugins = Plugins::driver();
    let engine = Engine::refusing();
    let socket = engine.socket();
    let (server, api) = server(&plugins, &[("ensure-breaks-out", &socket)]);
    let created = create_on(&api, "ensure-breaks-out");
    let id = format!("instance={}", uuid(&created));
    until("it has tried", || {
        let tried = logged(&server, &[&id, " passed: "]);
        assert!(
            !logged(&server, &["not even what is allowed"]),
            "{}",
            server.log()
        );
        Ok(tried.then_some(()))
    })
    .unwrap();
    let log = server.log();
    let verdict = log
        .lines()
        .find(|l| l.contains(&id) && l.contains(" passed: "));
    println!("{}", verdict.unwrap().split("why=").last().unwrap());
    assert!(verdict.unwrap().contains("0 of "), "{verdict:?}");
    assert!(logged(
        &server,
        &["a driver's request was not sent", "Privileged"]
    ));

    // Only what is allowed came through, and as it was checked.
    let allowed = format!(
        "POST /containers/create?name=wharf-{} HTTP/1.1",
        uuid(&created)
    );
    let asked = engine.asked();
    assert!(!asked.is_empty(), "nothing came through at all");
    for request in &asked {
        assert_eq!(request.line, allowed);
        assert_eq!(request.body["HostConfig"].as_object().unwrap().len(), 4);
        assert!(request.body["HostConfig"]["Privileged"].is_null());
        assert!(
            request.headers.iter().all(|h| !h.contains("upgrade")),
            "{request:?}"
        );
    }
    println!(
        "{} requests came through, all of them the allowed one",
        asked.len()
    );
    api.delete(uuid(&created)).unwrap().expect(204).unwrap();
    server.finish().unwrap();
}
