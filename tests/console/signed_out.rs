//! The end of a session, and the pages without one.

use crate::axe;
use crate::desk::{Desk, EMAIL};
use crate::pages::LOOKS;

#[test]
fn the_end_of_a_session_shows_the_sign_in_with_the_reason() {
    let Some(desk) = Desk::start().unwrap() else {
        return;
    };
    let browser = &desk.browser;
    browser.wait_for_text("No instances yet").unwrap();
    desk.server.cli(&["user", "disable", EMAIL]).unwrap();
    desk.wait_for_title("Sign in to Wharf").unwrap();
    browser
        .wait_for_text("The operator has disabled your account.")
        .unwrap();
    desk.picture("disabled").unwrap();
    axe::check(browser, "disabled").unwrap();
    desk.server.cli(&["user", "enable", EMAIL]).unwrap();
    desk.sign_in().unwrap();
    desk.wait_for_title("Instances").unwrap();

    desk.open("/usage", "h1").unwrap();
    desk.wait_for_title("Usage").unwrap();
    // As another browser of the user does.
    desk.fetch("POST", "/auth/sign-out-everywhere/").unwrap();
    desk.wait_for_title("Sign in to Wharf").unwrap();
    browser
        .wait_for_text("Your session was ended elsewhere")
        .unwrap();
    // The sign-in leads back to the page, and the reason is gone.
    desk.sign_in().unwrap();
    desk.wait_for_title("Usage").unwrap();
    assert!(!browser.text().contains("Your session was ended"));
}

#[test]
fn the_pages_without_a_session_are_accessible_and_fit_a_phone() {
    let Some(desk) = Desk::start().unwrap() else {
        return;
    };
    let browser = &desk.browser;
    browser.wait_for_text("No instances yet").unwrap();
    desk.fetch("POST", "/auth/sign-out/").unwrap();
    desk.wait_for_title("Sign in to Wharf").unwrap();
    let link = desk.server.cli(&["user", "invite", EMAIL]).unwrap();
    let (_, token) = link.trim().split_once('#').unwrap();
    let invite = format!("/invite#{token}");
    for (look, scheme, width, height) in LOOKS {
        browser.prefer(scheme).unwrap();
        browser.resize(width, height).unwrap();
        for (name, path) in [
            ("sign-in", "/sign-in"),
            ("invite", &*invite),
            ("invite-wrong", "/invite#nothing"),
        ] {
            let page = format!("{name}-{look}");
            desk.open(path, "h1").unwrap();
            desk.settle().unwrap();
            desk.picture(&page).unwrap();
            axe::check(browser, &page).unwrap();
            let wide = browser.run("return document.documentElement.scrollWidth");
            assert!(wide.unwrap().as_u64().unwrap() <= width.into(), "{page}");
        }
    }
}
