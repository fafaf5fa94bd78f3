//! The way of a new user, from the invitation to the first deletion.

use crate::desk::{Desk, EMAIL, PASSWORD};
use serde_json::{Value, json};
use wharf_tests::Api;

#[test]
fn a_user_comes_by_invitation_makes_a_key_creates_watches_and_deletes() {
    let Some(desk) = Desk::start().unwrap() else {
        return;
    };
    desk.browser.wait_for_text("No instances yet").unwrap();
    desk.picture("empty").unwrap();
    makes_a_key(&desk);
    takes_the_alternative(&desk);
    adds_a_webhook(&desk);
    resizes(&desk);
    stops_and_starts(&desk);
    renames(&desk);
    opens_ports(&desk);
    deletes(&desk);
    signs_out(&desk);
}

/// An instance, as the interface shows it.
fn shown(desk: &Desk, name: &str) -> Value {
    desk.api.instance(name).unwrap().expect(200).unwrap()
}

/// A key of the console works outside of the browser.
fn makes_a_key(desk: &Desk) {
    let browser = &desk.browser;
    desk.open("/settings/keys", "h1").unwrap();
    desk.wait_for_title("API Key").unwrap();
    desk.fill("form input[autocomplete=off]", "ci").unwrap();
    desk.click("Create API key").unwrap();
    let key = browser
        .wait_for(
            "the key is shown",
            "return document.querySelector('[data-secret]')?.textContent",
        )
        .unwrap();
    let key = key.as_str().unwrap();
    desk.picture("key-made").unwrap();
    let program = Api::new(desk.server.base_url(), key);
    assert!(program.list().unwrap().is_empty());
    desk.click("I have it").unwrap();
    assert!(!browser.text().contains(key), "a key is shown once");
}

/// A size that does not fit is refused, and the nearest that fits is a click away.
fn takes_the_alternative(desk: &Desk) {
    let browser = &desk.browser;
    browser.run("document.activeElement.blur()").unwrap();
    browser.type_keys("c").unwrap();
    desk.wait_for_title("Create instance").unwrap();
    desk.fill("input[placeholder=calm-heron-7]", "first")
        .unwrap();
    browser
        .run("[...document.querySelectorAll('input[name=size]')].at(-1).click()")
        .unwrap();
    desk.fill("input[name=n_vcpus]", "2").unwrap();
    desk.fill("input[name=mem_gib]", "40").unwrap();
    desk.click("Create instance").unwrap();
    browser
        .wait_for_text("Insufficient resources: not enough mem_gib available.")
        .unwrap();
    desk.picture("refused").unwrap();
    desk.click("Use 32 GiB RAM").unwrap();
    browser.wait_for_text("$").unwrap();
    desk.click("Create instance").unwrap();
    desk.wait_for_title("first").unwrap();
    desk.wait_for_state("Running").unwrap();
    for chart in ["CPU", "Memory", "Disk"] {
        let drawn = format!(
            "const chart = document.querySelector('.plot[aria-label^=\"{chart}: \"]');
             return chart?.querySelector('canvas') && !chart.ariaLabel.includes('no samples');"
        );
        browser
            .wait_for(&format!("{chart} is drawn"), &drawn)
            .unwrap();
    }
    desk.picture("charts").unwrap();
    let made = shown(desk, "first");
    assert_eq!(
        (&made["n_vcpus"], &made["mem_gib"]),
        (&json!(2), &json!(32.0))
    );
}

fn adds_a_webhook(desk: &Desk) {
    let browser = &desk.browser;
    desk.open("/settings/webhooks", "input[inputmode=url]")
        .unwrap();
    desk.fill("input[inputmode=url]", "https://hooks.example.org/wharf")
        .unwrap();
    desk.click("Add webhook").unwrap();
    let secret = browser
        .wait_for(
            "the secret is shown",
            "return document.querySelector('[data-secret]')?.textContent",
        )
        .unwrap();
    assert!(secret.as_str().unwrap().starts_with("whsec_"));
    desk.click("I have it").unwrap();
    desk.click("Deliveries").unwrap();
    browser.wait_for_text("Nothing was delivered yet").unwrap();
    desk.picture("webhook").unwrap();
    desk.click("Remove").unwrap();
    desk.wait_for_dialog().unwrap();
    desk.click("Remove").unwrap();
    browser.wait_for_text("There are no webhooks yet").unwrap();
    desk.open("/instances/first", "#tab-resize").unwrap();
}

