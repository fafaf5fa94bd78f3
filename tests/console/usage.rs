//! The page of costs.

use crate::desk::{Desk, container};
use wharf_tests::until;

#[test]
fn a_deleted_instance_keeps_its_name_flavor_and_size() {
    let Some(desk) = Desk::start().unwrap() else {
        return;
    };
    let name = "brave-otter-12";
    let created = desk.api.create(&container(name)).unwrap();
    let created = created.expect(201).unwrap();
    desk.api.wait_for(name, "running").unwrap();
    desk.api.delete(name).unwrap().expect(204).unwrap();
    let id = created["uuid"].as_str().unwrap();
    let purged = || {
        Ok(desk
            .server
            .cli(&["events", id])?
            .contains("purged")
            .then_some(()))
    };
    until("the instance is purged", purged).unwrap();
    desk.open("/usage", "table.list").unwrap();
    desk.browser.wait_for_text(name).unwrap();
    desk.browser.wait_for_text("base · ").unwrap();
    desk.browser.wait_for_text("Deleted").unwrap();
}
