//! Promises of the request files about volumes: a driver names no other owner's volume, no directory of the
//! node, and no size.

use crate::promises::{PromiseCall, body, refused};
use serde_json::json;

const OWN: &str = "1c9e6679-7425-40de-944b-e07fc1f90ae7";
const OTHER: &str = "3c9e6679-7425-40de-944b-e07fc1f90ae7";
const LAYER: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// The requests of Docker that make a volume, and those that remove it.
const MAKES: [&str; 6] = [
    "create-holder",
    "start-holder",
    "wait-for-holder",
    "read-place",
    "read-root",
    "create-volume",
];
const REMOVES: [&str; 2] = ["delete-volume", "delete-holder"];

#[test]
fn a_volume_is_made_and_removed_only_by_the_calls_about_it() {
    let image = [("image", "localhost/wharf/base:1")];
    for call in ["node", "instance", "change", "create", "mark", "survey"] {
        let call = PromiseCall::docker(json!({ "call": call }));
        for request in MAKES.into_iter().chain(REMOVES) {
            let arguments = if request == "create-holder" {
                &image[..]
            } else {
                &[]
            };
            assert!(call.send(request, arguments).is_err(), "{request}");
        }
    }
    let removal = PromiseCall::docker(json!({ "call": "volume" }));
    for request in MAKES {
        let arguments = if request == "create-holder" {
            &image[..]
        } else {
            &[]
        };
        refused(removal.send(request, arguments), "only for");
    }
    for request in ["create", "start", "delete", "write-files", "create-network"] {
        refused(removal.send(request, &[]), "only for");
    }
}

#[test]
fn a_driver_chooses_no_volume_path_or_size() {
    let make = PromiseCall::docker(json!({ "call": "make" }));
    for request in MAKES.into_iter().chain(REMOVES) {
        for argument in ["volume", "device", "size", "name", "mib"] {
            let answer = make.send(request, &[(argument, OTHER)]);
            refused(answer, "there is no argument");
        }
    }
    refused(
        make.send("create-holder", &[("image", "evil:1")]),
        "argument image",
    );
    let create = PromiseCall::docker(json!({ "mounts": [{ "volume": OWN, "path": "/data" }] }));
    let read = create.send("read-mount", &[("mount", OWN)]).unwrap();
    assert!(read.contains(OWN), "{read}");
    for volume in [
        OTHER,
        "",
        "..",
        "wharf-c8ba4720-ac4f-4603-8aa4-a08d240a1045",
    ] {
        refused(
            create.send("read-mount", &[("mount", volume)]),
            "argument mount",
        );
    }
}

#[test]
fn the_directory_of_a_volume_is_the_one_that_its_holder_told() {
    let mut make = PromiseCall::docker(json!({ "call": "make" }));
    let told = |line: &str| {
        format!("\u{1}\0\0\u{4}73 47 0:39 {line}\n9 9 0:1 / /proc rw - proc proc rw\n")
    };
    refused(make.send("create-volume", &[]), "create-volume");
    make.answer_text("read-root", 200, r#"{"DockerRootDir":"/var/lib/docker"}"#);
    for wrong in [
        format!("/btrfs/subvolumes/{LAYER} /mnt rw"),
        format!("/btrfs/subvolumes/{LAYER}/../.. / rw"),
        format!("/btrfs/subvolumes/{} / rw", &LAYER[1..]),
        format!("/etc / rw subvol=/btrfs/subvolumes/{LAYER}"),
        "/ / rw".to_owned(),
    ] {
        make.answer_text("read-place", 200, &told(&wrong));
        refused(make.send("create-volume", &[]), "create-volume");
    }
    let right = told(&format!("/docker/btrfs/subvolumes/{LAYER} / rw - btrfs"));
    make.answer_text("read-place", 404, &right);
    refused(make.send("create-volume", &[]), "create-volume");
    make.answer_text("read-place", 200, &right);
    let written = body(&make.send("create-volume", &[]).unwrap());
    let device = format!("/var/lib/docker/btrfs/subvolumes/{LAYER}/volume");
    assert_eq!(written["DriverOpts"]["device"], device);
    // Two places are none.
    let other = LAYER.replace("00", "11");
    let other = told(&format!("/btrfs/subvolumes/{other} / rw"));
    make.answer_text("read-place", 200, &other);
    refused(make.send("create-volume", &[]), "create-volume");
    for root in ["/var/../etc", "relative", "/a/./b", "/", "/a//b"] {
        let mut make = PromiseCall::docker(json!({ "call": "make" }));
        make.answer_text("read-place", 200, &right);
        let info = json!({ "DockerRootDir": root }).to_string();
        make.answer_text("read-root", 200, &info);
        refused(make.send("create-volume", &[]), "create-volume");
    }
}

#[test]
fn on_incus_only_the_calls_volumes_are_attached() {
    let mut change = PromiseCall::incus("change");
    for device in ["root", "eth0", "gpu0", "port22", "vol-x", "vol-"] {
        let answer = change.send("detach", &[("device", device)]);
        refused(answer, "argument device");
    }
    let device = format!("vol-{OTHER}");
    let written = body(&change.send("detach", &[("device", &device)]).unwrap());
    assert_eq!(
        written,
        json!({ "devices": { device: { "type": "none" } } })
    );
    assert_eq!(
        body(&change.send("attach", &[]).unwrap()),
        json!({ "devices": {} })
    );
    refused(
        change.send("attach", &[("source", "/")]),
        "there is no argument",
    );
    change.answer_text("read", 200, "{}");
    for request in ["create-volume", "complete-volume", "delete-volume"] {
        refused(change.send(request, &[]), "only for");
    }
    let reads = PromiseCall::incus("instance");
    assert!(reads.send("attach", &[]).is_err());
}
