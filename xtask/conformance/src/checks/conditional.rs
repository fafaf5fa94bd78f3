//! Entity tags: `ETag`, `If-None-Match`, `If-Match`.

use super::auth::instance_endpoints;
use crate::check::{Check, decision, skip};
use crate::client::{Client, INSTANCES, Response, action_path, instance_path};
use crate::context::{Context, text, uuid};
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
                    for form in ["TAG", "W/TAG", "\"x\", TAG", "*"] {
                        c.retry(|| {
                            let tag = etag(&c.me().get(&path)?)?;
                            let header = ("If-None-Match", &*form.replace("TAG", &tag));
                            let answer = with(c.me(), "GET", &path, header, &Value::Null)?;
                            // Another check may have changed the list.
                            Ok(answer.status == 304
                                && answer.text.is_empty()
                                && etag(&answer)? == tag)
                        })?;
                    }
                    with(c.me(), "GET", &path, ("If-None-Match", OTHER), &Value::Null)?.is(200)?;
                }
                Ok(())
            },
        ),
        decision("4", "the ETag is that of the body", |c| {
            let created = c.try_create(c.me(), &c.small("container"))?;
            let id = uuid(&created.body)?;
            let running = c.wait(id, "running")?;
            let path = instance_path(id);
            let before = etag(&c.me().get(&path)?)?;
            ensure!(before.starts_with('"'), "it is {before}");
            ensure!(
                etag(&created)? != before,
                "the state changed, and not the tag"
            );
            let by_name = c.me().instance(text(&running, "name")?)?;
            ensure!(etag(&by_name)? == before, "another one by name");
            let list = etag(&c.me().get(INSTANCES)?)?;
            let renamed = c.me().patch(id, &json!({ "name": c.name() }))?;
            ensure!(etag(&renamed)? != before, "it is {before} before and after");
            ensure!(
                etag(&c.me().get(&path)?)? == etag(&renamed)?,
                "not that of PATCH"
            );
            ensure!(
                etag(&c.me().get(INSTANCES)?)? != list,
                "that of the old list"
            );
            c.retry(|| {
                let page = c.me().get(&format!("{INSTANCES}?limit=1000"))?;
                Ok(etag(&page)? == etag(&c.me().get(INSTANCES)?)?)
            })
        }),
        decision(
            "4",
            "If-Match without the present ETag is 412 and changes nothing, on every change",
            |c| {
                let created = c.running("container")?;
                let before = c.me().instance(uuid(&created)?)?;
                let weak = format!("W/{}", etag(&before)?);
                for tags in [OTHER, &weak, &format!("{OTHER}, {weak}")] {
                    for (method, path, body) in instance_endpoints(uuid(&created)?) {
                        if path.ends_with("/stats/") {
                            continue;
                        }
                        let answer = with(c.me(), method, &path, ("If-Match", tags), &body)?;
                        ensure!(answer.status == 412, "{method} {path} {tags}: {answer}");
                    }
                }
                with(c.me(), "GET", INSTANCES, ("If-Match", OTHER), &Value::Null)?.is(412)?;
                let after = c.me().instance(uuid(&created)?)?.expect(200)?;
                ensure!(after == before.body, "it changed: {after}");
                Ok(())
            },
        ),
        decision(
            "4",
            "If-Match is checked after instance and fields, and before the state",
            |c| {
                let created = c.running("container")?;
                let id = uuid(&created)?;
                let act = |selector: &str, action: &str, tags: &str| {
                    let path = action_path(selector, action);
                    with(c.me(), "POST", &path, ("If-Match", tags), &Value::Null)
                };
                act(&c.name(), "stop", OTHER)?.is(404)?;
                let wrong = json!({ "name": "x" });
                with(
                    c.me(),
                    "PATCH",
                    &instance_path(id),
                    ("If-Match", OTHER),
                    &wrong,
                )?
                .refuses("name")?;
                act(id, "restart", OTHER)?.is(412)?;
                act(id, "restart", "*")?.is(400)?;
                let before = etag(&c.me().instance(id)?)?;
                act(id, "stop", &format!("{OTHER}, {before}"))?.is(200)?;
                act(id, "restart", &before)?.is(412)?;
                act(id, "restart", "*")?.is(200)?;
                let now = etag(&c.me().instance(id)?)?;
                with(
                    c.me(),
                    "DELETE",
                    &instance_path(id),
                    ("If-Match", &now),
                    &Value::Null,
                )?
                .is(204)
            },
        ),
        decision("4", "a header without entity tags is 400 on it", |c| {
            let path = instance_path(uuid(c.sample("container")?)?);
            for wrong in ["x", "\"a", "*, \"a\"", "\"a\" \"b\" c"] {
                with(c.me(), "PATCH", &path, ("If-Match", wrong), &json!({}))?
                    .refuses("If-Match")?;
                with(
                    c.me(),
                    "GET",
                    INSTANCES,
                    ("If-None-Match", wrong),
                    &Value::Null,
                )?
                .refuses("If-None-Match")?;
            }
            Ok(())
        }),
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
                let first = create(c, c.me(), &key, &body)?;
                first.is(201)?;
                let id = uuid(&first.body)?;
                c.wait(id, "running")?;
                for delete in [true, false] {
                    let again = create(c, c.me(), &key, &body)?;
                    ensure!(again.status == 201 && again.body == first.body, "{again}");
                    ensure!(etag(&again)? == etag(&first)?, "another ETag");
                    if delete {
                        c.me().delete(id)?.is(204)?;
                    }
                }
                c.me().instance(text(&body, "name")?)?.is(404)?;
                let other = create(c, c.me(), &key, &c.small("container"))?;
                other.is(422)?;
                ensure!(other.detail()?.contains("another body"), "{other}");
                // A key is its owner's.
                create(c, c.other()?, &key, &c.small("container"))?.is(201)
            },
        ),
        decision(
            "4.3",
            "a refused create does not keep its Idempotency-Key",
            |c| {
                let key = c.name();
                let wrong = c.small_with("container", &json!({ "n_vcpus": 0 }));
                create(c, c.me(), &key, &wrong)?.refuses("n_vcpus")?;
                let largest = json!({ "n_vcpus": 256, "mem_gib": 512, "disk_size_gib": 2000 });
                let refused = create(c, c.me(), &key, &c.small_with("container", &largest))?;
                if refused.status == 201 {
                    return skip("the service has capacity for the largest container");
                }
                refused.is(422)?;
                create(c, c.me(), &key, &c.small("container"))?.is(201)
            },
        ),
        decision("4.3", "an invalid Idempotency-Key is 400 on it", |c| {
            for wrong in ["", "a b", "a\tb", &"x".repeat(129)] {
                create(c, c.me(), wrong, &c.small("container"))?.refuses("Idempotency-Key")?;
            }
            let body = serde_json::to_vec(&c.small("container"))?;
            let json = ("Content-Type", "application/json");
            let twice = [json, ("Idempotency-Key", "a"), ("Idempotency-Key", "a")];
            let answer = c.me().raw("POST", INSTANCES, &twice, Some(&body))?;
            c.delete_later(c.me(), &answer);
            answer.refuses("Idempotency-Key")?;
            let longest = format!("{:~<128}", c.name());
            create(c, c.me(), &longest, &c.small("container"))?.is(201)
        }),
    ]
}

/// Creates an instance with an `Idempotency-Key`.
pub(super) fn create(c: &Context<'_>, user: &Client, key: &str, body: &Value) -> Result<Response> {
    let answer = with(user, "POST", INSTANCES, ("Idempotency-Key", key), body)?;
    c.delete_later(user, &answer);
    Ok(answer)
}

pub(super) fn etag(answer: &Response) -> Result<String> {
    Ok(answer.header("etag").context("no ETag")?.to_owned())
}

pub(super) fn with(
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
