//! Snapshots in the console.

use crate::axe;
use crate::desk::{Desk, container};
use serde_json::json;

#[test]
fn a_snapshot_is_taken_restored_cloned_planned_and_counted() {
    let Some(desk) = Desk::start().unwrap() else {
        return;
    };
    let browser = &desk.browser;
    let see = |words: &str| browser.wait_for_text(words).unwrap();
    let press = |label: &str| {
        let script = format!(
            "const button = document.querySelector('[aria-label={}]'); button?.click();
             return Boolean(button)",
            json!(label)
        );
        browser.wait_for(label, &script).unwrap();
        desk.wait_for_dialog().unwrap();
    };
    let snapshots = || {
        let list = desk.api.get("/api/snapshot/").unwrap().expect(200).unwrap();
        list.as_array().unwrap().clone()
    };
    desk.api
        .create(&container("box"))
        .unwrap()
        .expect(201)
        .unwrap();
    desk.api.wait_for("box", "running").unwrap();
    desk.open("/instances/box#snapshots", ".form").unwrap();
    see("This instance has no snapshots.");
    see("box is not interrupted");
    // A refusal is beside its field.
    desk.fill("input[placeholder=before-the-upgrade]", "Before")
        .unwrap();
    desk.click("Take it").unwrap();
    see("Name must contain only lowercase letters");
    desk.fill("input[placeholder=before-the-upgrade]", "before")
        .unwrap();
    see("wharf snapshot create box --name before");
    desk.click("Take it").unwrap();
    browser
        .wait_for(
            "the snapshot is ready",
            "return document.querySelector('td .state.ready') !== null",
        )
        .unwrap();
    desk.settle().unwrap();
    desk.picture("snapshots").unwrap();
    axe::check(browser, "snapshots of an instance").unwrap();

    press("Restore before");
    see("Stop box first.");
    desk.click("Close").unwrap();
    desk.api.act("box", "stop").unwrap().expect(200).unwrap();
    desk.wait_for_state("Stopped").unwrap();
    press("Restore before");
    see("All changes since then are lost");
    see("box starts only after it");
    see("wharf snapshot restore box/before --snapshot-first");
    desk.fill("#typed", "box").unwrap();
    desk.click("Restore box").unwrap();
    wharf_tests::until("the present disk is a snapshot", || {
        Ok((snapshots().len() == 2).then_some(()))
    })
    .unwrap();
    desk.open("/instances/box#events", ".events").unwrap();
    see("The disk is that of the snapshot before.");

    desk.open("/instances/box#snapshots", "table").unwrap();
    press("Clone before");
    desk.fill("dialog input[placeholder=calm-heron-7]", "copy")
        .unwrap();
    see("wharf snapshot clone box/before copy --vcpus 2 --mem 4 --disk 40 --wait");
    desk.fill("dialog input[name=disk_size_gib]", "39").unwrap();
    desk.click("Create instance").unwrap();
    see("Disk in GiB must be");
    desk.fill("dialog input[name=disk_size_gib]", "40").unwrap();
    desk.click("Create instance").unwrap();
    desk.wait_for_title("copy").unwrap();
    desk.wait_for_state("Running").unwrap();

    desk.open("/instances/box#snapshots", "table").unwrap();
    see("wharf snapshot plan set box --every 24 --keep 7");
    desk.click("Set the plan").unwrap();
    see("The next snapshot is due on");
    desk.click("End the plan").unwrap();
    browser
        .wait_for(
            "the plan has ended",
            "return !document.body.textContent.includes('is due on')",
        )
        .unwrap();
    press("Delete before");
    see("The instance and clones stay.");
    let confirm = "document.querySelector('dialog[open] .danger').click()";
    browser.run(confirm).unwrap();
    wharf_tests::until("the snapshot is deleted", || {
        Ok((snapshots().len() == 1).then_some(()))
    })
    .unwrap();
    desk.click("Delete").unwrap();
    desk.wait_for_dialog().unwrap();
    see("Its snapshot is deleted with it.");
    desk.settle().unwrap();
    desk.picture("delete-with-snapshot").unwrap();
    desk.fill("#typed", "box").unwrap();
    desk.click("Delete box").unwrap();
    desk.wait_for_title("Instances").unwrap();
    assert_eq!(snapshots().len(), 0);
}

#[test]
fn a_machine_says_why_it_has_no_snapshots() {
    let Some(desk) = Desk::start().unwrap() else {
        return;
    };
    let machine = json!({
        "resource_type": "vm", "name": "gate", "n_vcpus": 1, "mem_gib": 2, "disk_size_gib": 20,
    });
    desk.api.create(&machine).unwrap().expect(201).unwrap();
    desk.open("/instances/gate#snapshots", ".none").unwrap();
    desk.browser
        .wait_for_text("Virtual machines have no snapshots.")
        .unwrap();
}
