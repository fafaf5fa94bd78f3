//! The console over plain HTTP, beside a page that a server in an instance shows on the console's host.

use crate::desk::{Desk, EMAIL, PASSWORD};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::channel;
use std::thread;
use wharf_tests::Api;

#[test]
fn a_page_on_another_port_gets_a_cookie_that_opens_nothing() {
    let Some(desk) = Desk::start().unwrap() else {
        return;
    };
    let browser = &desk.browser;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (heads, received) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(mut stream), mut head) = (stream, [0; 8192]) else {
                continue;
            };
            let length = stream.read(&mut head).unwrap_or(0);
            let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 14\r\n\
                        Connection: close\r\n\r\n<h1>A page</h1>";
            drop(stream.write_all(page.as_bytes()));
            if heads.send(head[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    browser
        .open(&format!("http://localhost:{port}/"), "h1")
        .unwrap();
    let head = String::from_utf8(received.recv().unwrap()).unwrap();
    let mut lines = head.lines();
    let cookie = lines
        .find_map(|line| line.strip_prefix("Cookie: "))
        .unwrap();
    assert!(cookie.contains("wharf-"), "{head}");

    // The server in the instance is not signed in with any header.
    let own = format!(
        "http://localhost:{}",
        desk.console.rsplit(':').next().unwrap()
    );
    let thief = Api::new(desk.server.base_url(), "");
    for (method, path) in [
        ("GET", "/api/session/"),
        ("GET", "/api/instance/"),
        ("POST", "/api/key/"),
    ] {
        let host = own.strip_prefix("http://").unwrap();
        let headers = [("Cookie", cookie), ("Origin", own.as_str()), ("Host", host)];
        let refused = thief.send_with(method, path, &headers, &json!({})).unwrap();
        assert_eq!(refused.status, 401, "{method} {path}");
    }
    // Nor is the page, which has the cookie too and cannot read the storage of the console.
    let script = format!(
        "const kept = Object.keys(localStorage).length;
         const sent = await fetch('{own}/api/session/', {{ credentials: 'include', mode: 'no-cors' }});
         return [kept, sent.type];"
    );
    assert_eq!(browser.run_async(&script).unwrap(), json!([0, "opaque"]));

    // The console is signed in, in another tab too.
    for _ in 0..2 {
        desk.open("/instances", "h1").unwrap();
        desk.wait_for_title("Instances").unwrap();
        let (status, session) = desk.fetch("GET", "/api/session/").unwrap();
        assert_eq!((status, &session["kind"]), (200, &json!("session")));
        browser.new_tab().unwrap();
    }
    desk.open("/instances", "h1").unwrap();
    let bare = "return (await fetch('/api/session/')).status";
    assert_eq!(browser.run_async(bare).unwrap(), json!(401));
}

#[test]
fn a_key_expires_in_90_days_unless_its_user_chooses_and_signing_out_can_revoke_it() {
    let Some(desk) = Desk::start().unwrap() else {
        return;
    };
    let browser = &desk.browser;
    desk.open("/settings/keys", "select").unwrap();
    let chosen = "return document.querySelector('main select').selectedOptions[0].textContent";
    assert_eq!(browser.run(chosen).unwrap(), json!("In 90 days"));
    let keys = || desk.fetch("GET", "/api/key/").unwrap().1;
    let own = |keys: &Value| -> Vec<Value> {
        let keys = keys.as_array().unwrap().iter();
        let made = keys.filter(|key| key["name"] == "console");
        made.map(|key| key["expires_at"].clone()).collect()
    };
    let make = |days: &str| {
        desk.fill("input[placeholder=ci]", "console").unwrap();
        let choose = format!(
            "const select = document.querySelector('main select');
             select.value = '{days}';
             select.dispatchEvent(new Event('change', {{ bubbles: true }}));"
        );
        browser.run(&choose).unwrap();
        desk.click("Create API key").unwrap();
        desk.click("I have it").unwrap();
    };
    make("90");
    assert!(own(&keys())[0].is_string(), "{}", keys());
    make("");
    assert!(own(&keys()).contains(&Value::Null), "{}", keys());

    desk.open("/settings/account", "h1").unwrap();
    desk.click("Sign out everywhere").unwrap();
    desk.wait_for_dialog().unwrap();
    let choose = "const select = document.querySelector('dialog select');
        select.value = '1';
        select.dispatchEvent(new Event('change', { bubbles: true }));";
    browser.run(choose).unwrap();
    desk.picture("sign-out-everywhere").unwrap();
    desk.click("Sign out everywhere").unwrap();
    desk.wait_for_title("Sign in to Wharf").unwrap();
    let left = desk.api.get("/api/key/").unwrap().expect(200).unwrap();
    assert_eq!(own(&left), Vec::<Value>::new());
    assert_eq!(
        left.as_array().unwrap().len(),
        1,
        "the operator's key stays"
    );
}

#[test]
fn a_visit_at_the_provider_comes_back_with_the_part_and_a_link_elsewhere_gives_none() {
    let Some(desk) = Desk::start().unwrap() else {
        return;
    };
    let browser = &desk.browser;
    let credentials = json!({ "email": EMAIL, "password": PASSWORD });
    // As the callback of the provider does, with the cookie and the fragment.
    let back = |flag: &str| {
        desk.open("/healthz", "body").unwrap();
        let script = format!(
            "localStorage.clear();
             sessionStorage.clear();
             {flag}
             const headers = {{ 'content-type': 'application/json' }};
             const body = JSON.stringify({credentials});
             const response = await fetch('/auth/sign-in/', {{ method: 'POST', headers, body }});
             location.assign('/sign-in#session=' + response.headers.get('wharf-session'));
             return response.status;"
        );
        assert_eq!(browser.run_async(&script).unwrap(), json!(204));
    };
    back("");
    browser.wait_for_text("The sign-in took too long").unwrap();
    assert_eq!(browser.run("return localStorage.length").unwrap(), json!(0));
    back("sessionStorage.setItem('at-provider', 'yes');");
    desk.wait_for_title("Instances").unwrap();
    assert!(!browser.address().unwrap().contains('#'));
}
