//! The work of refused sign-ins: equal, whether the user exists or not.

use super::{ANN, ConsoleBrowser, PASSWORD};
use crate::start;
use serde_json::json;
use wharf_tests::metric;

#[test]
fn each_refusal_of_a_password_computes_one_hash() {
    let (server, api) = start();
    let mut browser = ConsoleBrowser::accepted(&server, ANN);
    server.cli(&["key", "new", "bob@example.com"]).unwrap();
    browser.accept(&server, "eve@example.com");
    server.cli(&["user", "disable", "eve@example.com"]).unwrap();
    let count = || metric(&api, "wharf_password_hashes_total ").unwrap();
    let long = "x".repeat(10_000);
    for (email, password, case) in [
        (ANN, "not the password", "a wrong password"),
        ("nobody@example.com", PASSWORD, "an unknown user"),
        ("bob@example.com", PASSWORD, "a user without a password"),
        ("eve@example.com", PASSWORD, "a disabled user"),
        (ANN, long.as_str(), "a password that is too long"),
        ("nobody@example.com", "", "no password"),
    ] {
        let before = count();
        let body = json!({ "email": email, "password": password });
        let refused = ConsoleBrowser::new(&server).send("POST", "/auth/sign-in/", &body);
        assert_eq!(refused.status, 400, "{case}");
        assert_eq!(count() - before, 1.0, "{case}");
    }
}
