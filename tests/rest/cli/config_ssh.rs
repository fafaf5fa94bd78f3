//! `wharf config-ssh`, read back by OpenSSH itself.

use super::signed_in;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn openssh_knows_the_instances_until_they_are_removed() {
    let (server, api, shell) = signed_in("");
    shell.ok(&["create", "box"]).unwrap();
    shell
        .ok(&["create", "notebook", "--flavor", "jupyterlab"])
        .unwrap();
    let directory = shell.home().join(".ssh");
    let (own, config) = (directory.join("wharf_config"), directory.join("config"));

    let shown = shell.ok(&["config-ssh", "--dry-run"]).unwrap();
    assert!(
        shown.contains("Host *.wharf") && !directory.exists(),
        "{shown}"
    );
    fs::create_dir(&directory).unwrap();
    fs::write(&config, "Host other\n    User someone\n").unwrap();
    for _ in 0..2 {
        shell.ok(&["config-ssh"]).unwrap();
        let text = fs::read_to_string(&config).unwrap();
        assert_eq!(text, "Include wharf_config\nHost other\n    User someone\n");
    }
    let file = own.to_str().unwrap();
    let read = |host: &str| {
        let read = shell.own("ssh".as_ref(), &["-G", "-F", file, host]);
        let read = { read }.output().unwrap();
        String::from_utf8(read.stdout).unwrap()
    };
    let own_files = shell.home().join(".config/wharf");
    let program = wharf_tests::wharf_binary();
    let shown = read("box.wharf");
    for expected in [
        "user user".to_owned(),
        format!("userknownhostsfile {}/known_hosts", own_files.display()),
        format!("identityfile {}/id_ed25519", own_files.display()),
        "stricthostkeychecking accept-new".to_owned(),
        format!(
            "proxycommand '{}' tunnel '%n' 22 --stdio --profile '{}'",
            program.display(),
            server.base_url().trim_start_matches("http://")
        ),
    ] {
        assert!(
            shown.lines().any(|line| line == expected),
            "{expected}: {shown}"
        );
    }
    // A quote would end those around the name.
    for other in ["box.example.com", "a'b.wharf"] {
        let shown = read(other);
        assert!(!shown.contains("proxycommand"), "{other}: {shown}");
    }
    let text = fs::read_to_string(&own).unwrap();
    for instance in api.list().unwrap() {
        let password = instance["original_service_password"].as_str().unwrap();
        assert!(!text.contains(password));
    }

    shell.ok(&["config-ssh", "--remove", "--dry-run"]).unwrap();
    assert!(own.exists());
    shell.ok(&["config-ssh", "--remove"]).unwrap();
    assert!(!own.exists());
    assert_eq!(
        fs::read_to_string(&config).unwrap(),
        "Host other\n    User someone\n"
    );
}

#[test]
fn a_configuration_that_people_live_in_stays_theirs() {
    let (_server, _, shell) = signed_in("");
    shell.ok(&["create", "box"]).unwrap();
    let directory = shell.home().join(".ssh");
    fs::create_dir(&directory).unwrap();
    // A link to a file that is not there yet, bytes that are not UTF-8, and a mode of its own.
    let (config, kept) = (directory.join("config"), shell.home().join("dotfiles"));
    symlink("../dotfiles", &config).unwrap();
    shell.ok(&["config-ssh"]).unwrap();
    assert!(config.is_symlink());
    assert_eq!(fs::read(&kept).unwrap(), b"Include wharf_config\n");
    let below = b"# caf\xe9\nHost other\n    Include wharf_config\n";
    fs::write(&kept, below).unwrap();
    fs::set_permissions(&kept, Permissions::from_mode(0o644)).unwrap();
    for _ in 0..2 {
        shell.ok(&["config-ssh"]).unwrap();
        let text = fs::read(&kept).unwrap();
        assert_eq!(text, [&b"Include wharf_config\n"[..], below].concat());
    }
    let mode = fs::metadata(&kept).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    assert!(config.is_symlink());
    let read = shell
        .own(
            "ssh".as_ref(),
            &["-G", "-F", kept.to_str().unwrap(), "box.wharf"],
        )
        .output()
        .unwrap();
    assert!(read.status.success(), "{read:?}");
}
