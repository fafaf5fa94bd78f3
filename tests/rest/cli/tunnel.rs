//! Tunnels of the command line: `tunnel`, `forward`, `open`, and OpenSSH with the entry of `config-ssh`.

use super::{refused, signed_in};
use crate::terminal::SshServer;
use crate::{Expected, free_port, has, uuid, wait_until};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;
use wharf_testkit::child::KilledOnDrop;
use wharf_tests::{Api, Server, Shell, end};

/// A user, and an instance that runs.
fn with_instance() -> (Server, Api, Shell, Value) {
    let (server, api, shell) = signed_in("");
    shell.ok(&["create", "box", "--wait"]).unwrap();
    let instance = api.instance("box").is(200);
    (server, api, shell, instance)
}

/// Answers with its input, to whose end it reads.
fn server_inside() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut received = Vec::new();
                stream.read_to_end(&mut received).unwrap();
                let length = received.len();
                drop(stream.write_all(format!("{length} bytes").as_bytes()));
            });
        }
    });
    port
}

#[test]
fn a_port_is_on_stdin_and_stdout_or_a_port_of_this_computer() {
    let (_server, _api, shell, instance) = with_instance();
    let _ssh = SshServer::of(&instance).unwrap();
    let (inside, local) = (server_inside(), free_port());
    let port = inside.to_string();
    let sent = "x".repeat(1_000_000);
    for name in ["box", uuid(&instance)] {
        let ended = shell.run_with(&["tunnel", name, &port, "--stdio"], &[], &sent);
        assert_eq!(ended.unwrap().succeeded().unwrap().stdout, "1000000 bytes");
    }
    let closed = free_port().to_string();
    let words = "Nothing in the instance accepts connections on this port.";
    refused(&shell, &["tunnel", "box", &closed, "--stdio"], 1, words);
    let mut forward = shell.command(&["forward", "box", &format!("{local}:{inside}")]);
    let mut forward = KilledOnDrop(forward.stderr(Stdio::piped()).spawn().unwrap());
    let mut notes = BufReader::new(forward.0.stderr.take().unwrap());
    let mut note = String::new();
    notes.read_line(&mut note).unwrap();
    let expected = format!("127.0.0.1:{local} leads to port {inside} of box.\n");
    assert_eq!(note, expected);
    let mut streams: Vec<_> = (0..4)
        .map(|_| TcpStream::connect(("127.0.0.1", local)).unwrap())
        .collect();
    for (n, stream) in streams.iter_mut().enumerate() {
        stream.write_all(&vec![b'x'; n + 1]).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, format!("{} bytes", n + 1));
    }
    // The port is in use now.
    let local = local.to_string();
    refused(&shell, &["forward", "box", &local], 2, "is in use");
    drop(forward);
    shell.ok(&["stop", "box"]).unwrap();
    refused(
        &shell,
        &["tunnel", "box", &port, "--stdio"],
        1,
        "it must be running",
    );
}

#[test]
fn a_lost_connection_is_no_end_of_the_bytes() {
    let (_server, _api, shell, instance) = with_instance();
    let ssh = SshServer::of(&instance).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let mut tunnel = shell.command(&["tunnel", "box", &port, "--stdio"]);
    tunnel.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut tunnel = tunnel.stderr(Stdio::piped()).spawn().unwrap();
    let (mut inside, _) = listener.accept().unwrap();
    inside.write_all(b"part").unwrap();
    let stdout = tunnel.stdout.as_mut().unwrap();
    stdout.read_exact(&mut [0; 4]).unwrap();
    drop(ssh);
    let ended = tunnel.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let words = String::from_utf8(ended.stderr).unwrap();
    assert!(words.contains("has broken its connection"), "{words}");
}

#[test]
fn a_port_is_served_again_after_too_many_open_files() {
    let (_server, _api, shell, instance) = with_instance();
    let _ssh = SshServer::of(&instance).unwrap();
    let (inside, local) = (server_inside(), free_port());
    let ports = [local, free_port()].map(|local| format!("{local}:{inside}"));
    let forward = shell.command(&["forward", "box", &ports[0], &ports[1]]);
    let limit = ["-c", "ulimit -n 32; exec \"$@\"", "sh"];
    let mut limited = shell.own("sh".as_ref(), &limit);
    limited.arg(forward.get_program()).args(forward.get_args());
    let mut forward = KilledOnDrop(limited.stderr(Stdio::piped()).spawn().unwrap());
    let stderr = BufReader::new(forward.0.stderr.take().unwrap());
    let (sender, notes) = channel();
    std::thread::spawn(move || {
        for note in stderr.lines() {
            drop(sender.send(note.unwrap()));
        }
    });
    let until = |words: &str| {
        let next = || notes.recv_timeout(Duration::from_secs(60)).unwrap();
        while !next().contains(words) {}
    };
    until(&format!(
        "{} leads to port",
        ports[1].split_once(':').unwrap().0
    ));
    let many = (0..64).map(|_| TcpStream::connect(("127.0.0.1", local)).unwrap());
    let many: Vec<_> = many.collect();
    until("cannot accept connections");
    drop(many);
    wait_until("the port is served again", || {
        let mut stream = TcpStream::connect(("127.0.0.1", local))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let mut answer = String::new();
        let asked = stream.write_all(b"x");
        let asked = asked.and_then(|()| stream.shutdown(Shutdown::Write));
        let answered = asked.and_then(|()| stream.read_to_string(&mut answer));
        Ok((answered.is_ok() && answer == "1 bytes").then_some(()))
    });
    drop(forward);
}

