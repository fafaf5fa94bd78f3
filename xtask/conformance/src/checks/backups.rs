//! Buckets and backups, as far as they need no object store.

use super::webhooks::MISSING;
use crate::check::{Check, decision};
use crate::client::action_path;
use anyhow::ensure;
use serde_json::{Value, json};

const BUCKETS: &str = "/api/bucket/";
const BACKUPS: &str = "/api/backup/";

/// The lists, which are there without a bucket.
const LISTS: [&str; 2] = [BUCKETS, BACKUPS];

/// A bucket at an address that is never reached.
fn bucket() -> Value {
    json!({
        "name": "offsite",
        "endpoint": "https://169.254.169.254",
        "bucket": "kept",
        "access_key_id": "key",
        "secret_access_key": "secret",
        "passphrase": "a passphrase of nobody",
    })
}

/// Every endpoint of buckets and backups, with a valid body.
pub(super) fn backup_endpoints(id: &str) -> Vec<(&'static str, String, Value)> {
    let mut endpoints = vec![
        ("GET", BUCKETS.to_owned(), Value::Null),
        ("POST", BUCKETS.to_owned(), bucket()),
        ("GET", BACKUPS.to_owned(), Value::Null),
    ];
    endpoints.extend(of_one(id));
    endpoints
}

/// Those of one bucket, backup or instance.
fn of_one(id: &str) -> [(&'static str, String, Value); 7] {
    let (bucket, backup) = (format!("{BUCKETS}{id}/"), format!("{BACKUPS}{id}/"));
    let to = json!({ "bucket": "offsite" });
    [
        ("GET", bucket.clone(), Value::Null),
        ("DELETE", bucket, Value::Null),
        ("POST", action_path(id, "backup"), to),
        ("GET", backup.clone(), Value::Null),
        ("DELETE", backup.clone(), Value::Null),
        ("POST", format!("{backup}verify/"), Value::Null),
        ("POST", format!("{backup}restore/"), json!({})),
    ]
}

pub(super) fn checks() -> Vec<Check> {
    vec![decision(
        "4",
        "a missing bucket or backup returns 404, and wrong fields of one are refused",
        |c| {
            for list in LISTS {
                let listed = c.me().get(list)?.expect(200)?;
                ensure!(listed == json!([]), "{listed}");
            }
            for (method, path, body) in of_one(MISSING) {
                c.me().send(method, &path, &body)?.is(404)?;
            }
            for query in ["bucket", "instance"] {
                let missing = format!("{BACKUPS}?{query}=nothing");
                c.me().get(&missing)?.is(404)?;
            }
            for (field, value) in [
                ("endpoint", json!("https://169.254.169.254")),
                ("endpoint", json!("http://example.com")),
                ("name", json!("-")),
                ("bucket", json!("a/b")),
                ("prefix", json!("..")),
                ("region", json!("a b")),
                ("access_key_id", json!("")),
                ("secret_access_key", json!(1)),
                ("passphrase", json!("short")),
            ] {
                let mut body = bucket();
                body[field] = value;
                c.me().post(BUCKETS, &body)?.refuses(field)?;
            }
            Ok(())
        },
    )]
}
