//! The shares of an instance.

use crate::desk::{Desk, container};
use wharf_tests::{Ports, simulated_node};

#[test]
fn a_page_is_shared_with_a_warning_and_taken_back() {
    let settings = format!(
        "{}{}[pages]\ndomain = \"apps.localhost\"\nlisten = \"127.0.0.1:0\"\n",
        Ports::take().settings(),
        simulated_node("one", "")
    );
    let Some(desk) = Desk::start_with(&settings).unwrap() else {
        return;
    };
    let browser = &desk.browser;
    let mut body = container("demo");
    body["flavor"] = "marimo".into();
    desk.api.create(&body).unwrap().expect(201).unwrap();
    desk.api.wait_for("demo", "running").unwrap();
    desk.open("/instances/demo#share", "textarea").unwrap();
    let see = |words: &str| browser.wait_for_text(words).unwrap();
    see("Nothing of this instance is shared.");
    see("A visitor of this page may run programs as you");
    // A refusal is beside its field.
    desk.fill("textarea", "bob").unwrap();
    desk.click("Share it").unwrap();
    see("E-mail addresses must be an e-mail address such as");
    desk.fill("textarea", "Bob@example.com, carol@example.com")
        .unwrap();
    see("wharf share add demo --with Bob@example.com,carol@example.com");
    desk.click("Share it").unwrap();
    see("bob@example.com, carol@example.com");
    see("http://demo.apps.localhost:");
    desk.fill("input", "8000").unwrap();
    desk.fill("textarea", "dave@example.com").unwrap();
    see("wharf share add demo --port 8000 --with dave@example.com");
    assert!(!browser.text().contains("may run programs as you"));
    desk.click("Share it").unwrap();
    see("http://demo-8000.apps.localhost:");
    desk.settle().unwrap();
    desk.picture("share").unwrap();

    let stop = "document.querySelector('[aria-label=\"Stop sharing Page\"]')";
    browser.run(&format!("{stop}.click()")).unwrap();
    desk.wait_for_dialog().unwrap();
    see("wharf share rm demo");
    desk.click("Stop sharing").unwrap();
    let is_gone = format!("return {stop} === null");
    browser.wait_for("the share is gone", &is_gone).unwrap();
    // A share that is made elsewhere shows at once.
    let body = serde_json::json!({ "port": 9000, "access": "signed_in" });
    let path = "/api/instance/demo/share/";
    desk.api
        .send("POST", path, &body)
        .unwrap()
        .expect(201)
        .unwrap();
    see("http://demo-9000.apps.localhost:");
    let shares = desk
        .api
        .send("GET", path, &serde_json::Value::Null)
        .unwrap();
    assert_eq!(shares.expect(200).unwrap().as_array().unwrap().len(), 2);
}
