//! Webhooks of the caller and their deliveries.

use crate::check::{Check, decision};
use crate::context::text;
use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

const WEBHOOKS: &str = "/api/webhook/";
/// The id of no webhook.
pub(super) const MISSING: &str = "00000000-0000-4000-8000-000000000000";
/// A name that is never found, so no request leaves the service.
const URL: &str = "https://receiver.invalid/hook";

/// URLs that are refused, with words of the message.
const REFUSED: [(&str, &str); 16] = [
    ("http://example.com/", "must begin with https://"),
    ("ftp://example.com/", "must begin with https://"),
    ("example.com", "must be a URL"),
    ("https://ann:secret@example.com/", "no password"),
    ("https://example.com/#top", "fragment"),
    ("https://127.0.0.1/", "public address"),
    ("https://0x7f000001/", "public address"),
    ("https://10.0.0.1:8443/", "public address"),
    ("https://100.100.100.200/", "public address"),
    ("https://168.63.129.16/", "public address"),
    (
        "https://169.254.169.254/latest/meta-data/",
        "public address",
    ),
    ("https://[::1]/", "public address"),
    ("https://[::ffff:10.0.0.1]/", "public address"),
    ("https://[64:ff9b::a00:1]/", "public address"),
    ("https://[2002:a00:1::]/", "public address"),
    ("https://[fd00:ec2::254]/", "public address"),
];

/// Every endpoint of webhooks, with a valid body.
pub(super) fn webhook_endpoints(id: &str) -> Vec<(&'static str, String, Value)> {
    let mut endpoints = vec![
        ("GET", WEBHOOKS.to_owned(), Value::Null),
        ("POST", WEBHOOKS.to_owned(), json!({ "url": URL })),
    ];
    for (method, rest) in [
        ("GET", ""),
        ("POST", "test/"),
        ("POST", "rotate/"),
        ("GET", "delivery/"),
        ("POST", "delivery/1/redeliver/"),
        ("DELETE", ""),
    ] {
        endpoints.push((method, format!("{WEBHOOKS}{id}/{rest}"), Value::Null));
    }
    endpoints
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision(
            "4",
            "webhooks are created, tested, rotated and deleted for their owner",
            |c| {
                // No other rule makes such an event meanwhile.
                let body = json!({ "url": URL, "types": ["bill-corrected"] });
                let mut created = c.me().post(WEBHOOKS, &body)?.expect(201)?;
                let path = format!("{WEBHOOKS}{}/", text(&created, "id")?);
                c.me().watch().add_secret(text(&created, "secret")?);
                created
                    .as_object_mut()
                    .context("no object")?
                    .remove("secret");
                ensure!(
                    c.me().get(&path)?.expect(200)? == created,
                    "it is another one"
                );
                let listed = c.me().get(WEBHOOKS)?.expect(200)?;
                let listed = listed.as_array().context("no array")?;
                ensure!(listed.contains(&created), "it is not listed");
                let rotated = c.me().post(&format!("{path}rotate/"), &Value::Null)?;
                c.me()
                    .watch()
                    .add_secret(text(&rotated.expect(200)?, "secret")?);
                c.me()
                    .post(&format!("{path}test/"), &Value::Null)?
                    .is(202)?;
                let again = format!("{path}delivery/1/redeliver/");
                c.me().post(&again, &Value::Null)?.is(202)?;
                let deliveries = format!("{path}delivery/");
                let made = c.me().get(&deliveries)?.expect(200)?;
                ensure!(made[0]["id"] == 1 && made[0]["event"].is_null(), "{made}");
                c.me()
                    .get(&format!("{deliveries}?limit=0"))?
                    .refuses("limit")?;
                let of_one = webhook_endpoints(text(&created, "id")?);
                for (method, path, body) in of_one.into_iter().skip(2) {
                    c.other()?.send(method, &path, &body)?.is(404)?;
                }
                c.me().send("DELETE", &path, &Value::Null)?.is(204)?;
                c.me().send("DELETE", &path, &Value::Null)?.is(404)
            },
        ),
        decision(
            "4",
            "a wrong URL and unknown types of a webhook are refused",
            |c| {
                for (url, why) in REFUSED {
                    let response = c.me().post(WEBHOOKS, &json!({ "url": url }))?;
                    response.refuses("url")?;
                    let named = response.body["url"].to_string().contains(why);
                    ensure!(named, "{url}: {response}");
                }
                let both = json!({ "url": "https://127.0.0.1/", "types": ["ready", "none"] });
                let response = c.me().post(WEBHOOKS, &both)?;
                response.refuses("url")?;
                ensure!(
                    response.body["types"].to_string().contains("none"),
                    "{response}"
                );
                let body = json!({ "url": URL, "types": ["none"] });
                c.me().post(WEBHOOKS, &body)?.refuses("types")?;
                let plain = [("Content-Type", "text/plain")];
                c.me().raw("POST", WEBHOOKS, &plain, Some(b"{}"))?.is(415)
            },
        ),
    ]
}
