//! Lists follow the stream too: nothing is read again and again.

use crate::desk::{Desk, container};
use crate::ssh_server::SshServer;
use serde_json::{Value, json};
use wharf_tests::Terminal;

#[test]
fn changes_of_lists_elsewhere_show_at_once() {
    let Some(desk) = Desk::start().unwrap() else {
        return;
    };
    let browser = &desk.browser;
    let post = |path: &str, body: Value| desk.api.send("POST", path, &body).unwrap();

    desk.open("/settings/keys", "h1").unwrap();
    browser.wait_for_text("Last used").unwrap();
    let key = post("/api/key/", json!({ "name": "made-elsewhere" }));
    let key = key.expect(201).unwrap();
    browser.wait_for_text("made-elsewhere").unwrap();
    let path = format!("/api/key/{}/", key["id"].as_str().unwrap());
    let revoked = desk.api.send("DELETE", &path, &Value::Null).unwrap();
    revoked.expect(204).unwrap();
    browser
        .wait_for(
            "the key is gone",
            "return !document.body.innerText.includes('made-elsewhere')",
        )
        .unwrap();

    desk.open("/settings/webhooks", "h1").unwrap();
    browser.wait_for_text("There are no webhooks yet").unwrap();
    let hook = json!({ "url": "https://receiver.invalid/elsewhere" });
    let hook = post("/api/webhook/", hook).expect(201).unwrap();
    browser.wait_for_text("receiver.invalid/elsewhere").unwrap();
    desk.click("Deliveries").unwrap();
    browser.wait_for_text("Nothing was delivered yet").unwrap();
    let path = format!("/api/webhook/{}/test/", hook["id"].as_str().unwrap());
    post(&path, Value::Null).expect(202).unwrap();
    // The result of the attempt, which is made behind the answer.
    browser.wait_for_text("attempt 1,").unwrap();

    desk.open("/audit", "h1").unwrap();
    browser.wait_for_text("webhook.test").unwrap();
    // Ids of one time begin alike, so the end is shown.
    let id = hook["id"].as_str().unwrap();
    let short = format!("return document.querySelector('code[title=\"{id}\"]')?.textContent");
    let short = browser.run(&short).unwrap();
    assert_eq!(short, id[id.len() - 8..]);
    desk.api
        .create(&container("with-key"))
        .unwrap()
        .expect(201)
        .unwrap();
    browser
        .wait_for(
            "the latest record is the first",
            "return document.querySelector('tbody th')?.textContent === 'instance.create'",
        )
        .unwrap();

    // The simulated engine has no SSH server, so Wharf learns the host key from the first terminal.
    let instance = desk.api.wait_for("with-key", "running").unwrap();
    desk.open("/instances/with-key", "#tab-overview").unwrap();
    desk.wait_for_state("Running").unwrap();
    let shown = "return document.querySelector('.host-key code')?.textContent ?? null";
    assert!(browser.run(shown).unwrap().is_null());
    let _ssh = SshServer::of(&instance).unwrap();
    let uuid = instance["uuid"].as_str().unwrap();
    let terminal = Terminal::open(&desk.api, uuid, "").unwrap();
    let fingerprint = browser.wait_for("the host key", shown).unwrap();
    assert!(fingerprint.as_str().unwrap().starts_with("SHA256:"));
    drop(terminal);
}
