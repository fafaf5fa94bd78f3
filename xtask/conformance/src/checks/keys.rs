//! API keys of the caller, their scopes, and the audit log.

use super::auth::{additional_endpoints, instance_endpoints};
use super::backups::backup_endpoints;
use super::snapshots::snapshot_endpoints;
use super::volumes::volume_endpoints;
use super::webhooks::{MISSING, webhook_endpoints};
use crate::check::{Check, decision};
use crate::client::{Client, INSTANCES, Response, instance_path};
use crate::context::{Context, text, uuid};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

const KEYS: &str = "/api/key/";
const AUDIT: &str = "/api/audit/";

/// Endpoints apart from those of one instance, with a valid body.
pub(super) fn other_endpoints(c: &Context<'_>) -> Vec<(&'static str, String, Value)> {
    let mut endpoints = additional_endpoints(&c.name());
    endpoints.extend(webhook_endpoints(MISSING));
    endpoints.extend(volume_endpoints(MISSING));
    endpoints.extend(snapshot_endpoints(MISSING));
    endpoints.extend(backup_endpoints(MISSING));
    endpoints.extend([
        ("GET", INSTANCES.to_owned(), Value::Null),
        ("POST", INSTANCES.to_owned(), c.small("container")),
        ("GET", AUDIT.to_owned(), Value::Null),
        ("GET", "/api/event/".to_owned(), Value::Null),
        ("GET", KEYS.to_owned(), Value::Null),
        ("GET", "/api/quota/".to_owned(), Value::Null),
        ("POST", KEYS.to_owned(), json!({})),
        ("DELETE", format!("{KEYS}none/"), Value::Null),
        ("GET", "/api/flavor/".to_owned(), Value::Null),
        ("GET", "/api/offer/".to_owned(), Value::Null),
        ("POST", "/api/estimate/".to_owned(), c.small("container")),
        ("GET", "/api/usage/".to_owned(), Value::Null),
        ("GET", "/api/session/".to_owned(), Value::Null),
        ("GET", "/api/ssh-key/".to_owned(), Value::Null),
        ("POST", "/api/ssh-key/".to_owned(), json!({})),
        ("DELETE", "/api/ssh-key/none/".to_owned(), Value::Null),
        ("GET", "/api/preferences/".to_owned(), Value::Null),
        ("PATCH", "/api/preferences/".to_owned(), json!({})),
    ]);
    endpoints
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision("5", "a key is created, listed and revoked", |c| {
            let name = c.name();
            let (client, id) = create(c, &json!({ "name": name, "scopes": ["read", "write"] }))?;
            let audit = c.me().get(&format!("{AUDIT}?order=newest"))?;
            ensure!(audit.text.contains(&id), "the audit log does not have it");
            client.get(INSTANCES)?.is(200)?;
            let listed = |user: &Client| -> Result<bool> {
                let keys = user.get(KEYS)?.expect(200)?;
                let keys = keys.as_array().context("no array")?;
                ensure!(
                    keys.iter().all(|key| key.get("key").is_none()),
                    "a secret is listed"
                );
                Ok(keys
                    .iter()
                    .any(|key| key["id"] == id && key["name"] == name))
            };
            ensure!(
                listed(c.me())? && !listed(c.other()?)?,
                "not listed, or to another user"
            );
            let path = format!("{KEYS}{id}/");
            c.other()?.send("DELETE", &path, &Value::Null)?.is(404)?;
            client.send("DELETE", &path, &Value::Null)?.is(204)?;
            client.get(INSTANCES)?.is(401)?;
            c.me().send("DELETE", &path, &Value::Null)?.is(404)?;
            ensure!(!listed(c.me())?, "it is still listed");
            Ok(())
        }),
        decision(
            "5",
            "a key with the scope `write` reads nothing, and changes no webhook and no bucket",
            |c| {
                let (client, id) = create(c, &json!({ "scopes": ["write"] }))?;
                let mut endpoints = instance_endpoints(&c.name());
                endpoints.extend(other_endpoints(c));
                endpoints.retain(|(method, _, _)| *method == "GET");
                endpoints.extend(webhook_endpoints(MISSING));
                endpoints.extend(backup_endpoints(MISSING));
                for (method, path, body) in endpoints {
                    let response = client.send(method, &path, &body)?;
                    ensure!(response.status == 403, "{method} {path}: {response}");
                    ensure!(!response.detail()?.is_empty());
                }
                revoke(c, &id)
            },
        ),
        decision("5", "an answer has the parts that its key may read", |c| {
            let created = c.running("container")?;
            let (path, password) = (instance_path(uuid(&created)?), "original_service_password");
            let (reader, of_reader) = create(c, &json!({ "scopes": ["read"] }))?;
            let shown = reader.get(&path)?.expect(200)?;
            ensure!(shown[password] == "", "a reader sees the password");
            let whole = c.me().get(&path)?;
            ensure!(whole.header("cache-control") == Some("no-store"), "{whole}");
            ensure!(
                whole.expect(200)?[password] != "",
                "its owner sees no password"
            );
            let (writer, of_writer) = create(c, &json!({ "scopes": ["write"] }))?;
            let changed = writer.send("PATCH", &path, &json!({}))?.expect(200)?;
            let only = json!({ "uuid": created["uuid"], "state": "running" });
            ensure!(changed == only, "{changed}");
            revoke(c, &of_reader)?;
            revoke(c, &of_writer)
        }),
        decision("5", "a key with the scope `read` changes nothing", |c| {
            let (client, id) = create(c, &json!({ "scopes": ["read"] }))?;
            client.get(INSTANCES)?.is(200)?;
            client.get(AUDIT)?.is(200)?;
            let mut endpoints = instance_endpoints(&c.name());
            endpoints.extend(other_endpoints(c));
            for (method, path, body) in endpoints {
                let opens = ["/terminal/", "/tunnel/"]
                    .iter()
                    .any(|end| path.ends_with(end));
                let response = client.send(method, &path, &body)?;
                c.delete_later(c.me(), &response);
                let refused = response.status == 403;
                ensure!(
                    refused == (opens || method != "GET"),
                    "{method} {path}: {response}"
                );
            }
            revoke(c, &id)
        }),
        decision(
            "5",
            "a key creates no key with more scopes or a longer life",
            |c| {
                let (client, id) = create(
                    c,
                    &json!({ "scopes": ["write"], "expires_at": "2099-01-01T00:00:00Z" }),
                )?;
                let wrong = json!({ "scopes": ["read", "write"] });
                client.post(KEYS, &wrong)?.refuses("scopes")?;
                let wrong = json!({ "expires_at": "2099-01-02T00:00:00Z" });
                client.post(KEYS, &wrong)?.refuses("expires_at")?;
                let derived = client.post(KEYS, &json!({}))?.expect(201)?;
                ensure!(
                    derived["scopes"] == json!(["write"]),
                    "{}",
                    derived["scopes"]
                );
                let expiry = &derived["expires_at"];
                ensure!(
                    expiry == "2099-01-01T00:00:00.000Z",
                    "it expires at {expiry}"
                );
                c.me().watch().add_secret(text(&derived, "key")?);
                revoke(c, text(&derived, "id")?)?;
                revoke(c, &id)
            },
        ),
        decision(
            "5",
            "invalid fields of a key are refused with 400 on each",
            |c| {
                for (field, value) in [
                    ("name", json!("a\nb")),
                    ("name", json!("x".repeat(101))),
                    ("scopes", json!([])),
                    ("scopes", json!(["read", "admin"])),
                    ("scopes", json!("read")),
                    ("expires_at", json!("tomorrow")),
                    ("expires_at", json!("2001-01-01T00:00:00Z")),
                    ("user", json!(1)),
                ] {
                    c.me()
                        .post(KEYS, &json!({ field: value }))?
                        .refuses(field)?;
                }
                let text = [("Content-Type", "text/plain")];
                c.me().raw("POST", KEYS, &text, Some(b"{}"))?.is(415)
            },
        ),
        decision(
            "5",
            "the audit log has each change of an instance, for its owner",
            |c| {
                let created = c.running("container")?;
                let id = uuid(&created)?;
                c.me().patch(id, &json!({ "name": c.name() }))?.is(200)?;
                c.me().delete(id)?.is(204)?;
                let operations = |user: &Client, order: &str| -> Result<Vec<String>> {
                    let mut found = Vec::new();
                    let mut path = format!("{AUDIT}?limit=500&order={order}");
                    loop {
                        let page = user.get(&path)?;
                        let next = page.header("link").map(str::to_owned);
                        let records = page.expect(200)?;
                        let records = records.as_array().context("no array")?.iter();
                        let of_instance = records.filter(|r| r["instance"] == id);
                        found.extend(
                            of_instance.filter_map(|r| Some(r["operation"].as_str()?.to_owned())),
                        );
                        let Some(next) = next else {
                            return Ok(found);
                        };
                        let end = next.find('>').context("no URL in Link")?;
                        path = next.get(1..end).context("no URL in Link")?.to_owned();
                    }
                };
                let found = operations(c.me(), "oldest")?;
                let mut expected = ["instance.create", "instance.update", "instance.delete"];
                ensure!(found == expected, "it has {found:?}");
                let found = operations(c.me(), "newest")?;
                expected.reverse();
                ensure!(found == expected, "the newest first, it has {found:?}");
                let others = operations(c.other()?, "newest")?;
                ensure!(others.is_empty(), "another user sees it");
                for (query, field) in [
                    ("order=new", "order"),
                    ("order=newest&order=newest", "order"),
                    ("limit=0", "limit"),
                    ("after=x", "after"),
                ] {
                    c.me().get(&format!("{AUDIT}?{query}"))?.refuses(field)?;
                }
                Ok(())
            },
        ),
        decision(
            "4",
            "the endpoints need a key, and take no large body",
            |c| {
                let large = vec![b' '; 70 * 1024];
                let json = [("Content-Type", "application/json")];
                for (method, path, body) in other_endpoints(c) {
                    c.anonymous().send(method, &path, &body)?.is(401)?;
                    c.me().raw(method, &path, &json, Some(&large))?.is(413)?;
                }
                Ok(())
            },
        ),
    ]
}

/// Creates a key. Returns a client with it, and its id.
pub(super) fn create(c: &Context<'_>, body: &Value) -> Result<(Client, String)> {
    let response: Response = c.me().post(KEYS, body)?;
    let stored = response.header("cache-control");
    ensure!(stored == Some("no-store"), "Cache-Control is {stored:?}");
    let key = response.expect(201)?;
    c.me().watch().add_secret(text(&key, "key")?);
    Ok((
        c.me().with_key(text(&key, "key")?),
        text(&key, "id")?.to_owned(),
    ))
}

pub(super) fn revoke(c: &Context<'_>, id: &str) -> Result<()> {
    let path = format!("{KEYS}{id}/");
    c.me().send("DELETE", &path, &Value::Null)?.is(204)
}
