//! `wharf console` on a terminal, with an SSH server of the tests in place of the instance.

use super::{refused, signed_in};
use crate::terminal::SshServer;
use crate::{Expected, start, start_on};
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::spawn;
use wharf_tests::{Api, OnTerminal, Server, Shell, lasting_node};

const CONSOLE: &str = "wharf console box; echo ended with $?";

/// A path to a server, which can be cut.
struct Relay {
    address: SocketAddr,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    fn to(server: &Server) -> Self {
        let target = server
            .base_url()
            .strip_prefix("http://")
            .unwrap()
            .to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let streams = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&streams);
        spawn(move || {
            for inside in listener.incoming().map_while(Result::ok) {
                let outside = TcpStream::connect(&target).unwrap();
                for (from, to) in [(&inside, &outside), (&outside, &inside)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    spawn(move || io::copy(&mut from, &mut to));
                }
                kept.lock().unwrap().extend([inside, outside]);
            }
        });
        Self { address, streams }
    }

    fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Creates an instance with an SSH server.
fn create(shell: &Shell, api: &Api) -> SshServer {
    shell.ok(&["create", "box", "--wait"]).unwrap();
    let instance = api.instance("box").is(200);
    SshServer::of(&instance).unwrap()
}

/// Opens a console, up to its prompt.
fn open(shell: &Shell, line: &str) -> OnTerminal {
    let mut console = shell.on_terminal(line).unwrap();
    console.wait_for("ready> ").unwrap();
    console
}

/// Types a line and waits for the answer of the shell.
fn say(console: &mut OnTerminal, words: &str) {
    console.type_in(&format!("{words}\r")).unwrap();
    console.wait_for(&format!("you said {words}")).unwrap();
}

/// Waits for the exit code of `wharf console`.
fn ends(mut console: OnTerminal, code: u8) {
    console.wait_for(&format!("ended with {code}")).unwrap();
    console.end().unwrap();
}

#[test]
fn a_console_passes_keys_and_sizes_and_ends_with_the_code_of_the_shell() {
    let (_server, api, shell) = signed_in("");
    let ssh = create(&shell, &api);

    let mut console = open(&shell, &format!("stty cols 101 rows 37; {CONSOLE}"));
    console.type_in("size\r").unwrap();
    console.wait_for("101 37").unwrap();
    say(&mut console, "grüße 漢字");
    // Ctrl-C goes to the shell.
    say(&mut console, "a\x03b");
    console.type_in("exit 42\r").unwrap();
    ends(console, 42);

    let mut console = open(&shell, CONSOLE);
    console.type_in("\x1d").unwrap();
    ends(console, 0);
    drop(ssh);
    shell.ok(&["stop", "box"]).unwrap();
    let mut stopped = shell.on_terminal(CONSOLE).unwrap();
    stopped.wait_for("wharf: ").unwrap();
    ends(stopped, 1);
}

#[test]
fn a_console_attaches_again_after_a_lost_connection() {
    let (server, api) = start();
    let shell = Shell::new().unwrap();
    let relay = Relay::to(&server);
    let login = ["login", &format!("http://{}", relay.address), "--with-key"];
    let signed_in = shell.run_with(&login, &[], api.key()).unwrap();
    signed_in.succeeded().unwrap();
    let _ssh = create(&shell, &api);
    let mut console = open(&shell, CONSOLE);
    say(&mut console, "first");
    for _ in 0..2 {
        relay.cut();
        console.wait_for("attaching again").unwrap();
        // The screen is reset and drawn again.
        console.wait_for("\x1bc").unwrap();
        console.wait_for("you said first").unwrap();
    }
    say(&mut console, "second");
    let output = console.output();
    assert!(!output.contains("a new one"), "{output}");
    console.type_in("exit 3\r").unwrap();
    ends(console, 3);
}

#[test]
fn a_console_opens_a_new_terminal_after_a_restart_of_the_server() {
    let (node, _dir) = lasting_node("one", "").unwrap();
    let (mut server, api) = start_on("", &node);
    // The address stays when the server starts again.
    let config = std::fs::read_to_string(server.config_path()).unwrap();
    let address = server.base_url().strip_prefix("http://").unwrap();
    let config = config.replace("127.0.0.1:0", address);
    std::fs::write(server.config_path(), config).unwrap();
    let shell = Shell::signed_in(&server, "ann@example.com").unwrap();
    let _ssh = create(&shell, &api);
    let mut console = open(&shell, CONSOLE);
    assert!(server.terminate().unwrap().success());
    console.wait_for("attaching again").unwrap();
    server.run().unwrap();
    console.wait_for("This is a new one.").unwrap();
    console.wait_for("ready> ").unwrap();
    console.type_in("exit 5\r").unwrap();
    ends(console, 5);
}

#[test]
fn a_console_needs_a_terminal() {
    let shell = Shell::new().unwrap();
    refused(&shell, &["console", "box"], 2, "wharf ssh box -- COMMAND");
}
