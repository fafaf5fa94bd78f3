//! `wharf key`, with and without a running server.

use crate::start;
use wharf_tests::Api;

#[test]
fn keys_are_made_listed_and_revoked_while_the_server_runs() {
    let (server, api) = start();
    let second = server
        .cli(&["key", "new", "ann@example.com", "--name", "laptop"])
        .unwrap();
    assert_eq!(
        second.lines().count(),
        1,
        "stdout must contain only the key"
    );
    let second = second.trim();
    assert!(second.starts_with("wharf_"));
    let laptop = Api::new(server.base_url(), second);
    api.small_container().unwrap();
    assert_eq!(
        laptop.list().unwrap().len(),
        1,
        "both keys belong to one user"
    );

    let list = server.cli(&["key", "list"]).unwrap();
    assert_eq!(list.lines().count(), 2);
    assert!(!list.contains(second));
    let id = list
        .lines()
        .find(|l| l.contains("laptop"))
        .unwrap()
        .split('\t')
        .next()
        .unwrap();
    server.cli(&["key", "revoke", id]).unwrap();
    assert_eq!(laptop.get("/api/instance/").unwrap().status, 401);
    assert_eq!(api.list().unwrap().len(), 1);
    assert!(server.cli(&["key", "revoke", "0123456789abcdef"]).is_err());
    assert!(server.cli(&["key", "new", "not an address"]).is_err());
    server.finish().unwrap();
}

#[test]
fn keys_are_made_while_the_server_does_not_run_and_survive_restarts() {
    let (mut server, api) = start();
    server.terminate().unwrap();
    let offline = server.cli(&["key", "new", "bob@example.com"]).unwrap();
    let list = server.cli(&["key", "list"]).unwrap();
    let id = list
        .lines()
        .find(|l| l.contains("ann@"))
        .unwrap()
        .split('\t')
        .next()
        .unwrap();
    server.cli(&["key", "revoke", id]).unwrap();
    server.run().unwrap();
    assert_eq!(
        server.again(&api).get("/api/instance/").unwrap().status,
        401
    );
    let bob = Api::new(server.base_url(), offline.trim());
    assert!(bob.list().unwrap().is_empty());
    let wrote = server.data_and_log().unwrap();
    let secret = offline.trim().as_bytes();
    assert!(
        !wrote.windows(secret.len()).any(|w| w == secret),
        "the key must not be on disk"
    );
    server.finish().unwrap();
}
