//! The order of checks on a request. Authentication comes first: see `auth`.

use crate::check::{Check, decision};
use crate::client::{INSTANCES, Response, action_path, instance_path};
use crate::context::{Context, uuid};
use anyhow::{Result, ensure};
use serde_json::json;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain";

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision(
            "4",
            "Content-Type is checked before the size, and the size before the instance",
            |c| {
                let large = vec![b' '; 64 * 1024 + 1];
                send(c, "POST", INSTANCES, TEXT, &large)?.is(415)?;
                let missing = c.name();
                for (method, path) in [
                    ("PATCH", instance_path(&missing)),
                    ("POST", action_path(&missing, "add-port")),
                    ("POST", action_path(&missing, "remove-port")),
                ] {
                    send(c, method, &path, TEXT, &large)?.is(415)?;
                    send(c, method, &path, JSON, &large)?.is(413)?;
                    send(c, method, &path, JSON, b"{")?.is(400)?;
                    send(c, method, &path, JSON, b"{}")?.is(404)?;
                }
                Ok(())
            },
        ),
        decision(
            "4",
            "the method is checked before the slash and the body",
            |c| {
                c.me().raw("PUT", "/api/instance", &[], None)?.is(405)?;
                send(c, "PUT", INSTANCES, TEXT, b"{")?.is(405)?;
                send(c, "POST", "/api/instance", TEXT, b"{")?.is(308)
            },
        ),
        decision(
            "4",
            "Content-Type and size are checked before the fields",
            |c| {
                let mut wrong = json!({ "n_vcpus": 0 }).to_string().into_bytes();
                send(c, "POST", INSTANCES, TEXT, &wrong)?.is(415)?;
                wrong.resize(64 * 1024 + 1, b' ');
                send(c, "POST", INSTANCES, JSON, &wrong)?.is(413)
            },
        ),
        decision("4", "create checks fields before capacity", |c| {
            let taken = &c.sample("container")?["name"];
            for (field, wrong) in [
                ("name", taken.clone()),
                ("flavor", json!("no-such-flavor")),
                ("public_key", json!("none")),
                ("s3_prefill_bucket", json!("bucket")),
            ] {
                let mut body = c.small_with("container", &largest());
                body[field] = wrong;
                c.try_create(c.me(), &body)?.refuses(field)?;
            }
            Ok(())
        }),
        decision("4", "update checks fields before capacity", |c| {
            let running = c.running("container")?;
            let taken = &c.sample("container")?["name"];
            for (field, wrong) in [("name", taken.clone()), ("disk_size_gib", json!(2001))] {
                let mut body = json!({ "n_vcpus": 256, "mem_gib": 512 });
                body[field] = wrong;
                c.me().patch(uuid(&running)?, &body)?.refuses(field)?;
            }
            Ok(())
        }),
        decision(
            "4",
            "update checks fields before the state, and the state before capacity",
            |c| {
                let name = c.staged(|s| &s.failing_name, "--failing-name")?;
                let created = c.create(&c.small_with("container", &json!({ "name": name })))?;
                let id = uuid(&created)?;
                c.wait(id, "error")?;
                let wrong = json!({ "n_vcpus": 0, "mem_gib": 512 });
                c.me().patch(id, &wrong)?.refuses("n_vcpus")?;
                let refused = c
                    .me()
                    .patch(id, &json!({ "n_vcpus": 256, "mem_gib": 512 }))?;
                refused.is(400)?;
                ensure!(refused.detail()?.contains("error"), "{refused}");
                Ok(())
            },
        )
        .exclusive(),
    ]
}

/// The largest valid sizes, which few services have free.
fn largest() -> serde_json::Value {
    json!({ "n_vcpus": 256, "mem_gib": 512, "disk_size_gib": 2000 })
}

fn send(c: &Context<'_>, method: &str, path: &str, kind: &str, body: &[u8]) -> Result<Response> {
    let headers = [("Content-Type", kind)];
    let response = c.me().raw(method, path, &headers, Some(body))?;
    c.delete_later(c.me(), &response);
    Ok(response)
}
