//! Several tabs of one browser.

use crate::desk::{Desk, EMAIL, container};
use wharf_tests::until;

/// The number of event streams that the server has open.
fn streams(desk: &Desk, key: &str) -> Option<u32> {
    let url = format!("{}/metrics", desk.server.base_url());
    let answer = ureq::get(url)
        .header("authorization", format!("Bearer {key}"))
        .call();
    let text = answer.unwrap().body_mut().read_to_string().unwrap();
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix("wharf_event_streams ")?.parse().ok())
}

#[test]
fn all_tabs_share_one_event_stream_and_sign_out_together() {
    let Some(desk) = Desk::start().unwrap() else {
        return;
    };
    let browser = &desk.browser;
    let args = ["key", "new", EMAIL, "--scope", "metrics"];
    let key = desk.server.cli(&args).unwrap();
    let is_one = || Ok((streams(&desk, key.trim()) == Some(1)).then_some(()));
    browser.wait_for_text("No instances yet").unwrap();
    let first = browser.new_tab().unwrap();
    desk.open("/instances", "h1").unwrap();
    browser.wait_for_text("No instances yet").unwrap();
    let second = browser.new_tab().unwrap();
    desk.open("/events", "h1").unwrap();
    until("the server has one stream", is_one).unwrap();

    let made = desk.api.create(&container("in-all-tabs")).unwrap();
    made.expect(201).unwrap();
    browser.wait_for_text("The instance is ready.").unwrap();
    for tab in [&first, &second] {
        browser.switch_to(tab).unwrap();
        desk.wait_for_row("in-all-tabs", "Running").unwrap();
    }
    assert_eq!(streams(&desk, key.trim()), Some(1));

    desk.open("/settings/account", "h1").unwrap();
    desk.click("Sign out").unwrap();
    desk.wait_for_title("Sign in to Wharf").unwrap();
    let notice = "return document.querySelector('.notice')?.textContent ?? null";
    assert!(browser.run(notice).unwrap().is_null());
    browser.switch_to(&first).unwrap();
    desk.wait_for_title("Sign in to Wharf").unwrap();
    let words = browser.wait_for("the reason", notice).unwrap();
    let words = words.as_str().unwrap();
    assert!(
        words.contains("in another tab") || words.contains("by a sign-out"),
        "{words}"
    );
    let none = || Ok((streams(&desk, key.trim()) == Some(0)).then_some(()));
    until("the stream has ended", none).unwrap();
    desk.finish().unwrap();
}
