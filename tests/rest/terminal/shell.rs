//! Bytes, sizes, attachment and exit.

use super::ssh_server::LINE;
use super::{SshServer, open, start};
use crate::{has, until_true, uuid};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use wharf_tests::{Terminal, settled};

/// The output of the test with much output, in bytes.
const MUCH: usize = 100 * 1024 * 1024;

/// The bytes that may be on the way to a client that does not read: mostly buffers of sockets.
const ON_THE_WAY: u64 = 32 * 1024 * 1024;

/// Looks at a sender without progress, after which it counts as held back.
pub const WAITS: u32 = 15;

#[test]
fn a_shell_is_resized_attached_again_and_exits_with_its_code() {
    let (_server, api, instance) = start("");
    let ssh = SshServer::of(&instance).unwrap();
    let id = uuid(&instance);
    let mut first = Terminal::open(&api, id, "?cols=101&rows=37").unwrap();
    assert_eq!(first.replayed, 0);
    first.wait_for_from(0, "ready> ").unwrap();
    println!("prompt {:?} after the upgrade", first.upgraded.elapsed());
    first.run("size", "101 37").unwrap();
    first.resize(55, 11).unwrap();
    first.run("size", "55 11").unwrap();
    first.run("grüße 漢字", "you said grüße 漢字").unwrap();
    let before = first.output.clone();
    let session = format!("?session={}", first.session);
    drop(first);
    let mut second = Terminal::open(&api, id, &session).unwrap();
    assert_eq!(second.replayed, u64::try_from(before.len()).unwrap());
    second.run("size", "80 24").unwrap();
    assert!(second.output.starts_with(&before));
    // A reload may attach before the server knows that the page is gone.
    let mut third = Terminal::open(&api, id, &session).unwrap();
    assert_eq!(third.session, second.session);
    let (last, code) = second.end().unwrap();
    has(&last["error"], "elsewhere");
    assert_eq!(code, Some(4000));
    third.send(b"exit 42\r").unwrap();
    assert_eq!(third.end().unwrap(), (json!({ "exit": 42 }), Some(1000)));
    assert_eq!(ssh.open.load(Ordering::SeqCst), 0);
    // The terminal is gone, so its id opens another one.
    let fourth = Terminal::open(&api, id, &session).unwrap();
    assert_ne!(fourth.session, third.session);
    drop(fourth);
}

#[test]
fn much_output_reaches_a_slow_client_whole_and_the_shell_waits_meanwhile() {
    let (_server, api, instance) = start("");
    let ssh = SshServer::of(&instance).unwrap();
    let mut terminal = open(&api, &instance);
    let from = terminal.output.len();
    terminal.send(format!("flood {MUCH}\r").as_bytes()).unwrap();
    let written = || ssh.written.load(Ordering::SeqCst);
    until_true("the shell writes", || written() > 0);
    let last = settled(WAITS, Duration::from_secs(60), written);
    assert!(last < ON_THE_WAY, "{last}");
    terminal.wait_for_from(from + MUCH, "done\n").unwrap();
    let output = &terminal.output[from..];
    assert_eq!(output.len(), MUCH + 5);
    assert!(output[..MUCH].chunks(16).all(|line| line == LINE));
}

#[test]
fn a_pause_holds_output_back_and_input_still_arrives() {
    let (_server, api, instance) = start("");
    let ssh = SshServer::of(&instance).unwrap();
    let mut terminal = open(&api, &instance);
    terminal.control(&json!({ "pause": true })).unwrap();
    terminal.send(b"flood 1024\r").unwrap();
    until_true("the shell has written", || {
        ssh.written.load(Ordering::SeqCst) > 1024
    });
    let stream = terminal.stream().unwrap();
    let silence = Duration::from_millis(300);
    stream.set_read_timeout(Some(silence)).unwrap();
    assert!(terminal.hear().is_err(), "output in spite of the pause");
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    terminal.control(&json!({ "pause": false })).unwrap();
    terminal.wait_for_from(0, "done\n").unwrap();
}

#[test]
fn a_large_paste_arrives_whole_at_a_shell_that_reads_late() {
    let (_server, api, instance) = start("");
    let ssh = SshServer::of(&instance).unwrap();
    let mut terminal = open(&api, &instance);
    let paste: Vec<u8> = (0..20_u32 << 20).map(|n| (n % 251) as u8).collect();
    let sum: u64 = paste.iter().map(|byte| u64::from(*byte)).sum();
    terminal
        .send(format!("deaf\rsink {}\r", paste.len()).as_bytes())
        .unwrap();
    let sent = AtomicUsize::new(0);
    let before = ssh.written.load(Ordering::SeqCst);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for part in paste.chunks(512 * 1024) {
                terminal.send(part).unwrap();
                sent.fetch_add(part.len(), Ordering::SeqCst);
            }
        });
        until_true("a part is sent", || sent.load(Ordering::SeqCst) > 0);
        settled(WAITS, Duration::from_secs(60), || {
            sent.load(Ordering::SeqCst)
        });
        assert_eq!(ssh.written.load(Ordering::SeqCst), before);
        ssh.hear();
    });
    let expected = format!("sunk {} {sum}\n", paste.len());
    terminal.wait_for_from(0, &expected).unwrap();
}

#[test]
fn messages_of_another_form_end_the_connection_and_keep_the_terminal() {
    let (_server, api, instance) = start("");
    let _ssh = SshServer::of(&instance).unwrap();
    let mut terminal = open(&api, &instance);
    let session = format!("?session={}", terminal.session);
    terminal
        .text("{\"resize\": {\"cols\": 0, \"rows\": 1}}")
        .unwrap();
    let (last, code) = terminal.end().unwrap();
    has(&last["error"], "1 to 1000");
    assert_eq!(code, Some(1008));
    let mut terminal = Terminal::open(&api, uuid(&instance), &session).unwrap();
    // The server does not take the message, and still its refusal is not lost with the connection.
    terminal.send(&vec![b'x'; 8 << 20]).unwrap();
    let (last, code) = terminal.end().unwrap();
    has(&last["error"], "1 MiB");
    assert_eq!(code, Some(1009));
    let mut terminal = Terminal::open(&api, uuid(&instance), &session).unwrap();
    assert_eq!(session, format!("?session={}", terminal.session));
    terminal.run("size", "80 24").unwrap();
}
