//! Pages by name in a browser. A page is a small server at the port of a simulated instance.

use crate::desk::Desk;
use serde_json::{Value, json};
use wharf_tests::{PageServer, Ports, simulated_node, until};

fn page(desk: &Desk, name: &str) -> Value {
    let body = json!({
        "resource_type": "container", "name": name, "flavor": "marimo",
        "n_vcpus": 1, "mem_gib": 1, "disk_size_gib": 10,
    });
    desk.api.create(&body).unwrap().expect(201).unwrap();
    desk.api.wait_for(name, "running").unwrap()
}

/// The origin of the page of an instance.
fn origin(instance: &Value) -> &str {
    instance["webapp_url"]
        .as_str()
        .unwrap()
        .trim_end_matches('/')
}

#[test]
fn a_page_opens_from_the_console_with_one_click_and_no_page_uses_another_one() {
    let ports = Ports::take();
    let web = ports.from + (ports.to - ports.from).div_ceil(2);
    let settings = format!(
        "{}{}[pages]\ndomain = \"apps.localhost\"\nlisten = \"127.0.0.1:0\"\n",
        ports.settings(),
        simulated_node("one", "")
    );
    let Some(desk) = Desk::start_with(&settings).unwrap() else {
        return;
    };
    let browser = &desk.browser;
    let [demo, other] = ["demo", "other"].map(|name| page(&desk, name));
    let [at_demo, at_other] = [web, web + 1].map(PageServer::start);

    // One click, and no second password.
    desk.open("/instances/demo", "h1").unwrap();
    let before = browser.tabs().unwrap();
    desk.click("Open page ↗").unwrap();
    let opened = || {
        Ok(browser
            .tabs()?
            .into_iter()
            .find(|tab| !before.contains(tab)))
    };
    let tab = until("a tab for the page", opened).unwrap();
    browser.switch_to(&tab).unwrap();
    browser.wait_for_text("GET / HTTP/1.1").unwrap();
    // The gateway signs in with the page's own token; the password stays with the owner.
    let password = demo["original_service_password"].as_str().unwrap();
    let request = browser.text();
    assert!(request.to_lowercase().contains("authorization: bearer "));
    assert!(!request.contains(password));
    assert_eq!(browser.address().unwrap(), format!("{}/", origin(&demo)));
    desk.picture("page-by-name").unwrap();
    // A script of the page sees no cookie of Wharf's.
    let cookies = browser.run("return document.cookie").unwrap();
    assert_eq!(cookies, "");

    // The attack works on the page itself.
    let paths = ["/write", "/read", "/frame", "/ws"];
    let attack = |from: &Value, target: &Value| {
        let url = format!("{}/attack?target={}", origin(from), origin(target));
        browser.open(&url, "iframe").unwrap();
        let ended = "return document.title.startsWith('socket') ? document.title : null";
        browser.wait_for("the attack has ended", ended).unwrap()
    };
    assert_eq!(attack(&demo, &demo), "socket open");
    assert!(paths.iter().all(|path| at_demo.has_seen(path)));
    // The visitor is let in to the other page, too, and the first one uses nothing of it.
    browser
        .open(&format!("{}/first", origin(&other)), "body")
        .unwrap();
    browser.wait_for_text("GET /first HTTP/1.1").unwrap();
    assert_eq!(attack(&demo, &other), "socket refused");
    for path in paths {
        assert!(!at_other.has_seen(path), "{path}");
    }

    // The end of the session is the end of the visit.
    desk.open("/settings/account", "h1").unwrap();
    desk.click("Sign out").unwrap();
    desk.wait_for_title("Sign in to Wharf").unwrap();
    browser
        .open(&format!("{}/", origin(&demo)), "#email")
        .unwrap();
    desk.sign_in().unwrap();
    browser.wait_for_text("GET / HTTP/1.1").unwrap();
}
