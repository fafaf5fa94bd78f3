//! `wharf volume`, `wharf create --volume`, and the words of refusals.

use super::{refused, signed_in};
use crate::{Expected, has, start, until_true};
use serde_json::{Value, json};
use wharf_tests::{Shell, until};

#[test]
fn a_volume_is_shared_read_and_removed() {
    let (server, api) = start();
    let ann = Shell::signed_in(&server, "ann@example.com").unwrap();
    let bob = Shell::signed_in(&server, "bob@example.com").unwrap();
    let made = ann.run(&["volume", "create", "genome", "--size", "40"]);
    let made = made.unwrap();
    has(&made.stdout, "40 GiB");
    has(&made.stdout, "ready");
    has(&made.stderr, "genome is on one host for good");
    let wrong = ["volume", "create", "genome", "--size", "0"];
    refused(
        &ann,
        &wrong,
        1,
        "--size (size_gib) must be between 1 and 2000",
    );
    let filler = ["create", "filler", "--volume", "genome:/data", "--wait"];
    let made = ann.run(&filler).unwrap();
    has(&made.stdout, "volumes                  genome:/data\n");
    has(&made.stderr, "starting on the host of its volume genome.");
    has(ann.ok(&["volume", "ls"]).unwrap(), "filler:/data");
    let reader = ["create", "reader", "--volume", "genome:/data:ro"];
    refused(
        &ann,
        &reader,
        1,
        "--volume (volumes) instance filler writes genome",
    );
    let remove = ["volume", "rm", "--yes", "genome", "none"];
    refused(
        &ann,
        &remove,
        1,
        "genome: Volume genome is attached to filler",
    );
    ann.ok(&["rm", "--yes", "filler"]).unwrap();

    refused(&bob, &["volume", "show", "genome"], 3, "Volume not found.");
    has(
        ann.ok(&["volume", "share", "genome", "Bob@example.com"])
            .unwrap(),
        "bob@example.com can attach genome read-only.",
    );
    has(
        bob.ok(&["volume", "list"]).unwrap(),
        "ann@example.com/genome",
    );
    refused(&bob, &reader, 1, "as in owner@example.com/genome");
    let of_ann = ["--volume", "ann@example.com/genome:/data:ro"];
    let reader = [&["create", "reader"][..], &of_ann].concat();
    until_true("the writer is gone", || {
        bob.run(&reader).unwrap().code == Some(0)
    });
    has(
        bob.ok(&["volume", "show", "ann@example.com/genome"])
            .unwrap(),
        "reader:/data:ro",
    );
    has(bob.ok(&["show", "reader"]).unwrap(), "genome:/data:ro");
    let shown = ann.ok(&["volume", "show", "genome"]).unwrap();
    has(&shown, "shared_with     bob@example.com\n");
    has(&shown, "attached_to     (bob@example.com)\n");
    has(&shown, "usd_per_hour    0.0056\n");
    let nobody = ["volume", "unshare", "genome", "carol@example.com"];
    refused(&ann, &nobody, 3, "it is shared with bob@example.com.");
    ann.ok(&["volume", "unshare", "genome", "BOB@example.com"])
        .unwrap();
    refused(&ann, &nobody, 3, "it is shared with nobody.");
    let again = [&["create", "again"][..], &of_ann].concat();
    refused(&bob, &again, 1, "--volume (volumes) ");
    // A reader ends the own share.
    ann.ok(&["volume", "share", "genome", "bob@example.com"])
        .unwrap();
    let leave = ["volume", "unshare", "ann@example.com/genome"];
    bob.ok(&[&leave[..], &["bob@example.com"]].concat())
        .unwrap();
    refused(&ann, &nobody, 3, "it is shared with nobody.");

    let large = ["create", "--vcpus", "64", "--volume", "genome:/data:ro"];
    refused(&ann, &large, 5, "the volume genome must be on its host");
    let text = ann.run(&large).unwrap().stderr;
    has(&text, "n_vcpus: requested 64");
    has(
        &text,
        "This would fit: wharf create --volume genome:/data:ro --vcpus",
    );
    assert!(!text.contains("volumes: requested"), "{text}");
    let vm = ["create", "--type", "vm", "--volume", "genome:/data"];
    refused(&ann, &vm, 1, "--volume (volumes) ");
    for wrong in ["genome", "genome:data", ":/data", "genome:/data:rx"] {
        let words = ["create", "--volume", wrong];
        refused(&ann, &words, 2, "such as genome:/data or genome:/data:ro");
    }
    has(ann.ok(&["quota"]).unwrap(), "volume_gib       40");
    has(ann.ok(&["cost"]).unwrap(), "volume  40 GiB");
    ann.ok(&["volume", "rename", "genome", "reference"])
        .unwrap();
    has(bob.ok(&["show", "reader"]).unwrap(), "reference:/data:ro");
    bob.ok(&["rm", "--yes", "reader"]).unwrap();
    until("the volume can be deleted", || {
        let ended = ann.run(&["volume", "rm", "--yes", "reference"])?;
        Ok((ended.code == Some(0)).then_some(()))
    })
    .unwrap();
    assert_eq!(
        api.send("GET", "/api/volume/", &Value::Null).is(200),
        json!([])
    );
    refused(
        &ann,
        &["volume", "rm", "--yes", "none"],
        3,
        "there is no volume none",
    );
}

#[test]
fn a_deletion_asks_for_the_name_of_the_volume() {
    let (_server, api, shell) = signed_in("");
    shell
        .ok(&["volume", "create", "genome", "--size", "1"])
        .unwrap();
    refused(&shell, &["volume", "rm", "genome"], 2, "give --yes");
    let mut terminal = shell.on_terminal("wharf volume rm genome").unwrap();
    terminal.wait_for("Type its name to confirm").unwrap();
    terminal.type_in("genom\n").unwrap();
    terminal.wait_for("nothing is deleted").unwrap();
    assert!(terminal.end().is_err());
    let mut terminal = shell.on_terminal("wharf volume rm genome").unwrap();
    terminal.wait_for("Type its name to confirm").unwrap();
    terminal.type_in("genome\n").unwrap();
    terminal.wait_for("genome is deleted.").unwrap();
    terminal.end().unwrap();
    assert_eq!(
        api.send("GET", "/api/volume/", &Value::Null).is(200),
        json!([])
    );
}

#[test]
fn volumes_are_attached_and_detached_later() {
    let (_server, _, shell) = signed_in("late_attach = true");
    shell
        .ok(&["volume", "create", "genome", "--size", "1"])
        .unwrap();
    shell.ok(&["create", "box", "--wait"]).unwrap();
    has(
        shell.ok(&["attach", "box", "genome:/data:ro"]).unwrap(),
        "Volume genome is attached at /data.",
    );
    has(shell.ok(&["show", "box"]).unwrap(), "genome:/data:ro");
    let wrong = shell.run(&["attach", "box", "none:/other"]).unwrap();
    has(&wrong.stderr, "VOLUME (volume) ");
    let wrong = shell.run(&["attach", "box", "genome:/etc"]).unwrap();
    has(&wrong.stderr, "PATH (path) ");
    has(
        shell.ok(&["detach", "box", "genome"]).unwrap(),
        "Volume genome is detached.",
    );
}
