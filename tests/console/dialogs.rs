//! Dialogs and messages: without barriers, in light and dark and on a phone.

use crate::axe;
use crate::desk::{Desk, container};
use crate::pages::LOOKS;
use serde_json::json;

/// Pages, and the buttons that lead to a dialog or a message.
const PLACES: [(&str, &str, &[&str]); 9] = [
    ("dialog-stop", "/instances/held", &["Stop"]),
    ("dialog-delete", "/instances/held", &["Delete"]),
    (
        "dialog-restore",
        "/instances/stopped#snapshots",
        &["Restore"],
    ),
    ("dialog-clone", "/instances/held#snapshots", &["Clone"]),
    ("dialog-revoke", "/settings/keys", &["Revoke"]),
    (
        "dialog-everywhere",
        "/settings/account",
        &["Sign out everywhere"],
    ),
    ("dialog-webhook", "/settings/webhooks", &["Remove"]),
    ("deliveries", "/settings/webhooks", &["Deliveries"]),
    ("dialog-ssh-key", "/settings/ssh-keys", &["Remove"]),
];

#[test]
fn dialogs_are_accessible() {
    let Some(desk) = Desk::start().unwrap() else {
        return;
    };
    let browser = &desk.browser;
    let made = desk.api.create(&container("held")).unwrap();
    made.expect(201).unwrap();
    desk.wait_for_row("held", "Running").unwrap();
    desk.snapshot("held").unwrap();
    let made = desk.api.create(&container("stopped")).unwrap();
    made.expect(201).unwrap();
    desk.api.wait_for("stopped", "running").unwrap();
    desk.snapshot("stopped").unwrap();
    desk.api
        .act("stopped", "stop")
        .unwrap()
        .expect(200)
        .unwrap();
    let post = |path: &str, body| desk.api.send("POST", path, &body).unwrap();
    let hook = json!({ "url": "https://receiver.invalid/" });
    let hook = post("/api/webhook/", hook).expect(201).unwrap();
    let test = format!("/api/webhook/{}/test/", hook["id"].as_str().unwrap());
    post(&test, json!(null)).expect(202).unwrap();
    let public_key =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFIkGWuBbBTx9nTEHwsrBJV4jF7lFQyMDmE6pDnoO4Yg";
    let key = json!({ "name": "laptop", "public_key": public_key });
    post("/api/ssh-key/", key).expect(201).unwrap();
    for (look, scheme, width, height) in LOOKS {
        browser.prefer(scheme).unwrap();
        browser.resize(width, height).unwrap();
        for (name, path, buttons) in PLACES {
            let page = format!("{name}-{look}");
            desk.open(path, "h1").unwrap();
            for button in buttons {
                desk.click(button).unwrap();
            }
            let shown = if name.starts_with("dialog") {
                "return document.querySelector('dialog[open]') !== null"
            } else {
                "return document.querySelector('.lines li') !== null"
            };
            browser.wait_for(&page, shown).unwrap();
            desk.picture(&page).unwrap();
            axe::check(browser, &page).unwrap();
        }
    }
}
