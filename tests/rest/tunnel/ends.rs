//! The end of a tunnel with its key, its session, its user, its instance or the service.

use super::{ended, exchange, listener, on_ssh_port, open};
use crate::sign_in::{ANN, ConsoleBrowser};
use crate::terminal::{SshServer, start};
use crate::{Expected, uuid};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use wharf_tests::{Api, Tunnel};

/// A tunnel ends within this time, and half of it is left for a loaded machine.
const SOON: Duration = Duration::from_secs(4);

/// The words about a session or key that is not valid.
const INVALID: &str = "not valid any more";

/// A tunnel, and its connection at a port inside.
struct Both {
    tunnel: Tunnel,
    inside: TcpStream,
}

impl Both {
    fn of(inside: &std::net::TcpListener, tunnel: Tunnel) -> Self {
        let (stream, _) = inside.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Self {
            tunnel,
            inside: stream,
        }
    }

    /// Waits for the end on both sides, with these words and this code.
    fn end(mut self, words: &str, code: u16) {
        let begin = Instant::now();
        let (closed, reason) = self.tunnel.closed().unwrap();
        assert!(reason.contains(words), "{reason}");
        assert_eq!(closed, code);
        // A broken connection is an end too.
        drop(ended(self.inside));
        assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    }
}

#[test]
fn a_tunnel_ends_with_its_key_its_session_and_its_user() {
    let (server, api, instance) = start("");
    let _ssh = SshServer::of(&instance).unwrap();
    let (inside, port) = listener("127.0.0.1");
    let made = api.send("POST", "/api/key/", &json!({})).is(201);
    let text = |field: &str| made[field].as_str().unwrap();
    let other = Api::new(server.base_url(), text("key"));
    let of_key = Both::of(&inside, open(&other, &instance, port));
    // A client that reads nothing does not put off the end.
    let kept = Both::of(&inside, open(&api, &instance, port));
    let path = format!("/api/key/{}/", text("id"));
    api.send("DELETE", &path, &Value::Null).is(204);
    of_key.end(INVALID, 1008);

    let browser = ConsoleBrowser::accepted(&server, ANN);
    let of_session = |browser: &ConsoleBrowser| {
        let headers = [
            ("Cookie", browser.cookie.as_str()),
            ("Origin", server.base_url()),
        ];
        let query = browser.ticket(&format!("?port={port}"));
        let opened = Tunnel::try_open_from(server.base_url(), &headers, uuid(&instance), &query);
        let tunnel = opened
            .unwrap()
            .unwrap_or_else(|refused| panic!("{refused:?}"));
        Both::of(&inside, tunnel)
    };
    let signed_in = of_session(&browser);
    let out = browser.send("POST", "/auth/sign-out/", &Value::Null);
    out.is(204);
    signed_in.end(INVALID, 1008);
    server.cli(&["user", "disable", ANN]).unwrap();
    kept.end(INVALID, 1008);
}

#[test]
fn a_tunnel_ends_with_its_instance() {
    let (_server, api, instance) = start("");
    let id = uuid(&instance);
    let _ssh = SshServer::of(&instance).unwrap();
    let (inside, port) = listener("127.0.0.1");
    let stopped = Both::of(&inside, open(&api, &instance, port));
    api.act(id, "stop").is(200);
    stopped.end("not running", 4001);
    api.act(id, "restart").is(200);
    api.wait_for(id, "running").unwrap();
    let deleted = Both::of(&inside, open(&api, &instance, port));
    api.delete(id).is(204);
    deleted.end("not running", 4001);
}

#[test]
fn a_tunnel_ends_with_its_client_and_with_the_connection_of_its_port() {
    let (_server, api, instance) = start("");
    let left = on_ssh_port(&instance, ended);
    drop(open(&api, &instance, 22));
    assert_eq!(left.join().unwrap().unwrap_or_default(), 0);
    let ssh = SshServer::of(&instance).unwrap();
    let (inside, port) = listener("127.0.0.1");
    let mut tunnel = open(&api, &instance, port);
    let (mut stream, _) = inside.accept().unwrap();
    std::io::Write::write_all(&mut stream, b"x").unwrap();
    assert_eq!(tunnel.read_exact(1).unwrap(), b"x");
    drop(ssh);
    // A lost connection is no end of the bytes.
    let words = "The port of the instance has broken its connection.";
    assert_eq!(tunnel.closed(), Some((1011, words.to_owned())));
    // The next tunnel logs in again.
    let _ssh = SshServer::of(&instance).unwrap();
    super::echo(inside);
    exchange(&mut open(&api, &instance, port), b"again");
}

#[test]
fn a_channel_that_opens_after_its_client_has_gone_is_closed() {
    let (_server, api, instance) = start("");
    let ssh = SshServer::of(&instance).unwrap();
    let (inside, port) = listener("127.0.0.1");
    ssh.open_late();
    let opened = Tunnel::try_open(&api, uuid(&instance), &format!("?port={port}"));
    assert!(opened.unwrap().is_err());
    ssh.hear();
    let (stream, _) = inside.accept().unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    assert_eq!(ended(stream).unwrap(), 0);
}

#[test]
fn tunnels_end_at_shutdown() {
    let (mut server, api, instance) = start("");
    let _ssh = SshServer::of(&instance).unwrap();
    let (inside, port) = listener("127.0.0.1");
    let both = Both::of(&inside, open(&api, &instance, port));
    let reader = std::thread::spawn(move || both.end("service stops", 1001));
    assert!(server.terminate().unwrap().success());
    reader.join().unwrap();
    server.run().unwrap();
}
