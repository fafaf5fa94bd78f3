//! Volumes in the console.

use crate::axe;
use crate::desk::{Desk, container};
use serde_json::{Value, json};
use wharf_tests::{Ports, simulated_node, until};

const BOB: &str = "bob@example.com";

#[test]
fn a_volume_is_created_attached_shared_renamed_and_deleted() {
    let Some(desk) = Desk::start().unwrap() else {
        return;
    };
    let browser = &desk.browser;
    let see = |words: &str| browser.wait_for_text(words).unwrap();
    let get = |path: &str| desk.api.get(path).unwrap().expect(200).unwrap();
    browser.wait_for_text("No instances yet").unwrap();
    browser.type_keys("gv").unwrap();
    desk.wait_for_title("Volumes").unwrap();
    see("There are no volumes yet.");
    // A refusal is beside its field.
    desk.fill("input", "Genome").unwrap();
    desk.click("Create volume").unwrap();
    see("Name must contain only lowercase letters");
    desk.fill("input", "genome").unwrap();
    desk.fill("input[inputmode=numeric]", "40").unwrap();
    see("wharf volume create genome --size 40");
    see("for a whole month");
    desk.click("Create volume").unwrap();
    desk.wait_for_title("genome").unwrap();
    desk.wait_for_state("Ready").unwrap();
    see("No instance has this volume.");

    // The page of a volume leads to an instance with it.
    desk.click("Create instance with it").unwrap();
    desk.wait_for_title("Create instance").unwrap();
    see("The instance is created on the host of its volumes.");
    desk.fill("input[placeholder=\"/data\"]", "/data/genome")
        .unwrap();
    desk.fill("input[placeholder=calm-heron-7]", "reader")
        .unwrap();
    browser
        .run("document.querySelector('.mount input[type=checkbox]').click()")
        .unwrap();
    see("--volume genome:/data/genome:ro");
    desk.settle().unwrap();
    desk.picture("create-with-volume").unwrap();
    axe::check(browser, "create").unwrap();
    desk.click("Create instance").unwrap();
    desk.wait_for_title("reader").unwrap();
    desk.wait_for_state("Running").unwrap();
    see("genome at /data/genome");
    let made = get("/api/instance/reader/");
    assert_eq!(made["volumes"][0]["read_only"], true, "{made}");
    desk.click("Volumes").unwrap();
    desk.wait_for_title("Volumes").unwrap();
    see("reader");
    desk.settle().unwrap();
    desk.picture("volumes").unwrap();
    axe::check(browser, "volumes").unwrap();

    desk.open("/instances/reader#volumes", "table").unwrap();
    see("read-only");
    desk.settle().unwrap();
    desk.picture("instance-volumes").unwrap();
    axe::check(browser, "volumes of an instance").unwrap();
    desk.open("/instances/new?volume=genome", ".mount").unwrap();
    // An instance with another right to the volume is refused in its place.
    browser
        .wait_for_text("instance reader reads genome")
        .unwrap();

    desk.open("/volumes/genome", "table").unwrap();
    see("/data/genome");
    desk.fill("input[placeholder=\"bob@example.com\"]", "Bob@example.com")
        .unwrap();
    see("wharf volume share genome Bob@example.com");
    desk.click("Share it").unwrap();
    browser
        .wait_for("the reader is listed", "return document.querySelector('[aria-label=\"Stop sharing with bob@example.com\"]') !== null")
        .unwrap();
    let bob = desk.server.user(BOB).unwrap();
    let mut body = container("of-bob");
    let genome = get("/api/volume/genome/")["id"].clone();
    body["volumes"] = json!([{ "volume": genome, "path": "/data", "read_only": true }]);
    bob.create(&body).unwrap().expect(201).unwrap();
    desk.open("/volumes/genome", "table").unwrap();
    see("an instance of bob@example.com");
    desk.settle().unwrap();
    desk.picture("volume").unwrap();
    axe::check(browser, "a volume").unwrap();
    browser
        .run("document.querySelector('[aria-label^=\"Stop sharing\"]').click()")
        .unwrap();
    desk.wait_for_dialog().unwrap();
    see("keep it until they are deleted");
    desk.click("Stop sharing").unwrap();
    see("You share this volume with nobody.");
    desk.click("Delete").unwrap();
    desk.wait_for_dialog().unwrap();
    see("Everything on its 40 GiB is lost");
    desk.fill("#typed", "genome").unwrap();
    desk.click("Delete genome").unwrap();
    see("is attached to reader, instances of bob@example.com");
    desk.click("Keep").unwrap();

    desk.fill(
        "input[placeholder=\"\"], .form:last-of-type input",
        "genome-2026",
    )
    .unwrap();
    desk.click("Rename").unwrap();
    desk.wait_for_title("genome-2026").unwrap();
    assert!(browser.address().unwrap().ends_with("/volumes/genome-2026"));
    for (api, name) in [(&desk.api, "reader"), (&bob, "of-bob")] {
        api.delete(name).unwrap().expect(204).unwrap();
    }
    see("No instance has this volume.");
    desk.click("Delete").unwrap();
    desk.wait_for_dialog().unwrap();
    desk.fill("#typed", "genome-2026").unwrap();
    // It is refused until the node was seen without the instances.
    let deleted = "document.querySelector('dialog[open] .danger:not(:disabled)')?.click();
        return document.querySelector('h1').textContent === 'Volumes'";
    browser.wait_for("the volume is deleted", deleted).unwrap();
    desk.wait_for_title("Volumes").unwrap();
    see("There are no volumes yet.");
}

