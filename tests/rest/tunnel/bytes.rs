//! The bytes of both directions, and their ends.

use super::{echo, exchange, listener, on_ssh_port, open};
use crate::terminal::{SshServer, start};
use crate::until_true;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use wharf_tests::settled;

/// More than all buffers on the way hold.
const MUCH: usize = 64 * 1024 * 1024;
/// The bytes that may be on the way to a side that does not read: mostly buffers of sockets.
const ON_THE_WAY: usize = 32 * 1024 * 1024;
/// Looks at a sender without progress, after which it counts as held back.
const WAITS: u32 = 15;

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n % 251) as u8).collect()
}

#[test]
fn the_bytes_of_the_ssh_port_pass_as_they_are_and_each_direction_ends_by_itself() {
    let (_server, api, instance) = start("");
    let sent = pattern(3 * 1024 * 1024 + 7);
    let expected = sent.clone();
    let inside = on_ssh_port(&instance, move |mut stream| {
        // The client has ended its bytes, and still reads.
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        assert_eq!(received, expected);
        stream.write_all(&received).unwrap();
    });
    let mut tunnel = open(&api, &instance, 22);
    tunnel.send(&sent).unwrap();
    tunnel.finish().unwrap();
    assert!(tunnel.read_to_end().unwrap() == sent);
    assert_eq!(tunnel.closed(), Some((1000, String::new())));
    inside.join().unwrap();
}

#[test]
fn a_port_that_ends_first_still_reads() {
    let (_server, api, instance) = start("");
    let inside = on_ssh_port(&instance, |mut stream| {
        stream.write_all(b"last words").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        received
    });
    let mut tunnel = open(&api, &instance, 22);
    assert_eq!(tunnel.read_to_end().unwrap(), b"last words");
    tunnel.send(b"answer").unwrap();
    tunnel.finish().unwrap();
    assert_eq!(tunnel.closed(), Some((1000, String::new())));
    assert_eq!(inside.join().unwrap(), b"answer");
}

#[test]
fn ports_on_loopback_addresses_inside_are_reached_over_few_logins() {
    let (_server, api, instance) = start("");
    let ssh = SshServer::of(&instance).unwrap();
    for address in ["127.0.0.1", "::1"] {
        let (listener, port) = listener(address);
        echo(listener);
        let mut tunnel = open(&api, &instance, port);
        exchange(&mut tunnel, b"hello");
        tunnel.send(b"end").unwrap();
        tunnel.finish().unwrap();
        assert_eq!(tunnel.read_to_end().unwrap(), b"end", "{address}");
        assert_eq!(tunnel.closed(), Some((1000, String::new())));
    }
    // The first connection is kept.
    assert_eq!(ssh.logins(), 1);
    let (listener, port) = listener("127.0.0.1");
    echo(listener);
    let mut many: Vec<_> = (0..20).map(|_| open(&api, &instance, port)).collect();
    let much = pattern(1024 * 1024);
    for tunnel in &mut many {
        exchange(tunnel, &much[..300_000]);
    }
    assert!(ssh.logins() <= 8, "{}", ssh.logins());
    drop(many);
}

#[test]
fn a_side_that_does_not_read_holds_the_other_back_and_no_byte_is_lost() {
    let (_server, api, instance) = start("");
    let _ssh = SshServer::of(&instance).unwrap();
    let written = Arc::new(AtomicUsize::new(0));
    let (listener, port) = listener("127.0.0.1");
    let count = Arc::clone(&written);
    let inside = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let piece = pattern(251 * 256);
        let mut sent = 0;
        while sent < MUCH {
            stream.write_all(&piece).unwrap();
            sent += piece.len();
            count.store(sent, Ordering::SeqCst);
        }
        stream.shutdown(Shutdown::Write).unwrap();
        // Until the client has read all, this side does not read.
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        (sent, received)
    });
    let mut tunnel = open(&api, &instance, port);
    let sent_by = || written.load(Ordering::SeqCst);
    until_true("the port sends", || sent_by() > 0);
    let last = settled(WAITS, Duration::from_secs(60), sent_by);
    assert!(last < ON_THE_WAY, "{last}");
    // Another tunnel is not held up.
    let (free, other) = super::listener("127.0.0.1");
    echo(free);
    exchange(&mut open(&api, &instance, other), b"meanwhile");
    let received = tunnel.read_to_end().unwrap();
    let is_right = |(n, byte): (usize, &u8)| usize::from(*byte) == n % 251;
    assert!(received.iter().enumerate().all(is_right));
    let up = pattern(MUCH / 4);
    tunnel.send(&up).unwrap();
    tunnel.finish().unwrap();
    let (sent, heard) = inside.join().unwrap();
    assert_eq!(received.len(), sent);
    assert!(heard == up);
}

#[test]
fn a_port_that_does_not_read_holds_the_client_back() {
    let (_server, api, instance) = start("");
    let _ssh = SshServer::of(&instance).unwrap();
    let (listener, port) = listener("127.0.0.1");
    let (resume, resumed) = std::sync::mpsc::channel::<()>();
    let inside = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        resumed.recv().unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        received
    });
    let mut tunnel = open(&api, &instance, port);
    let much = pattern(MUCH);
    let sent = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for piece in much.chunks(64 * 1024) {
                tunnel.message(piece).unwrap();
                sent.fetch_add(piece.len(), Ordering::SeqCst);
            }
            tunnel.finish().unwrap();
        });
        let sent_by = || sent.load(Ordering::SeqCst);
        until_true("a part is sent", || sent_by() > 0);
        let last = settled(WAITS, Duration::from_secs(60), sent_by);
        assert!(last < ON_THE_WAY, "{last}");
        resume.send(()).unwrap();
    });
    assert!(inside.join().unwrap() == much);
}

#[test]
fn messages_of_another_form_end_the_tunnel() {
    let (_server, api, instance) = start("");
    let _ssh = SshServer::of(&instance).unwrap();
    let (listener, port) = listener("127.0.0.1");
    echo(listener);
    let code = |wrong: &dyn Fn(&mut wharf_tests::Tunnel)| {
        let mut tunnel = open(&api, &instance, port);
        exchange(&mut tunnel, b"right");
        wrong(&mut tunnel);
        tunnel.closed().map(|(code, _)| code)
    };
    assert_eq!(code(&|tunnel| tunnel.text("{}").unwrap()), Some(1008));
    let too_large = vec![b'x'; 64 * 1024 + 1];
    assert_eq!(code(&|t| drop(t.message(&too_large))), Some(1009));
    let (silent, port) = super::listener("127.0.0.1");
    let mut tunnel = open(&api, &instance, port);
    let _accepted = silent.accept().unwrap();
    tunnel.finish().unwrap();
    tunnel.send(b"after the end").unwrap();
    assert_eq!(tunnel.closed().unwrap().0, 1008);
}
