//! The caller's session, saved SSH keys, the metrics, and what leads to a shell.

use crate::check::{Check, decision};
use crate::client::{Client, action_path};
use crate::context::{expect_field, text, uuid};
use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

const SSH_KEYS: &str = "/api/ssh-key/";
const METRICS: &str = "/metrics";
const PUBLIC_KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFIkGWuBbBTx9nTEHwsrBJV4jF7lFQyMDmE6pDnoO4Yg";
const FINGERPRINT: &str = "SHA256:n3knDmyg+2a+JK29xhPEqIjEG265QrXR41UylNzOSOs";

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
                let name = c.name();
                let save = |user: &Client, name: &str, key: &str| {
                    user.post(SSH_KEYS, &json!({ "name": name, "public_key": key }))
                };
                let loose = format!("  {} me@laptop\n", PUBLIC_KEY.replace(' ', "  "));
                let saved = save(c.me(), &name, &loose)?.expect(201)?;
                let normal = format!("{PUBLIC_KEY} me@laptop");
                expect_field(&saved, "public_key", &json!(normal))?;
                expect_field(&saved, "fingerprint", &json!(FINGERPRINT))?;
                let path = format!("{SSH_KEYS}{}/", text(&saved, "id")?);
                let listed = |user: &Client| {
                    let keys = user.get(SSH_KEYS)?.expect(200)?;
                    Ok::<_, anyhow::Error>(keys.as_array().context("no array")?.contains(&saved))
                };
                ensure!(
                    listed(c.me())? && !listed(c.other()?)?,
                    "not listed, or to another user"
                );
                let plain = [("Content-Type", "text/plain")];
                c.me().raw("POST", SSH_KEYS, &plain, Some(b"{}"))?.is(415)?;
                // A name is the user's own.
                let theirs = save(c.other()?, &name, PUBLIC_KEY)?.expect(201)?;
                let theirs = format!("{SSH_KEYS}{}/", text(&theirs, "id")?);
                c.other()?.send("DELETE", &theirs, &Value::Null)?.is(204)?;
                c.other()?.send("DELETE", &path, &Value::Null)?.is(404)?;
                let body = c.small_with("container", &json!({ "public_key": saved["public_key"] }));
                c.create(&body)?;
                save(c.me(), &name, PUBLIC_KEY)?.refuses("name")?;
                c.me().send("DELETE", &path, &Value::Null)?.is(204)?;
                c.me().send("DELETE", &path, &Value::Null)?.is(404)?;
                let again = save(c.me(), &name, PUBLIC_KEY)?.expect(201)?;
                let again = format!("{SSH_KEYS}{}/", text(&again, "id")?);
                c.me().send("DELETE", &again, &Value::Null)?.is(204)
            },
        ),
        decision("4", "wrong names and lines of SSH keys are refused", |c| {
            let save = |body: Value| c.me().post(SSH_KEYS, &body);
            let name = c.name();
            for wrong in ["", "two\nlines", &"x".repeat(65)] {
                save(json!({ "name": wrong, "public_key": PUBLIC_KEY }))?.refuses("name")?;
            }
            for wrong in [
                "hello",
                &format!("{PUBLIC_KEY}\n{PUBLIC_KEY}"),
                &format!("command=\"id\" {PUBLIC_KEY}"),
                "-----BEGIN OPENSSH PRIVATE KEY-----",
                PUBLIC_KEY.get(..60).context("short")?,
            ] {
                let refused = save(json!({ "name": name, "public_key": wrong }))?;
                refused.refuses("public_key")?;
                let body = c.small_with("container", &json!({ "public_key": wrong }));
                let by_create = c.try_create(c.me(), &body)?;
                let equal = refused.body["public_key"] == by_create.body["public_key"];
                ensure!(equal, "create has other words: {refused}; {by_create}");
            }
            let all = save(json!({ "id": 1 }))?;
            for field in ["name", "public_key", "id"] {
                all.refuses(field)?;
            }
            let longest = json!({ "name": format!("{name:x<64}"), "public_key": PUBLIC_KEY });
            let saved = save(longest)?.expect(201)?;
            let path = format!("{SSH_KEYS}{}/", text(&saved, "id")?);
            c.me().send("DELETE", &path, &Value::Null)?.is(204)
        }),
        decision(
            "4",
            "metrics need a key with their scope, which users cannot give",
            |c| {
                c.anonymous().get(METRICS)?.is(401)?;
                let key = |scopes: Value| -> anyhow::Result<_> {
                    let key = c.me().post("/api/key/", &json!({ "scopes": scopes }))?;
                    let key = key.expect(201)?;
                    c.me().watch().add_secret(text(&key, "key")?);
                    Ok((c.me().with_key(text(&key, "key")?), key["id"].clone()))
                };
                let (reader, of_reader) = key(json!(["read", "write"]))?;
                reader.get(METRICS)?.is(403)?;
                let path = format!("/api/key/{}/", of_reader.as_str().unwrap_or_default());
                c.me().send("DELETE", &path, &Value::Null)?.is(204)?;
                let wanted = json!({ "scopes": ["metrics"] });
                c.me().post("/api/key/", &wanted)?.refuses("scopes")?;
                // Only the operator gives the scope.
                let monitor = c.me();
                let metrics = monitor.get(METRICS)?;
                if metrics.status == 403 {
                    return Ok(());
                }
                metrics.is(200)?;
                ensure!(metrics.text.ends_with("# EOF\n"), "it has no end");
                let large = vec![b' '; 70 * 1024];
                monitor.raw("GET", METRICS, &[], Some(&large))?.is(413)?;
                let headers = "Host: localhost\r\nTransfer-Encoding: chunked\r\n";
                let broken = "zz\r\n{}\r\n0\r\n\r\n";
                (monitor.send_malformed("GET", METRICS, headers, broken)?).is(400)
            },
        ),
        decision("4", "the host keys of an instance are a list", |c| {
            let created = c.running("container")?;
            let path = action_path(uuid(&created)?, "host-key");
            let keys = c.me().get(&path)?.expect(200)?;
            ensure!(keys.is_array(), "{keys}");
            c.other()?.get(&path)?.is(404)
        }),
        decision(
            "4",
            "a terminal and a tunnel need a WebSocket and a running instance",
            |c| {
                let created = c.running("container")?;
                let id = uuid(&created)?;
                let paths = ["terminal", "tunnel"].map(|action| action_path(id, action));
                for path in &paths {
                    let plain = c.me().get(path)?;
                    plain.is(426)?;
                    ensure!(plain.header("upgrade") == Some("websocket"), "{plain}");
                    ensure!(
                        plain.header("sec-websocket-version") == Some("13"),
                        "{plain}"
                    );
                }
                c.me().act(id, "stop")?.is(200)?;
                paths.iter().try_for_each(|path| c.me().get(path)?.is(400))
            },
        ),
        decision(
            "4",
            "a tunnel refuses ports that are none, and tunnels of others are not found",
            |c| {
                let created = c.running("container")?;
                let path = action_path(uuid(&created)?, "tunnel");
                for port in ["0", "65536", "ssh", "22&port=23"] {
                    let refused = c.me().get(&format!("{path}?port={port}"))?;
                    refused.refuses("port")?;
                }
                c.other()?.get(&path)?.is(404)?;
                c.me().get(&action_path(&c.name(), "tunnel"))?.is(404)
            },
        ),
    ]
}
