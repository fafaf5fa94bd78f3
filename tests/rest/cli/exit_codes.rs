//! Exit codes tell the kind of a failure, and messages what would be right.

use super::{refused, signed_in};
use crate::{free_port, has};
use wharf_tests::{Shell, end};

#[test]
fn each_kind_of_failure_has_its_code() {
    let (server, _, shell) = signed_in("");
    let closed = format!("http://127.0.0.1:{}", free_port());
    let elsewhere = [
        ("WHARF_URL", closed.as_str()),
        ("WHARF_API_KEY", "wharf_x_y"),
    ];
    let wrong_key = [
        ("WHARF_URL", server.base_url()),
        ("WHARF_API_KEY", "wharf_x_y"),
    ];
    let no_key = [("WHARF_URL", server.base_url())];
    shell.ok(&["create", "box"]).unwrap();
    for (code, args, variables, message) in [
        (2, &["create", "--vcpus", "many"][..], &[][..], "--vcpus"),
        (2, &["rm", "box"], &[], "--yes"),
        (2, &["resize", "box"], &[], "--vcpus"),
        (2, &["show", ".."], &[], "not a name"),
        (1, &["create", "--vcpus", "0"], &[], "--vcpus (n_vcpus)"),
        (1, &["create", "box"], &[], "NAME (name) is already taken"),
        (1, &["create", "--flavor", "none"], &[], "--flavor (flavor)"),
        (
            1,
            &["create", "--key", "/dev/null"],
            &[],
            "--key (public_key)",
        ),
        (3, &["show", "nothing"], &[], "Instance not found."),
        (3, &["rm", "--yes", "nothing"], &[], "Instance not found."),
        (4, &["ls"], &wrong_key, "Invalid or missing API key."),
        (4, &["ls"], &no_key, "WHARF_API_KEY is not set"),
        (
            4,
            &["ls", "--profile", "none"],
            &[],
            "wharf login URL --profile none",
        ),
        (6, &["ls"], &elsewhere, "not reachable"),
        (
            7,
            &["wait", "box", "--for", "error", "--timeout", "1"],
            &[],
            "not in error after 1 s",
        ),
    ] {
        let ended = shell.run_with(args, variables, "").unwrap();
        assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(message), "{args:?}: {ended:?}");
        assert_eq!(ended.stdout, "", "{args:?}");
    }
    assert_eq!(Shell::new().unwrap().run(&["ls"]).unwrap().code, Some(4));
    assert_eq!(
        shell.run(&["show", "nothing", "-o", "xml"]).unwrap().code,
        Some(2)
    );
}

/// The shell runs the command that the message of the first one shows.
#[test]
fn a_shortage_shows_the_command_that_fits() {
    let (_server, api, shell) = signed_in("");
    let create = [
        "create", "large", "--vcpus", "2", "--mem", "512", "--disk", "600",
    ];
    let short = shell.run(&create).unwrap();
    assert_eq!(short.code, Some(5), "{short:?}");
    has(&short.stderr, "mem_gib: requested 512, available 32");
    let mut lines = short.stderr.lines();
    let command = lines
        .find_map(|line| line.strip_prefix("This would fit: "))
        .unwrap();
    assert!(
        command.starts_with("wharf create large --vcpus 2"),
        "{command}"
    );
    let words: Vec<_> = command.split(' ').skip(1).collect();
    shell.ok(&words).unwrap();
    let made = api.wait_for("large", "running").unwrap();
    assert_eq!(made["mem_gib"], 32.0);

    refused(
        &shell,
        &["resize", "large", "--vcpus", "200"],
        5,
        "This would fit: wharf resize large --vcpus 16",
    );
}

#[test]
fn a_wait_ends_when_the_instance_fails() {
    let (_server, _, shell) =
        signed_in("faults = [{ call = \"ensure\", nth = 1, error = \"failed\" }]");
    refused(
        &shell,
        &["create", "box", "--wait", "--timeout", "60"],
        1,
        "wharf events box",
    );
}

#[test]
fn a_reader_that_closes_early_is_no_failure() {
    let (_server, _, shell) = signed_in("");
    let script = "set -o pipefail; \"$0\" ls | true";
    let wharf = wharf_tests::wharf_binary();
    let mut bash = shell.own("bash".as_ref(), &["-c", script, wharf.to_str().unwrap()]);
    let ended = end(&mut bash, "").unwrap().succeeded().unwrap();
    assert_eq!(ended.stderr, "");
}