#[test]
fn a_volume_is_attached_to_an_instance_and_detached() {
    let node = simulated_node("one", "late_attach = true");
    let settings = Ports::take().settings() + &node;
    let Some(desk) = Desk::start_with(&settings).unwrap() else {
        return;
    };
    let browser = &desk.browser;
    let see = |words: &str| browser.wait_for_text(words).unwrap();
    let get = |path: &str| desk.api.get(path).unwrap().expect(200).unwrap();
    let body = json!({ "name": "genome", "size_gib": 5 });
    let made = desk.api.send("POST", "/api/volume/", &body).unwrap();
    made.expect(201).unwrap();
    let is_ready = || Ok((get("/api/volume/genome/")["state"] == "ready").then_some(()));
    until("the volume is ready", is_ready).unwrap();
    let made = desk.api.create(&container("box")).unwrap();
    made.expect(201).unwrap();
    desk.api.wait_for("box", "running").unwrap();
    desk.open("/instances/box#volumes", ".form").unwrap();
    see("This instance has no volumes.");
    let choose = "const select = document.querySelector('.form select');
        const has = [...(select?.options ?? [])].some((option) => option.value === 'genome');
        if (!has) return false;
        select.value = 'genome';
        select.dispatchEvent(new Event('change', { bubbles: true }));
        return true";
    browser
        .wait_for("the volume can be chosen", choose)
        .unwrap();
    desk.fill("input[placeholder=\"/data\"]", "/data/genome")
        .unwrap();
    see("wharf attach box genome:/data/genome");
    desk.click("Attach").unwrap();
    see("read and write");
    let now = get("/api/instance/box/");
    assert_eq!(now["volumes"][0]["path"], "/data/genome", "{now}");
    let detach = "document.querySelector('[aria-label=\"Detach genome\"]').click()";
    browser.run(detach).unwrap();
    desk.wait_for_dialog().unwrap();
    see("The data of the volume stays.");
    see("wharf detach box genome");
    desk.click("Detach").unwrap();
    see("This instance has no volumes.");
    assert_eq!(get("/api/volume/genome/")["attached_to"], json!([]));
}

#[test]
fn a_shared_volume_is_its_readers_to_attach_alone() {
    let Some(desk) = Desk::start().unwrap() else {
        return;
    };
    let bob = desk.server.user(BOB).unwrap();
    let post = |path: &str, body: Value| {
        let made = bob.send("POST", path, &body).unwrap();
        made.expect(201).unwrap()
    };
    let volume = post("/api/volume/", json!({ "name": "genome", "size_gib": 5 }));
    let id = volume["id"].as_str().unwrap();
    let path = format!("/api/volume/{id}/share/");
    post(&path, json!({ "user": "ann@example.com" }));
    desk.open("/volumes", "table").unwrap();
    desk.browser.wait_for_text("of bob@example.com").unwrap();
    let button = "return document.querySelector('[aria-label=\"Delete genome\"]')";
    assert!(desk.browser.run(button).unwrap().is_null());
    desk.click("genome").unwrap();
    desk.wait_for_title("genome").unwrap();
    let text = desk.browser.text();
    assert!(text.contains(BOB) && !text.contains("Rename"), "{text}");
    desk.click("Create instance with it").unwrap();
    desk.browser
        .wait_for_text("as its owner shares it")
        .unwrap();
    desk.browser
        .wait_for_text(&format!("--volume {id}:/data:ro"))
        .unwrap();
    // The reader ends the share.
    desk.open(&format!("/volumes/{id}"), "table").unwrap();
    desk.click("Stop reading").unwrap();
    desk.wait_for_dialog().unwrap();
    desk.browser
        .wait_for_text("You can attach it no more.")
        .unwrap();
    let confirm = "document.querySelector('dialog[open] .danger').click()";
    desk.browser.run(confirm).unwrap();
    desk.wait_for_title("Volumes").unwrap();
    desk.browser
        .wait_for_text("There are no volumes yet.")
        .unwrap();
}
