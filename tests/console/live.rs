//! Pages follow the event stream, and find it again.

use crate::desk::{Desk, container};

#[test]
fn changes_elsewhere_show_at_once_and_after_a_restart_of_the_server() {
    let Some(mut desk) = Desk::start().unwrap() else {
        return;
    };
    desk.browser.wait_for_text("No instances yet").unwrap();
    let made = desk.api.create(&container("seen-at-once")).unwrap();
    made.expect(201).unwrap();
    desk.wait_for_row("seen-at-once", "Running").unwrap();
    desk.api
        .act("seen-at-once", "stop")
        .unwrap()
        .expect(200)
        .unwrap();
    desk.wait_for_row("seen-at-once", "Stopped").unwrap();
    assert_eq!(desk.api.delete("seen-at-once").unwrap().status, 204);
    desk.browser.wait_for_text("No instances yet").unwrap();

    desk.keep_port().unwrap();
    desk.server.kill().unwrap();
    desk.browser
        .wait_for_text("The connection is lost")
        .unwrap();
    desk.picture("lost").unwrap();
    desk.server.run().unwrap();
    let made = desk.api.create(&container("after-it")).unwrap();
    made.expect(201).unwrap();
    desk.wait_for_row("after-it", "Running").unwrap();
    assert!(!desk.browser.text().contains("The connection is lost"));
    desk.finish().unwrap();
}
