//! Secrets are in no arguments, and in no output but the JSON of the interface.

use super::{refused, signed_in};
use crate::Expected;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

/// Records its arguments and variables, and asks for the password as OpenSSH does.
const SSH: &str = r#"#!/bin/sh
printf '%s\n' "$@" >"$HOME/arguments"
env >"$HOME/variables"
"$SSH_ASKPASS" "user@127.0.0.1's password: " >"$HOME/password"
"#;

#[test]
fn openssh_gets_the_password_through_a_pipe_only() {
    let (_server, api, shell) = signed_in("");
    shell.ok(&["create", "box", "--wait"]).unwrap();
    let instance = api.instance("box").is(200);
    let programs = shell.home().join("bin");
    fs::create_dir(&programs).unwrap();
    fs::write(programs.join("ssh"), SSH).unwrap();
    fs::set_permissions(programs.join("ssh"), Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let ssh = ["ssh", "box", "--", "uname", "-a"];
    shell
        .run_with(&ssh, &[("PATH", &path)], "")
        .unwrap()
        .succeeded()
        .unwrap();

    let read = |name| fs::read_to_string(shell.home().join(name)).unwrap();
    let password = instance["original_service_password"].as_str().unwrap();
    assert_eq!(read("password").trim(), password);
    let (arguments, variables) = (read("arguments"), read("variables"));
    assert!(!arguments.contains(password) && !variables.contains(password));
    assert!(!arguments.contains("wharf_") && !variables.contains("wharf_"));
    let port = instance["wan_ssh_port"].to_string();
    let uuid = instance["uuid"].as_str().unwrap();
    for expected in [
        format!("Port {port}"),
        "User user".to_owned(),
        "HostName 127.0.0.1".to_owned(),
        format!("HostKeyAlias wharf-{uuid}"),
        "StrictHostKeyChecking accept-new".to_owned(),
    ] {
        assert!(
            arguments.lines().any(|line| line == expected),
            "{expected}: {arguments}"
        );
    }
    assert!(arguments.contains(".config/wharf/known_hosts"));
    assert!(
        arguments.ends_with(&format!("--\nwharf-{uuid}\nuname\n-a\n")),
        "{arguments}"
    );

    shell.ok(&["stop", "box"]).unwrap();
    let stopped = shell.run_with(&ssh, &[("PATH", &path)], "").unwrap();
    assert_eq!(stopped.code, Some(1));
    assert!(stopped.stderr.contains("wharf restart box"), "{stopped:?}");
}

#[test]
fn secrets_of_an_instance_come_from_variables_and_stdin() {
    let (_server, api, shell) = signed_in("");
    let s3 = [
        "create",
        "box",
        "--flavor",
        "jupyterlab",
        "--s3-endpoint",
        "https://s3.example.org",
        "--s3-bucket",
        "data",
    ];
    refused(&shell, &s3, 2, "AWS_ACCESS_KEY_ID");
    let keys = [
        ("AWS_ACCESS_KEY_ID", "AKIDsecret"),
        ("AWS_SECRET_ACCESS_KEY", "s3secret"),
    ];
    let args = [&s3[..], &["--ai-key-stdin"]].concat();
    let created = shell
        .run_with(&args, &keys, "aisecret\n")
        .unwrap()
        .succeeded()
        .unwrap();
    let password = api.list().unwrap()[0]["original_service_password"]
        .as_str()
        .unwrap()
        .to_owned();
    for secret in [
        "AKIDsecret",
        "s3secret",
        "aisecret",
        password.as_str(),
        api.key(),
    ] {
        assert!(!format!("{created:?}").contains(secret));
    }
    for args in [
        &["ls"][..],
        &["show", "box"],
        &["whoami"],
        &["keys", "ls"],
        &["quota"],
    ] {
        let shown = format!("{:?}", shell.run(args).unwrap().succeeded().unwrap());
        assert!(
            !shown.contains(&password) && !shown.contains("secret"),
            "{shown}"
        );
    }
    // No option takes a secret.
    let help = shell.ok(&["create", "--help"]).unwrap();
    for option in ["--s3-secret", "--s3-access", "--ai-key ", "--password"] {
        assert!(!help.contains(option), "{help}");
    }
}
