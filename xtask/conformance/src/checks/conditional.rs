//! Entity tags: `ETag`, `If-None-Match`, `If-Match`.

use super::auth::instance_endpoints;
use crate::check::{Check, decision};
use crate::client::{Client, INSTANCES, Response, instance_path};
use crate::context::{text, uuid};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// A tag that no representation has.
const OTHER: &str = "\"another-representation\"";

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision(
            "4",
            "If-None-Match with the present ETag is a 304 without a body, in get and list",
            |c| {
                let created = c.running("container")?;
                for path in [instance_path(uuid(&created)?), INSTANCES.to_owned()] {
                    c.retry(|| {
                        let tag = etag(&c.me().get(&path)?)?;
                        let answer =
                            with(c.me(), "GET", &path, ("If-None-Match", &tag), &Value::Null)?;
                        // Another check may have changed the list.
                        Ok(answer.status == 304 && etag(&answer)? == tag)
                    })?;
                    with(c.me(), "GET", &path, ("If-None-Match", OTHER), &Value::Null)?.is(200)?;
                }
                Ok(())
            },
        ),
        decision("4", "the ETag changes with the body", |c| {
            let created = c.running("container")?;
            let path = instance_path(uuid(&created)?);
            let before = etag(&c.me().get(&path)?)?;
            let renamed = c
                .me()
                .patch(uuid(&created)?, &json!({ "name": c.name() }))?;
            ensure!(etag(&renamed)? != before, "it is {before} before and after");
            ensure!(
                etag(&c.me().get(&path)?)? == etag(&renamed)?,
                "not that of PATCH"
            );
            Ok(())
        }),
        decision(
            "4",
            "If-Match without the present ETag is 412 and changes nothing, on every change",
            |c| {
                let created = c.running("container")?;
                let before = c.me().instance(uuid(&created)?)?.expect(200)?;
                for (method, path, body) in instance_endpoints(uuid(&created)?) {
                    if path.ends_with("/stats/") {
                        continue;
                    }
                    let answer = with(c.me(), method, &path, ("If-Match", OTHER), &body)?;
                    ensure!(answer.status == 412, "{method} {path}: {answer}");
                }
                with(c.me(), "GET", INSTANCES, ("If-Match", OTHER), &Value::Null)?.is(412)?;
                let after = c.me().instance(uuid(&created)?)?.expect(200)?;
                ensure!(after == before, "it changed: {after}");
                Ok(())
            },
        ),
        decision(
            "4",
            "If-Match with the present ETag or * makes the change",
            |c| {
                let created = c.running("container")?;
                let path = instance_path(uuid(&created)?);
                let tag = etag(&c.me().get(&path)?)?;
                for tag in [tag.as_str(), "*"] {
                    let body = json!({ "name": c.name() });
                    with(c.me(), "PATCH", &path, ("If-Match", tag), &body)?.is(200)?;
                }
                Ok(())
            },
        ),
        decision(
            "4.3",
            "a create with the Idempotency-Key and body of an earlier one gets its answer",
            |c| {
                let (key, body) = (c.name(), c.small("container"));
                let create = |body: &Value| {
                    let answer = with(c.me(), "POST", INSTANCES, ("Idempotency-Key", &key), body)?;
                    c.delete_later(c.me(), &answer);
                    Ok::<_, anyhow::Error>(answer)
                };
                let first = create(&body)?.expect(201)?;
                c.wait(uuid(&first)?, "running")?;
                let again = create(&body)?.expect(201)?;
                ensure!(again == first, "{} and {}", text(&first, "uuid")?, again);
                let other = create(&c.small("container"))?;
                other.is(422)?;
                ensure!(!other.detail()?.is_empty());
                Ok(())
            },
        ),
        decision("4.3", "an invalid Idempotency-Key is 400 on it", |c| {
            let body = c.small("container");
            let answer = with(c.me(), "POST", INSTANCES, ("Idempotency-Key", "a b"), &body)?;
            c.delete_later(c.me(), &answer);
            answer.refuses("Idempotency-Key")
        }),
    ]
}

fn etag(answer: &Response) -> Result<String> {
    Ok(answer.header("etag").context("no ETag")?.to_owned())
}

fn with(
    user: &Client,
    method: &str,
    path: &str,
    header: (&str, &str),
    body: &Value,
) -> Result<Response> {
    let bytes = serde_json::to_vec(body)?;
    let json = ("Content-Type", "application/json");
    match body {
        Value::Null => user.raw(method, path, &[header], None),
        _ => user.raw(method, path, &[header, json], Some(&bytes)),
    }
}