/// OpenSSH with the entry, which connects to a port inside and gets the password of the instance.
fn openssh(shell: &Shell, instance: &Value, port: u16) -> Command {
    let answer = shell.home().join("answer");
    let password = instance["original_service_password"].as_str().unwrap();
    std::fs::write(&answer, format!("#!/bin/sh\necho '{password}'\n")).unwrap();
    let executable = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(&answer, executable).unwrap();
    let file = shell.home().join(".ssh/wharf_config");
    let to = format!("127.0.0.1:{port}");
    let mut ssh = shell.own(
        "ssh".as_ref(),
        &["-F", file.to_str().unwrap(), "-W", &to, "box.wharf"],
    );
    // An editor starts it without the path of a shell.
    ssh.env("PATH", "/usr/bin:/bin")
        .env("SSH_ASKPASS", answer)
        .env("SSH_ASKPASS_REQUIRE", "force");
    ssh
}

#[test]
fn openssh_reaches_instances_by_one_entry_and_verifies_their_host_keys() {
    let (_server, api, shell, instance) = with_instance();
    let ssh = SshServer::of(&instance).unwrap();
    shell.ok(&["config-ssh"]).unwrap();
    let port = server_inside();
    let ended = end(&mut openssh(&shell, &instance, port), "hello").unwrap();
    assert_eq!(ended.succeeded().unwrap().stdout, "5 bytes");
    // A tunnel to another port logs in, which notes the host key.
    let number = port.to_string();
    let noted = ["tunnel", "box", &number, "--stdio"];
    shell.ok(&noted).unwrap();
    let ended = end(&mut openssh(&shell, &instance, port), "hello").unwrap();
    assert_eq!(ended.succeeded().unwrap().stdout, "5 bytes");
    drop(ssh);
    let password = instance["original_service_password"].as_str().unwrap();
    let _other = SshServer::start(&instance, password, 2).unwrap();
    let refused = end(&mut openssh(&shell, &instance, port), "hello").unwrap();
    assert_eq!(refused.code, Some(255), "{refused:?}");
    assert!(refused.stderr.contains("HOST IDENTIFICATION HAS CHANGED"));
    drop(_other);
    // Another instance of that name has a key of its own, and the old one is forgotten.
    shell.ok(&["rm", "box", "--yes"]).unwrap();
    shell.ok(&["create", "box", "--wait"]).unwrap();
    let instance = api.instance("box").is(200);
    let _new = SshServer::start(
        &instance,
        instance["original_service_password"].as_str().unwrap(),
        3,
    );
    let ended = end(&mut openssh(&shell, &instance, port), "hello").unwrap();
    assert_eq!(ended.succeeded().unwrap().stdout, "5 bytes");
}

#[test]
fn a_link_leads_to_the_page_or_to_the_editor() {
    let (_server, _api, shell, _instance) = with_instance();
    refused(&shell, &["open", "box"], 2, "box has no page");
    let ended = shell.run(&["open", "--code", "box"]).unwrap();
    let ended = ended.succeeded().unwrap();
    let link = "vscode://vscode-remote/ssh-remote+box.wharf/home/user\n";
    assert_eq!(ended.stdout, link);
    has(&ended.stderr, "wharf config-ssh");
    shell
        .ok(&["create", "notebook", "--flavor", "marimo", "--wait"])
        .unwrap();
    let shown = shell.ok(&["open", "notebook"]).unwrap();
    assert!(shown.starts_with("http://"), "{shown}");
}

#[test]
fn the_key_of_the_entry_is_made_once_and_given_to_new_instances() {
    let (_server, api, shell, _instance) = with_instance();
    shell.ok(&["create", "second", "--wait"]).unwrap();
    for _ in 0..2 {
        let ended = shell.run(&["config-ssh"]).unwrap().succeeded().unwrap();
        // The simulated instances have no SSH server.
        for name in ["box", "second"] {
            has(&ended.stderr, format!("{name} did not get the key"));
        }
    }
    let file = shell.home().join(".config/wharf/id_ed25519");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let saved = api.get("/api/ssh-key/").is(200);
    let [saved] = saved.as_array().unwrap().as_slice() else {
        panic!("{saved}");
    };
    let public = std::fs::read_to_string(file.with_extension("pub")).unwrap();
    let material: Vec<_> = public.split(' ').take(2).collect();
    let given = saved["public_key"].as_str().unwrap();
    assert!(given.starts_with(&material.join(" ")), "{given}");

    shell.ok(&["create", "later", "--wait"]).unwrap();
    let later = api.instance("later").is(200);
    let ssh = SshServer::of(&later).unwrap();
    // A tunnel logs in, which notes the host key.
    let port = server_inside().to_string();
    shell.ok(&["tunnel", "later", &port, "--stdio"]).unwrap();
    let link = "vscode://vscode-remote/ssh-remote+later.wharf/home/user\n";
    assert_eq!(shell.ok(&["open", "--code", "later"]).unwrap(), link);
    has(ssh.commands().concat(), public.trim());
    // No host keys can be noted in a directory.
    let noted = shell.home().join(".config/wharf/known_hosts");
    drop(std::fs::remove_file(&noted));
    std::fs::create_dir(&noted).unwrap();
    let ended = shell.run(&["config-ssh"]).unwrap().succeeded().unwrap();
    for name in ["box", "second", "later"] {
        has(&ended.stderr, format!("{name} did not get the key"));
    }
}
