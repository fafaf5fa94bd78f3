//! The caller's session, saved SSH keys, the metrics, and what leads to a shell.

use crate::check::{Check, decision};
use crate::client::action_path;
use crate::context::{text, uuid};
use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

const SSH_KEYS: &str = "/api/ssh-key/";
const METRICS: &str = "/metrics";
const PUBLIC_KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFIkGWuBbBTx9nTEHwsrBJV4jF7lFQyMDmE6pDnoO4Yg";

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision("5", "a session names the owner of its key", |c| {
            let session = c.me().get("/api/session/")?.expect(200)?;
            ensure!(session["kind"] == "key", "{session}");
            let email = &c.sample("container")?["owner_email"];
            ensure!(session["email"] == *email, "{session}");
            Ok(())
        }),
        decision(
            "4",
            "SSH keys are saved, listed and deleted for their owner",
            |c| {
                let body = json!({ "name": c.name(), "public_key": PUBLIC_KEY });
                let saved = c.me().post(SSH_KEYS, &body)?.expect(201)?;
                let path = format!("{SSH_KEYS}{}/", text(&saved, "id")?);
                let listed = c.me().get(SSH_KEYS)?.expect(200)?;
                let listed = listed.as_array().context("no array")?;
                ensure!(listed.contains(&saved), "it is not listed");
                c.me().post(SSH_KEYS, &body)?.refuses("name")?;
                let wrong = json!({ "name": c.name(), "public_key": "ssh-ed25519 AAAA" });
                c.me().post(SSH_KEYS, &wrong)?.refuses("public_key")?;
                let plain = [("Content-Type", "text/plain")];
                c.me().raw("POST", SSH_KEYS, &plain, Some(b"{}"))?.is(415)?;
                c.other()?.send("DELETE", &path, &Value::Null)?.is(404)?;
                c.me().send("DELETE", &path, &Value::Null)?.is(204)?;
                c.me().send("DELETE", &path, &Value::Null)?.is(404)
            },
        ),
        decision("4", "metrics need a key with their scope", |c| {
            c.anonymous().get(METRICS)?.is(401)?;
            let key = |scopes: Value| -> anyhow::Result<_> {
                let key = c.me().post("/api/key/", &json!({ "scopes": scopes }))?;
                let key = key.expect(201)?;
                c.me().watch().add_secret(text(&key, "key")?);
                Ok((c.me().with_key(text(&key, "key")?), key["id"].clone()))
            };
            let (reader, of_reader) = key(json!(["read", "write"]))?;
            reader.get(METRICS)?.is(403)?;
            let (monitor, of_monitor) = key(json!(["metrics"]))?;
            let metrics = monitor.get(METRICS)?;
            metrics.is(200)?;
            ensure!(metrics.text.ends_with("# EOF\n"), "it has no end");
            let large = vec![b' '; 70 * 1024];
            monitor.raw("GET", METRICS, &[], Some(&large))?.is(413)?;
            let headers = "Host: localhost\r\nTransfer-Encoding: chunked\r\n";
            let broken = "zz\r\n{}\r\n0\r\n\r\n";
            (monitor.send_malformed("GET", METRICS, headers, broken)?).is(400)?;
            for id in [of_reader, of_monitor] {
                let path = format!("/api/key/{}/", id.as_str().unwrap_or_default());
                c.me().send("DELETE", &path, &Value::Null)?.is(204)?;
            }
            Ok(())
        }),
        decision("4", "the host keys of an instance are a list", |c| {
            let created = c.running("container")?;
            let path = action_path(uuid(&created)?, "host-key");
            let keys = c.me().get(&path)?.expect(200)?;
            ensure!(keys.is_array(), "{keys}");
            c.other()?.get(&path)?.is(404)
        }),
        decision(
            "4",
            "a terminal needs a WebSocket and a running instance",
            |c| {
                let created = c.running("container")?;
                let id = uuid(&created)?;
                let path = action_path(id, "terminal");
                c.me().get(&path)?.is(426)?;
                c.me().act(id, "stop")?.is(200)?;
                c.me().get(&path)?.is(400)
            },
        ),
    ]
}
