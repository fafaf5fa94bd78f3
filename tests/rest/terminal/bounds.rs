//! Numbers and times: of terminals, and of their connections.

use super::{SshServer, open, start};
use crate::hygiene::{listen, resident_kib};
use crate::{running, until_true, uuid, wait_until};
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;
use wharf_tests::{Api, Terminal, observed, until};

fn refusal(api: &Api, instance: &str) -> Option<(u16, String)> {
    let refused = Terminal::try_open(api, instance, "").unwrap().err()?;
    let detail = refused.body["detail"].as_str().unwrap().to_owned();
    Some((refused.status, detail))
}

#[test]
fn terminals_are_bounded_for_a_user_and_in_all() {
    let (server, ann, instance) = start("terminals = 3\nterminals_per_user = 2\n");
    let _ssh = SshServer::of(&instance).unwrap();
    let mut first = open(&ann, &instance);
    let second = open(&ann, &instance);
    let (status, detail) = refusal(&ann, uuid(&instance)).unwrap();
    assert_eq!(status, 429);
    assert!(detail.contains("2 open terminals"), "{detail}");
    // Attaching needs no further place.
    let session = format!("?session={}", second.session);
    let again = Terminal::open(&ann, uuid(&instance), &session).unwrap();
    let bob = server.user("bob@example.com").unwrap();
    let theirs = running(&bob);
    let _their_ssh = SshServer::of(&theirs).unwrap();
    let third = open(&bob, &theirs);
    let (status, detail) = refusal(&bob, uuid(&theirs)).unwrap();
    assert_eq!(status, 503, "{detail}");
    first.control(&serde_json::json!({ "end": true })).unwrap();
    assert_eq!(first.end().unwrap().1, Some(1000));
    until_true("a place is free", || refusal(&bob, uuid(&theirs)).is_none());
    drop((second, again, third));
}

#[test]
fn a_terminal_without_a_client_ends_after_its_time() {
    let (_server, api, instance) = start("terminal_unattended_s = 1\nobserve_every_ms = 100\n");
    let ssh = SshServer::of(&instance).unwrap();
    let terminal = open(&api, &instance);
    // An observation takes a tenth of a second at least.
    observed(&api, "one", 18).unwrap();
    let session = format!("?session={}", terminal.session);
    let mut again = Terminal::open(&api, uuid(&instance), &session).unwrap();
    assert_eq!(terminal.session, again.session);
    again.run("size", "80 24").unwrap();
    drop((terminal, again));
    wait_until("the shell has ended", || {
        let open = ssh.open.load(std::sync::atomic::Ordering::SeqCst);
        Ok((open == 0).then_some(()))
    });
    let other = Terminal::open(&api, uuid(&instance), &session).unwrap();
    assert_ne!(session, format!("?session={}", other.session));
    drop(other);
}

#[test]
fn a_terminal_outlives_the_times_of_http_and_keeps_its_place_among_connections() {
    // Four of the connections are for clients of this machine.
    let (server, api, instance) =
        start("idle_timeout_ms = 400\nwrite_timeout_ms = 400\nmax_connections = 5\n");
    let _ssh = SshServer::of(&instance).unwrap();
    let connect = |api: &Api| api.at(server.base_url()).get("/healthz");
    // The connections that made the instance close after their idle time.
    let open = || {
        until("a connection", || {
            Ok(Terminal::open(&api, uuid(&instance), "").ok())
        })
    };
    let [mut terminal, second, third] = [(); 3].map(|()| open().unwrap());
    // The times of HTTP end idle connections, three of them one after the other.
    for _ in 0..3 {
        let address = server.base_url().trim_start_matches("http://");
        wait_until("an idle connection was answered and ended", || {
            let mut idle = TcpStream::connect(address).unwrap();
            let request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
            let _ = idle.write_all(request);
            let heard = listen(&mut idle, Duration::from_secs(60));
            Ok((heard.statuses == [200] && heard.closed).then_some(()))
        });
    }
    terminal.run("size", "80 24").unwrap();
    let fourth = open().unwrap();
    let held = connect(&api);
    assert!(held.is_err(), "{held:?}");
    drop(third);
    until_true("a connection is free", || connect(&api).is_ok());
    drop((terminal, second, fourth));
}

#[test]
fn terminals_can_be_switched_off() {
    let (_server, api, instance) = start("terminals = 0\n");
    let (status, detail) = refusal(&api, uuid(&instance)).unwrap();
    assert_eq!(
        (status, detail.as_str()),
        (400, "This service offers no terminals.")
    );
}

#[test]
fn pings_of_a_client_that_reads_nothing_cost_no_memory() {
    const FLOOD: usize = 192 << 20;
    const GROWTH_KIB: u64 = 48 << 10;
    let (server, api, instance) = start("");
    let _ssh = SshServer::of(&instance).unwrap();
    let terminal = open(&api, &instance);
    let process = server.process_id().unwrap();
    let before = resident_kib(process);
    // Each asks for a response of its own size. The mask is zero.
    let mut ping = vec![0x89, 0x80 | 125, 0, 0, 0, 0];
    ping.resize(6 + 125, b'x');
    let many = ping.repeat((1 << 20) / ping.len());
    let mut stream = terminal.stream().unwrap();
    for _ in 0..FLOOD / many.len() {
        // The server may close the connection of such a client.
        if stream.write_all(&many).is_err() {
            break;
        }
    }
    let after = resident_kib(process);
    assert!(after < before + GROWTH_KIB, "{before} -> {after} KiB");
    drop(terminal);
}