fn resizes(desk: &Desk) {
    desk.browser.click_and_type("#tab-resize", "").unwrap();
    desk.fill("input[name=n_vcpus]", "4").unwrap();
    desk.fill("input[name=mem_gib]", "8").unwrap();
    desk.browser.wait_for_text("instead of").unwrap();
    // A tab has this word, too.
    desk.browser
        .click_and_type("#tab-panel form button.primary", "")
        .unwrap();
    let script = "const button = document.querySelector('#tab-panel form button.primary');
         return button.disabled && button.textContent === 'Resize'";
    desk.browser.wait_for("it is done", script).unwrap();
    let resized = shown(desk, "first");
    assert_eq!(
        (&resized["n_vcpus"], &resized["mem_gib"]),
        (&json!(4), &json!(8.0))
    );
}

fn stops_and_starts(desk: &Desk) {
    desk.click("Stop").unwrap();
    let words = desk
        .browser
        .wait_for(
            "the cost of a stopped instance",
            "return document.querySelector('dialog[open] p')?.textContent",
        )
        .unwrap();
    let words = words.as_str().unwrap();
    assert_eq!(words.matches("/h").count(), 2, "{words}");
    desk.picture("stop").unwrap();
    desk.click("Stop").unwrap();
    desk.wait_for_state("Stopped").unwrap();
    desk.click("Start").unwrap();
    desk.wait_for_state("Running").unwrap();
}

fn renames(desk: &Desk) {
    desk.browser.click_and_type("#tab-settings", "").unwrap();
    desk.fill("#tab-panel input", "renamed").unwrap();
    desk.click("Rename").unwrap();
    desk.wait_for_title("renamed").unwrap();
    // The address follows after the title, and keeps the tab.
    let script = "return location.pathname + location.hash === '/instances/renamed#settings'";
    desk.browser
        .wait_for("the address has the new name", script)
        .unwrap();
}

fn opens_ports(desk: &Desk) {
    desk.open("/instances/new", "input[name=kind]").unwrap();
    desk.fill("input[placeholder=calm-heron-7]", "gate")
        .unwrap();
    desk.browser
        .run("[...document.querySelectorAll('input[name=kind]')].at(-1).click()")
        .unwrap();
    desk.click("Create instance").unwrap();
    desk.wait_for_title("gate").unwrap();
    desk.wait_for_state("Running").unwrap();
    desk.browser.click_and_type("#tab-settings", "").unwrap();
    desk.fill("input.short", "443").unwrap();
    desk.click("Open port").unwrap();
    let ports = || shown(desk, "gate")["wan_ports"].clone();
    desk.browser
        .wait_for(
            "port 443 is listed",
            "return document.querySelector('[aria-label=\"Close port 443\"]') !== null",
        )
        .unwrap();
    assert_eq!(ports(), json!([22, 443]));
    desk.browser
        .click_and_type("[aria-label=\"Close port 443\"]", "")
        .unwrap();
    desk.browser
        .wait_for(
            "port 443 is closed",
            "return document.querySelector('[aria-label=\"Close port 443\"]') === null",
        )
        .unwrap();
    assert_eq!(ports(), json!([22]));
}

fn deletes(desk: &Desk) {
    desk.click("Delete").unwrap();
    desk.wait_for_dialog().unwrap();
    desk.picture("delete").unwrap();
    let disabled = "return document.querySelector('dialog .danger').disabled";
    assert_eq!(desk.browser.run(disabled).unwrap(), Value::Bool(true));
    desk.fill("#typed", "gate").unwrap();
    desk.click("Delete gate").unwrap();
    desk.wait_for_title("Instances").unwrap();
    desk.wait_for_row("renamed", "Running").unwrap();
    assert_eq!(desk.api.list().unwrap().len(), 1);
}

fn signs_out(desk: &Desk) {
    desk.open("/settings/account", "h1").unwrap();
    desk.click("Sign out").unwrap();
    desk.wait_for_title("Sign in to Wharf").unwrap();
    desk.picture("sign-in").unwrap();
    let (status, _) = desk.fetch("GET", "/api/instance/").unwrap();
    assert_eq!(status, 401);
    // A page that needs a session leads back to it after the sign-in.
    desk.open("/usage", "input[type=password]").unwrap();
    desk.fill("#email", EMAIL).unwrap();
    desk.fill("#password", "not the password").unwrap();
    desk.click("Sign in").unwrap();
    desk.browser
        .wait_for(
            "the refusal",
            "return document.querySelector('[role=alert]')?.textContent",
        )
        .unwrap();
    desk.fill("#password", PASSWORD).unwrap();
    desk.click("Sign in").unwrap();
    desk.wait_for_title("Usage").unwrap();
}
