//! Buckets and backups, as far as they need no object store.

use super::snapshots::instance;
use super::webhooks::MISSING;
use crate::check::{Check, decision};
use crate::client::action_path;
use crate::context::uuid;
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

/// A plan of backups.
fn of_plan() -> Value {
    json!({ "bucket": "offsite", "every_h": 24, "keep": 7 })
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

/// Those of one bucket, backup, instance or volume.
fn of_one(id: &str) -> [(&'static str, String, Value); 15] {
    let (bucket, backup) = (format!("{BUCKETS}{id}/"), format!("{BACKUPS}{id}/"));
    let to = json!({ "bucket": "offsite" });
    let plan = action_path(id, "backup-plan");
    let plan_of_volume = format!("/api/volume/{id}/backup-plan/");
    [
        ("GET", bucket.clone(), Value::Null),
        ("DELETE", bucket, Value::Null),
        ("POST", action_path(id, "backup"), to.clone()),
        ("POST", format!("/api/volume/{id}/backup/"), to),
        ("GET", backup.clone(), Value::Null),
        ("DELETE", backup.clone(), Value::Null),
        ("POST", format!("{backup}verify/"), Value::Null),
        ("POST", format!("{backup}restore/"), json!({})),
        ("GET", plan.clone(), Value::Null),
        ("PUT", plan.clone(), of_plan()),
        ("DELETE", plan, Value::Null),
        ("GET", plan_of_volume.clone(), Value::Null),
        ("PUT", plan_of_volume.clone(), of_plan()),
        ("DELETE", plan_of_volume, Value::Null),
        ("GET", action_path(id, "recreate"), Value::Null),
    ]
}

pub(super) fn checks() -> Vec<Check> {
    let wrong_plans = decision(
        "4",
        "wrong fields of a plan of backups are refused, all at once",
        |c| {
            let instance = instance(c)?;
            let path = action_path(uuid(&instance)?, "backup-plan");
            for (field, value) in [
                ("bucket", json!("offsite")),
                ("every_h", json!(8761)),
                ("keep", json!(33)),
                ("keep_days", json!(0)),
            ] {
                let mut body = of_plan();
                body[field] = value;
                let refused = c.me().send("PUT", &path, &body)?;
                refused.refuses(field)?;
                refused.refuses("bucket")?;
            }
            for method in ["GET", "DELETE"] {
                c.me().send(method, &path, &Value::Null)?.is(404)?;
                c.other()?.send(method, &path, &Value::Null)?.is(404)?;
            }
            c.other()?.send("PUT", &path, &of_plan())?.is(404)
        },
    );
    let missing = decision(
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
            for query in ["bucket", "instance", "volume"] {
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
    );
    vec![missing, wrong_plans]
}
