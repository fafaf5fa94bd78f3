//! Several tabs of one browser.

use crate::desk::{Desk, container};
use wharf_tests::{metric, until};

#[test]
fn all_tabs_share_one_event_stream_and_sign_out_together() {
    let Some(desk) = Desk::start().unwrap() else {
        return;
    };
    let browser = &desk.browser;
    let streams = || metric(&desk.api, "wharf_event_streams ");
    let is_one = || Ok((streams()? == 1.0).then_some(()));
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
    assert_eq!(streams().unwrap(), 1.0);

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
    let none = || Ok((streams()? == 0.0).then_some(()));
    until("the stream has ended", none).unwrap();
}
