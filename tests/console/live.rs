//! Pages follow the event stream, and find it again.

use crate::desk::{Desk, container};
use serde_json::json;
use wharf_tests::{Ports, simulated_node};

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
}

#[test]
fn a_move_to_a_larger_disk_shows_how_far_it_is_until_it_ends() {
    let endless = "disk_grow = 'stopped', \
                   faults = [{ call = 'grow', every = 1, error = 'partly', after_ms = 100 }]";
    let limits = "[limits]\nanswer_wait_ms = 400\n";
    let ports = Ports::take().settings();
    let settings = format!("{limits}{ports}{}", simulated_node("one", endless));
    let Some(desk) = Desk::start_with(&settings).unwrap() else {
        return;
    };
    let name = "calm-heron-7";
    let made = desk.api.create(&container(name)).unwrap();
    made.expect(201).unwrap();
    desk.api.wait_for(name, "running").unwrap();
    desk.api.act(name, "stop").unwrap().expect(200).unwrap();
    desk.api.wait_for(name, "exited").unwrap();
    let larger = json!({ "disk_size_gib": 80 });
    desk.api.patch(name, &larger).unwrap().expect(200).unwrap();
    desk.open(&format!("/instances/{name}"), "#tab-overview")
        .unwrap();
    desk.wait_for_state("Stopped").unwrap();
    // The words beside the state, which the latest events have too.
    let told =
        "document.querySelector('.since').textContent.includes('larger disk, 3.5 GiB so far')";
    desk.api.act(name, "restart").unwrap().expect(200).unwrap();
    desk.wait_for_state("Running").unwrap();
    desk.browser
        .wait_for("the page tells of the move", &format!("return {told}"))
        .unwrap();
    // A stop ends the move.
    desk.api.act(name, "stop").unwrap().expect(200).unwrap();
    desk.wait_for_state("Stopped").unwrap();
    desk.browser
        .wait_for("the words are gone", &format!("return !{told}"))
        .unwrap();
}
