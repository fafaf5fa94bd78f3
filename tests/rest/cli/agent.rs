//! Logins with OpenSSH while its agent has many keys: a server ends the connection after six failures.

use super::signed_in;
use crate::terminal::ssh_server::SshServer;
use crate::{Expected, until_true};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wharf_testkit::child::KilledOnDrop;
use wharf_tests::end;

/// An agent with eight keys.
struct Agent {
    _process: KilledOnDrop,
    socket: PathBuf,
}

impl Agent {
    fn start(dir: &Path) -> Self {
        let socket = dir.join("agent");
        let mut process = Command::new("ssh-agent");
        process
            .args(["-D", "-a"])
            .arg(&socket)
            .stdout(Stdio::null());
        let process = KilledOnDrop(process.spawn().unwrap());
        until_true("the agent listens", || socket.exists());
        let agent = Self {
            _process: process,
            socket,
        };
        for number in 0..8 {
            let file = dir.join(format!("key-{number}"));
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(&file)
                .status();
            assert!(made.unwrap().success());
            let added = Command::new("ssh-add")
                .env("SSH_AUTH_SOCK", &agent.socket)
                .arg("-q")
                .arg(&file)
                .status();
            assert!(added.unwrap().success());
        }
        agent
    }
}

#[test]
fn many_keys_of_an_agent_leave_the_password_its_turn() {
    let (_server, api, shell) = signed_in("");
    shell.ok(&["create", "box", "--wait"]).unwrap();
    let instance = api.instance("box").is(200);
    let ssh = SshServer::of(&instance).unwrap();
    let agent = Agent::start(shell.home());
    let variables = [("SSH_AUTH_SOCK", agent.socket.to_str().unwrap())];
    let key = shell.home().join("key-7");
    for args in [
        &["ssh", "box"][..],
        &["ssh", "-i", key.to_str().unwrap(), "box"],
    ] {
        let ended = shell.run_with(args, &variables, "exit 0\r").unwrap();
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
    }
    // The entries for OpenSSH, with a program that answers its question.
    shell.ok(&["config-ssh"]).unwrap();
    let password = instance["original_service_password"].as_str().unwrap();
    let ask = shell.home().join("ask");
    std::fs::write(&ask, format!("#!/bin/sh\necho {password}\n")).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&ask, executable).unwrap();
    let config = shell.home().join(".ssh/wharf_config");
    let config = config.to_str().unwrap();
    let mut openssh = shell.own("ssh".as_ref(), &["-F", config, "box.wharf"]);
    openssh
        .envs(variables)
        .env("SSH_ASKPASS", &ask)
        .env("SSH_ASKPASS_REQUIRE", "force");
    let ended = end(&mut openssh, "exit 0\r").unwrap();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // Two by `wharf ssh`, one that adds the key for editors, one by OpenSSH.
    assert_eq!(ssh.logins(), 4);
    // An agent with few keys goes on.
    let offers_files_only = |socket: &str| {
        let mut openssh = shell.own("ssh".as_ref(), &["-G", "-F", config, "box.wharf"]);
        let ended = end(openssh.env("SSH_AUTH_SOCK", socket), "").unwrap();
        ended.stdout.contains("identitiesonly yes")
    };
    assert!(offers_files_only(variables[0].1) && !offers_files_only("/nowhere"));
}
