//! The console without a mouse.

use crate::desk::{Desk, container};
use wharf_tests::browser::{ENTER, ESCAPE};

/// WebDriver's character for the Tab key.
const TAB: &str = "\u{E004}";

#[test]
fn the_console_works_by_keyboard() {
    let Some(desk) = Desk::start().unwrap() else {
        return;
    };
    let browser = &desk.browser;
    let made = desk.api.create(&container("by-key")).unwrap();
    made.expect(201).unwrap();
    desk.wait_for_row("by-key", "Running").unwrap();
    let focused = |script: &str| {
        let script = format!("const e = document.activeElement; return {script}");
        browser.run(&script).unwrap()
    };
    // The first stop is the link to the page itself.
    desk.open("/instances", "table a").unwrap();
    browser.type_keys(TAB).unwrap();
    assert_eq!(focused("e.textContent"), "Skip to the page");
    browser.type_keys(ENTER).unwrap();
    assert_eq!(focused("e.id"), "main");
    // Then come the filter, the button, the headers, and the first row.
    let mut order = Vec::new();
    for _ in 0..9 {
        browser.type_keys(TAB).unwrap();
        let name = focused("e.ariaLabel || e.textContent");
        order.push(name.as_str().unwrap().to_owned());
    }
    let expected = [
        "Filter instances",
        "Create instance",
        "Name",
        "State",
        "Flavor",
        "Size",
        "Now",
        "This month",
        "by-key",
    ];
    assert_eq!(order, expected);
    // A browser without time to paint moves the focus as soon as the page is there.
    browser
        .run("window.requestAnimationFrame = () => 0")
        .unwrap();
    browser.type_keys(ENTER).unwrap();
    desk.wait_for_title("by-key").unwrap();
    // The new page has the focus.
    assert_eq!(focused("e.textContent"), "by-key");
    for (keys, title) in [
        ("gu", "Usage"),
        ("ge", "Events"),
        ("ga", "Audit log"),
        ("gs", "API Key"),
        ("c", "Create instance"),
        ("gi", "Instances"),
    ] {
        browser.type_keys(keys).unwrap();
        desk.wait_for_title(title).unwrap();
    }
    browser.type_keys("/nothing-like-it").unwrap();
    browser.wait_for_text("No instance matches").unwrap();
    assert_eq!(focused("e.ariaLabel"), "Filter instances");
    browser.type_keys(ESCAPE).unwrap();
    assert_eq!(focused("e.tagName"), "BODY");
    desk.click("Show all 1").unwrap();
    browser.type_keys("?").unwrap();
    browser.wait_for_text("Filter the list").unwrap();
    browser.type_keys(ESCAPE).unwrap();
    browser
        .wait_for(
            "the dialog is closed",
            "return !document.querySelector('dialog')",
        )
        .unwrap();
    // The tabs of an instance move by arrows.
    desk.open("/instances/by-key", "#tab-overview").unwrap();
    browser
        .run("document.getElementById('tab-overview').focus()")
        .unwrap();
    browser.type_keys("\u{E014}").unwrap();
    assert_eq!(focused("e.textContent"), "Events");
}
