//! Request bodies: content type, size, syntax, and the order of their checks.

use crate::check::{Check, decision, spec};
use crate::client::{Client, INSTANCES, Response, action_path, instance_path};
use crate::context::{Context, expect_field, text, uuid};
use anyhow::{Result, ensure};

const JSON: &str = "application/json";

fn post(user: &Client, path: &str, content_type: &str, bytes: &[u8]) -> Result<Response> {
    user.raw("POST", path, &[("Content-Type", content_type)], Some(bytes))
}

fn small(c: &Context<'_>) -> Vec<u8> {
    c.small("container").to_string().into_bytes()
}

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        spec(
            "4",
            "a body with Content-Type: application/json is accepted",
            |c| {
                let response = post(c.me(), INSTANCES, JSON, &small(c))?;
                c.delete_later(c.me(), &response);
                response.is(201)
            },
        ),
        decision(
            "4",
            "Content-Type may have parameters and uppercase letters",
            |c| {
                for content_type in ["application/json; charset=utf-8", "Application/JSON"] {
                    let response = post(c.me(), INSTANCES, content_type, &small(c))?;
                    c.delete_later(c.me(), &response);
                    response.is(201)?;
                }
                Ok(())
            },
        ),
        decision(
            "4",
            "a body above 64 KiB is refused with 413 on every endpoint that takes a body",
            |c| {
                let large = vec![b' '; 64 * 1024 + 1];
                let id = uuid(c.sample("container")?)?;
                post(c.me(), INSTANCES, JSON, &large)?.is(413)?;
                post(c.me(), &action_path(id, "add-port"), JSON, &large)?.is(413)?;
                post(c.me(), &action_path(id, "remove-port"), JSON, &large)?.is(413)?;
                let headers = [("Content-Type", JSON)];
                c.me()
                    .raw("PATCH", &instance_path(id), &headers, Some(&large))?
                    .is(413)
            },
        ),
        decision("4", "a body of exactly 64 KiB is accepted", |c| {
            let mut body = small(c);
            body.resize(64 * 1024, b' ');
            let response = post(c.me(), INSTANCES, JSON, &body)?;
            c.delete_later(c.me(), &response);
            response.is(201)
        }),
        decision(
            "4",
            "a body of 1 MiB is refused with 413, and the next request succeeds",
            |c| {
                let large = vec![b'x'; 1 << 20];
                post(c.me(), INSTANCES, JSON, &large)?.is(413)?;
                c.me().get(INSTANCES)?.is(200)
            },
        ),
        decision("4", "stop, restart and delete ignore a body", |c| {
            let running = c.running("container")?;
            let id = uuid(&running)?;
            for action in ["stop", "restart"] {
                post(c.me(), &action_path(id, action), "text/plain", b"{ what")?.is(200)?;
            }
            let headers = [("Content-Type", "text/plain")];
            c.me()
                .raw("DELETE", &instance_path(id), &headers, Some(b"{ what"))?
                .is(204)
        }),
        decision(
            "4",
            "a body above 64 KiB is refused with 413 on every endpoint that ignores bodies",
            |c| {
                let large = vec![b' '; 64 * 1024 + 1];
                let headers = [("Content-Type", JSON)];
                let too_large =
                    |method, path: &str| c.me().raw(method, path, &headers, Some(&large))?.is(413);
                let id = uuid(c.sample("container")?)?;
                for action in ["stop", "restart", "recreate"] {
                    too_large("POST", &action_path(id, action))?;
                }
                too_large("DELETE", &instance_path(id))?;
                for path in [
                    INSTANCES,
                    &instance_path(id),
                    &action_path(id, "stats"),
                    "/healthz",
                    "/readyz",
                ] {
                    too_large("GET", path)?;
                }
                c.me().instance(id)?.is(200)
            },
        ),
        decision("4", "a duplicate key in a body is refused with 400", |c| {
            let body = String::from_utf8(small(c))?.replacen('{', "{\"n_vcpus\":2,", 1);
            let response = post(c.me(), INSTANCES, JSON, body.as_bytes())?;
            c.delete_later(c.me(), &response);
            response.refuses("n_vcpus")
        }),
        decision("4", "JSON escapes in strings are decoded", |c| {
            let name = c.name();
            let escaped = format!("\\u{:04x}{}", u32::from(b'c'), name.get(1..).unwrap_or(""));
            let body = String::from_utf8(small(c))?;
            let body: serde_json::Value = serde_json::from_str(&body)?;
            let text = body.to_string().replace(text(&body, "name")?, &escaped);
            let response = post(c.me(), INSTANCES, JSON, text.as_bytes())?;
            c.delete_later(c.me(), &response);
            let expected = format!("c{}", name.get(1..).unwrap_or(""));
            expect_field(&response.expect(201)?, "name", &serde_json::json!(expected))
        }),
        decision(
            "4",
            "Content-Type is checked before the instance, and the instance before the fields",
            |c| {
                let missing = c.name();
                let port = action_path(&missing, "add-port");
                post(c.me(), &port, "text/plain", b"{}")?.is(415)?;
                post(c.me(), &port, JSON, b"{")?.is(400)?;
                post(c.me(), &port, JSON, b"{\"port\":0}")?.is(404)?;
                let json = [("Content-Type", JSON)];
                let update =
                    c.me()
                        .raw("PATCH", &instance_path(&missing), &json, Some(b"{\"x\":0}"))?;
                update.is(404)
            },
        ),
        decision(
            "4",
            "update checks fields before the state of a stopped container",
            |c| {
                let stopped = c.stopped("container")?;
                let response = c
                    .me()
                    .patch(uuid(&stopped)?, &serde_json::json!({ "n_vcpus": 0 }))?;
                response.refuses("n_vcpus")
            },
        ),
    ];
    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonx",
        "application/json-patch+json",
        "json",
        "",
    ] {
        let name = format!("Content-Type `{content_type}` is refused with 415");
        checks.push(decision("4", name, move |c| {
            let response = post(c.me(), INSTANCES, content_type, &small(c))?;
            c.delete_later(c.me(), &response);
            response.is(415)?;
            let id = uuid(c.sample("container")?)?;
            let headers = [("Content-Type", content_type)];
            for action in ["add-port", "remove-port", "recreate"] {
                post(c.me(), &action_path(id, action), content_type, b"{}")?.is(415)?;
            }
            let update = c
                .me()
                .raw("PATCH", &instance_path(id), &headers, Some(b"{}"))?;
            update.is(415)
        }));
    }
    checks.push(decision(
        "4",
        "a body without Content-Type, or with two, is refused with 415",
        |c| {
            let twice = [("Content-Type", JSON), ("Content-Type", "text/plain")];
            for headers in [&[][..], &twice] {
                let response = c.me().raw("POST", INSTANCES, headers, Some(&small(c)))?;
                c.delete_later(c.me(), &response);
                response.is(415)?;
            }
            Ok(())
        },
    ));
    for (description, bytes) in [
        ("an empty body", &b""[..]),
        ("a body of blanks", b"  "),
        ("an unclosed object", b"{"),
        ("a trailing comma in a body", b"{\"a\":1,}"),
        ("a body of two objects", b"{} {}"),
        ("a comment in a body", b"{/**/}"),
        ("NaN in a body", b"{\"n_vcpus\":NaN}"),
        ("invalid UTF-8 in a body", b"{\"name\":\"\xff\"}"),
        ("a lone surrogate in a body", b"{\"name\":\"\\ud800\"}"),
        ("an array as a body", b"[]"),
        ("null as a body", b"null"),
        ("a string as a body", b"\"x\""),
        ("a number as a body", b"1"),
    ] {
        checks.push(decision(
            "4",
            format!("{description} is refused with 400"),
            move |c| {
                let response = post(c.me(), INSTANCES, JSON, bytes)?;
                response.is(400)?;
                ensure!(response.body.is_object(), "{response}");
                let id = uuid(c.sample("container")?)?;
                let headers = [("Content-Type", JSON)];
                c.me()
                    .raw("PATCH", &instance_path(id), &headers, Some(bytes))?
                    .is(400)
            },
        ));
    }
    checks.push(decision(
        "4",
        "a deeply nested body is refused with 400",
        |c| {
            let deep = [vec![b'['; 20_000], vec![b']'; 20_000]].concat();
            post(c.me(), INSTANCES, JSON, &deep)?.is(400)
        },
    ));
    checks
}
