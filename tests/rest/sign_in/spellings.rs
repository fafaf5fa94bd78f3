//! Addresses: every door takes every spelling of one for one user, and refuses what is none.

use super::{ConsoleBrowser, PASSWORD};
use crate::{Expected, has, start};
use serde_json::json;
use wharf_tests::{Api, small};

const SPELLINGS: [&str; 4] = [
    "René.Lee@Bücher.example",
    "rene\u{301}.lee@bücher.EXAMPLE",
    "RENÉ.LEE@XN--BCHER-KVA.EXAMPLE",
    "rené.lee@xn--bcher-kva.example",
];

#[test]
fn spellings_of_an_address_are_one_user_at_every_door() {
    let (server, _) = start();
    let [first, second, third, canonical] = SPELLINGS;
    let mut browser = ConsoleBrowser::new(&server);
    let link = server.cli(&["user", "invite", first]).unwrap();
    let (_, token) = link.trim().split_once('#').unwrap();
    let body = json!({ "token": token, "password": PASSWORD });
    let accepted = browser.send("POST", "/auth/invite/accept/", &body);
    browser.keep_cookie(accepted);
    let session = browser.get("/api/session/").is(200);
    assert_eq!(session["email"], canonical);

    let key = server.cli(&["key", "new", second]).unwrap();
    let key = Api::new(server.base_url(), key.trim());
    assert_eq!(key.get("/api/session/").is(200)["email"], canonical);
    key.create(&small("container")).is(201);
    let seen = browser.get("/api/instance/").is(200);
    assert_eq!(seen.as_array().unwrap().len(), 1);

    let users = server.cli(&["user", "list"]).unwrap();
    let lines = users.lines().filter(|line| line.contains("lee@"));
    assert_eq!(lines.count(), 1, "{users}");
    for spelling in SPELLINGS {
        let body = json!({ "email": spelling, "password": PASSWORD });
        let signed_in = ConsoleBrowser::new(&server).send("POST", "/auth/sign-in/", &body);
        assert_eq!(signed_in.status, 204, "{spelling}");
    }
    server.cli(&["user", "disable", third]).unwrap();
    assert!(!browser.is_signed_in());
    server.cli(&["user", "enable", third]).unwrap();
    for wrong in [
        "<ann@example.org>",
        "Ann <ann@example.org>",
        "an\u{200b}n@example.org",
        "ann@exam\u{ad}ple.org",
        "ann@bob@example.org",
    ] {
        for command in [["key", "new", wrong], ["user", "invite", wrong]] {
            let refused = server.cli(&command).unwrap_err().to_string();
            has(&refused, "ann@example.org, with");
        }
    }
}
