//! Commands on a terminal: questions and progress.

use super::signed_in;
use crate::has;

#[test]
fn a_deletion_asks_for_the_name_on_a_terminal() {
    let (_server, api, shell) = signed_in("");
    shell.ok(&["create", "box", "--wait"]).unwrap();
    let mut refused = shell
        .on_terminal("wharf rm box; echo ended with $?")
        .unwrap();
    refused.wait_for("Type its name to confirm: ").unwrap();
    refused.type_in("y\r").unwrap();
    refused.wait_for("ended with 1").unwrap();
    has(refused.output(), "nothing is deleted");
    refused.end().unwrap();
    assert_eq!(api.list().unwrap().len(), 1);

    // The question shows the name, also for a UUID.
    let uuid = api.list().unwrap()[0]["uuid"].as_str().unwrap().to_owned();
    let line = format!("wharf rm {uuid}; echo ended with $?");
    let mut confirmed = shell.on_terminal(&line).unwrap();
    confirmed.wait_for("Delete box and all its data?").unwrap();
    confirmed.type_in("box\r").unwrap();
    confirmed.wait_for("ended with 0").unwrap();
    confirmed.end().unwrap();
    assert!(api.list().unwrap().is_empty());
}

#[test]
fn progress_is_shown_on_a_terminal_only() {
    let (_server, _, shell) = signed_in("");
    let mut create = shell
        .on_terminal("wharf create box --wait >shown; echo ended with $?")
        .unwrap();
    create.wait_for("ended with 0").unwrap();
    has(create.output(), "Waiting until box is running");
    create.end().unwrap();
    let shown = std::fs::read_to_string(shell.home().join("shown")).unwrap();
    assert!(
        shown.contains("running") && !shown.contains("Waiting"),
        "{shown}"
    );
    let piped = shell.run(&["create", "second", "--wait"]).unwrap();
    let noted = piped.succeeded().unwrap().stderr;
    assert_eq!(noted, "second is created and starting.\n");
}
