//! Promises of the request files about snapshots: a driver names no other snapshot than that of the call, and
//! no other instance.

use crate::promises::{PromiseCall, body, refused};
use serde_json::json;

const SNAPSHOT: &str = "3c9e6679-7425-40de-944b-e07fc1f90ae7";
const INSTANCE: &str = "0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f";
/// The container of the instance on Docker, and another one.
const OWN: &str = "wharf-0b0f1f3e-3c1e-4f43-9d2b-2c1c1f8f8f8f";
const OTHER: &str = "wharf-11111111-3c1e-4f43-9d2b-2c1c1f8f8f8f";
const IMAGE: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

fn of(instance: &str) -> serde_json::Value {
    json!({ "snapshot": { "id": SNAPSHOT, "instance": instance, "incarnation": 3 } })
}

#[test]
fn on_incus_each_call_has_its_own_snapshot() {
    let bytes = ("bytes", "1");
    let digest = ("digest", "0123456789abcdef");
    for (request, arguments, calls) in [
        ("take-snapshot", &[][..], &["take"][..]),
        ("note-snapshot", &[bytes], &["take"]),
        ("drop-snapshot", &[], &["take", "drop"]),
        ("note-restore", &[], &["restore"]),
        ("restore", &[], &["restore"]),
        ("read-snapshot", &[], &["take", "create", "restore"]),
        ("furnish", &[digest], &["create", "restore"]),
    ] {
        for call in [
            "node", "instance", "change", "take", "drop", "create", "restore", "move",
        ] {
            let sent = PromiseCall::incus_with(call, of(INSTANCE)).send(request, arguments);
            assert_eq!(
                sent.is_ok(),
                calls.contains(&call),
                "{request} in {call}: {sent:?}"
            );
        }
    }
    let take = PromiseCall::incus_with("take", of(INSTANCE));
    for argument in ["name", "snapshot", "instance", "stateful"] {
        refused(
            take.send("take-snapshot", &[(argument, "x")]),
            "there is no argument",
        );
    }
}

#[test]
fn on_incus_only_images_with_the_content_of_the_call_are_read_taken_and_deleted() {
    let own = format!("wh-240a1045-{INSTANCE}-3");
    let (digest, image) = (("digest", "0123456789abcdef"), ("image", IMAGE));
    let taken = [digest, image, ("bytes", "1")];
    for (call, list, content) in [
        ("change", "images-of-instance", own.clone()),
        ("create", "images-of-instance", own),
        ("send", "images-of-snapshot", format!("wharf-{SNAPSHOT}")),
    ] {
        let begun = |content: &str| {
            let mut begun = PromiseCall::incus_with(call, of(INSTANCE));
            let one = json!({ "fingerprint": IMAGE, "properties": { "wharf.content": content } });
            begun.answer(list, &[], 200, &json!({ "metadata": [one] }));
            begun
        };
        let all = |of: &PromiseCall| match call {
            "send" => vec![of.send("delete-image", &[image]), of.copy("send", &[image])],
            "change" => vec![
                of.send("delete-image", &[image]),
                of.copy("offer", &[image]),
            ],
            _ => vec![of.send("create-fetched", &taken)],
        };
        for answer in all(&begun(&content)) {
            answer.unwrap();
        }
        for other in ["", "wh-240a1045-11111111-3c1e-4f43-9d2b-2c1c1f8f8f8f-3"] {
            for answer in all(&begun(other)) {
                refused(answer, "argument image");
            }
        }
    }
}

#[test]
fn on_incus_a_clone_has_no_device_of_its_source() {
    let other = "1c9e6679-7425-40de-944b-e07fc1f90ae7";
    let mut create = PromiseCall::incus_with("create", of(other));
    let arguments = [("digest", "0123456789abcdef"), ("bytes", "1")];
    // Without a look at them, it would have them all.
    refused(create.send("create-clone", &arguments), "learnt.device");
    let devices = json!({ "metadata": { "devices": {
        "root": { "type": "disk" }, "eth0": { "type": "nic" }, "gpu0": { "type": "gpu" },
        "port22": { "type": "proxy" }, "vol-1c9e6679-7425-40de-944b-e07fc1f90ae7": { "type": "disk" },
    } } });
    create.answer_text("read-snapshot", 200, &devices.to_string());
    let clone = body(&create.send("create-clone", &arguments).unwrap());
    let given = clone["devices"].as_object().unwrap();
    assert_eq!(given.len(), 5);
    let own = given.iter().filter(|(_, device)| device["type"] != "none");
    assert!(own.map(|(name, _)| name).eq(["root"]), "{clone}");
    // Only a snapshot makes a clone.
    let without = PromiseCall::incus_with("create", json!({ "learnt": { "device": ["eth0"] } }));
    assert!(without.send("create-clone", &arguments).is_err());
}

/// A call about a snapshot on Docker.
fn docker(call: &str) -> PromiseCall {
    let mut sample = of(INSTANCE);
    sample["call"] = call.into();
    PromiseCall::docker(sample)
}

/// The engine tells the container's image, and the size of that.
fn measured(take: &mut PromiseCall, image: &serde_json::Value) {
    let container = json!({ "Image": format!("sha256:{IMAGE}") });
    take.answer("read", &[("container", OWN)], 200, &container);
    take.answer("read-own-image", &[("image", IMAGE)], 200, image);
}

#[test]
fn on_docker_a_snapshot_is_taken_and_removed_only_by_the_calls_about_it() {
    for call in [
        "node", "instance", "change", "create", "restore", "take", "drop", "make",
    ] {
        let taken = docker(call).job("commit", &[("container", OWN)]);
        assert!(call == "take" || taken.is_err_and(|why| !why.contains("learnt")));
        let dropped = docker(call).send("drop-snapshot", &[]);
        assert_eq!(dropped.is_ok(), call == "drop", "{call}");
    }
    for request in [
        "start",
        "stop",
        "delete",
        "resize",
        "create",
        "write-files",
        "name-whole",
    ] {
        refused(docker("drop").send(request, &[]), "only for");
    }
    for request in ["create", "write-files", "name-whole"] {
        refused(docker("take").send(request, &[]), "only for");
    }
    let dropped = docker("drop").send("drop-snapshot", &[]).unwrap();
    assert!(
        dropped.contains(SNAPSHOT) && !dropped.contains("force"),
        "{dropped}"
    );
}

#[test]
fn on_docker_content_leaves_by_the_carrier_of_the_snapshot_only() {
    let carrier = format!("wharf-carrier-{SNAPSHOT}");
    for call in [
        "node", "instance", "change", "create", "restore", "take", "drop", "send",
    ] {
        let sent = docker(call).copy("send", &[]);
        assert_eq!(sent.is_ok(), call == "send", "{call}: {sent:?}");
        let made = docker(call).send("create-carrier", &[]);
        assert_eq!(made.is_ok(), call == "send", "{call}: {made:?}");
        let removed = docker(call).send("remove-carrier", &[]);
        let may_remove = ["send", "drop"].contains(&call);
        assert_eq!(removed.is_ok(), may_remove, "{call}: {removed:?}");
    }
    let send = docker("send");
    assert_eq!(
        send.copy("send", &[]).unwrap(),
        format!("GET /containers/{carrier}/export\n")
    );
    let named = send.copy("send", &[("container", OWN)]);
    refused(named, "there is no argument \"container\"");
    for request in ["start", "delete", "drop-snapshot", "write-files"] {
        refused(send.send(request, &[]), "only for");
    }
    for transfer in ["content", "offer", "fetch"] {
        refused(send.copy(transfer, &[]), "only for");
    }
}

#[test]
fn on_docker_a_driver_chooses_no_snapshot_image_or_size() {
    let mut take = docker("take");
    // The size of the image is what the engine told.
    assert!(take.job("commit", &[("container", OWN)]).is_err());
    measured(
        &mut take,
        &json!({ "Config": { "Labels": { "io.wharf.image-bytes": "77" } } }),
    );
    let written = take.job("commit", &[("container", OWN)]).unwrap();
    assert!(
        written.contains("image-bytes%3D77") && written.contains("pause=true"),
        "{written}"
    );
    refused(
        take.job("commit", &[("container", OTHER)]),
        "argument container",
    );
    for argument in ["repo", "tag", "changes", "pause", "snapshot", "image"] {
        let sent = take.job("commit", &[("container", OWN), (argument, "x")]);
        refused(sent, "there is no argument");
    }
    for request in ["read-own-image", "read-own-history"] {
        let other = IMAGE.replace('0', "1");
        refused(take.send(request, &[("image", &other)]), "argument image");
    }
    refused(
        docker("drop").send("unpause", &[("container", OTHER)]),
        "argument container",
    );
    let pauses = docker("drop").send("read-pauses", &[("container", OTHER), ("until", "1")]);
    refused(pauses, "argument container");
}

#[test]
fn on_docker_an_instance_is_made_from_no_other_image_than_its_own() {
    let plain = PromiseCall::docker(json!({}));
    let create = [("digest", "0123456789abcdef")];
    let written = plain.send("create", &create).unwrap();
    assert!(!written.contains("wharf-snapshot"), "{written}");
    let restored = [create[0], ("restored", "true")];
    refused(plain.send("create", &restored), "restored");
    let written = docker("restore").send("create", &restored).unwrap();
    assert!(
        written.contains(&format!("localhost/wharf-snapshot/{SNAPSHOT}:1")),
        "{written}"
    );
    for request in ["read-snapshot", "read-snapshot-history", "measure-snapshot"] {
        assert!(plain.send(request, &[]).is_err(), "{request}");
        assert!(
            docker("create")
                .send(request, &[])
                .unwrap()
                .contains(SNAPSHOT)
        );
    }
}
