//! Bodies: their type, their size, their form, and the order of the checks.

use crate::check::{Check, decision, spec};
use crate::client::{Answer, Client, INSTANCES, below, instance};
use crate::context::{Context, same, text, uuid};
use anyhow::{Result, ensure};

const JSON: &str = "application/json";

fn post(user: &Client, path: &str, content_type: &str, bytes: &[u8]) -> Result<Answer> {
    user.raw("POST", path, &[("Content-Type", content_type)], Some(bytes))
}

fn small(c: &Context<'_>) -> Vec<u8> {
    c.small("container").to_string().into_bytes()
}

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        spec(
            "4",
            "a body is sent with Content-Type: application/json",
            |c| {
                let answer = post(c.me(), INSTANCES, JSON, &small(c))?;
                c.keep(c.me(), &answer);
                answer.is(201)
            },
        ),
        decision(
            "4",
            "parameters of the content type are accepted, and its case is none",
            |c| {
                for content_type in ["application/json; charset=utf-8", "Application/JSON"] {
                    let answer = post(c.me(), INSTANCES, content_type, &small(c))?;
                    c.keep(c.me(), &answer);
                    answer.is(201)?;
                }
                Ok(())
            },
        ),
        decision(
            "4",
            "a body larger than 64 KiB is 413, on every endpoint that takes one",
            |c| {
                let large = vec![b' '; 64 * 1024 + 1];
                let id = uuid(c.sample("container")?)?;
                post(c.me(), INSTANCES, JSON, &large)?.is(413)?;
                post(c.me(), &below(id, "add-port"), JSON, &large)?.is(413)?;
                post(c.me(), &below(id, "remove-port"), JSON, &large)?.is(413)?;
                let headers = [("Content-Type", JSON)];
                c.me()
                    .raw("PATCH", &instance(id), &headers, Some(&large))?
                    .is(413)
            },
        ),
        decision("4", "a body of 64 KiB is read", |c| {
            let mut body = small(c);
            body.resize(64 * 1024, b' ');
            let answer = post(c.me(), INSTANCES, JSON, &body)?;
            c.keep(c.me(), &answer);
            answer.is(201)
        }),
        decision(
            "4",
            "a body much larger is 413 too, and the connection lives on or ends cleanly",
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
                post(c.me(), &below(id, action), "text/plain", b"{ what")?.is(200)?;
            }
            let headers = [("Content-Type", "text/plain")];
            c.me()
                .raw("DELETE", &instance(id), &headers, Some(b"{ what"))?
                .is(204)
        }),
        decision(
            "4",
            "a body that is ignored is 413 too when it is too large, on every endpoint",
            |c| {
                let large = vec![b' '; 64 * 1024 + 1];
                let headers = [("Content-Type", JSON)];
                let too_large =
                    |method, path: &str| c.me().raw(method, path, &headers, Some(&large))?.is(413);
                let id = uuid(c.sample("container")?)?;
                for action in ["stop", "restart"] {
                    too_large("POST", &below(id, action))?;
                }
                too_large("DELETE", &instance(id))?;
                for path in [
                    INSTANCES,
                    &instance(id),
                    &below(id, "stats"),
                    "/healthz",
                    "/readyz",
                ] {
                    too_large("GET", path)?;
                }
                c.me().instance(id)?.is(200)
            },
        ),
        decision("4", "a key that stands twice is 400", |c| {
            let body = String::from_utf8(small(c))?.replacen('{', "{\"n_vcpus\":2,", 1);
            let answer = post(c.me(), INSTANCES, JSON, body.as_bytes())?;
            c.keep(c.me(), &answer);
            answer.refuses("n_vcpus")
        }),
        decision(
            "4",
            "escapes in keys and strings mean the same as the characters",
            |c| {
                let name = c.name();
                let escaped = format!("\\u{:04x}{}", u32::from(b'c'), name.get(1..).unwrap_or(""));
                let body = String::from_utf8(small(c))?;
                let body: serde_json::Value = serde_json::from_str(&body)?;
                let text = body.to_string().replace(text(&body, "name")?, &escaped);
                let answer = post(c.me(), INSTANCES, JSON, text.as_bytes())?;
                c.keep(c.me(), &answer);
                let expected = format!("c{}", name.get(1..).unwrap_or(""));
                same(&answer.expect(201)?, "name", &serde_json::json!(expected))
            },
        ),
        decision(
            "4",
            "content type is looked at before the instance, the instance before the fields",
            |c| {
                let nothing = c.name();
                let port = below(&nothing, "add-port");
                post(c.me(), &port, "text/plain", b"{}")?.is(415)?;
                post(c.me(), &port, JSON, b"{")?.is(400)?;
                post(c.me(), &port, JSON, b"{\"port\":0}")?.is(404)?;
                let json = [("Content-Type", JSON)];
                let update = c
                    .me()
                    .raw("PATCH", &instance(&nothing), &json, Some(b"{\"x\":0}"))?;
                update.is(404)
            },
        ),
        decision("4", "the fields are looked at before the state", |c| {
            let stopped = c.stopped("container")?;
            let answer = c
                .me()
                .patch(uuid(&stopped)?, &serde_json::json!({ "n_vcpus": 0 }))?;
            answer.refuses("n_vcpus")
        }),
    ];
    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonx",
        "application/json-patch+json",
        "json",
        "",
    ] {
        let name = format!("Content-Type `{content_type}` is 415");
        checks.push(decision("4", name, move |c| {
            let answer = post(c.me(), INSTANCES, content_type, &small(c))?;
            c.keep(c.me(), &answer);
            answer.is(415)?;
            let id = uuid(c.sample("container")?)?;
            let headers = [("Content-Type", content_type)];
            for action in ["add-port", "remove-port"] {
                post(c.me(), &below(id, action), content_type, b"{}")?.is(415)?;
            }
            let update = c.me().raw("PATCH", &instance(id), &headers, Some(b"{}"))?;
            update.is(415)
        }));
    }
    checks.push(decision("4", "a body without Content-Type is 415", |c| {
        let answer = c.me().raw("POST", INSTANCES, &[], Some(&small(c)))?;
        c.keep(c.me(), &answer);
        answer.is(415)
    }));
    for (what, bytes) in [
        ("nothing", &b""[..]),
        ("blanks", b"  "),
        ("an open object", b"{"),
        ("a trailing comma", b"{\"a\":1,}"),
        ("two objects", b"{} {}"),
        ("a comment", b"{/**/}"),
        ("NaN", b"{\"n_vcpus\":NaN}"),
        ("bytes that are no UTF-8", b"{\"name\":\"\xff\"}"),
        ("a lone surrogate", b"{\"name\":\"\\ud800\"}"),
        ("an array", b"[]"),
        ("null", b"null"),
        ("a string", b"\"x\""),
        ("a number", b"1"),
    ] {
        checks.push(decision(
            "4",
            format!("a body of {what} is 400"),
            move |c| {
                let answer = post(c.me(), INSTANCES, JSON, bytes)?;
                answer.is(400)?;
                ensure!(answer.body.is_object(), "{answer}");
                let id = uuid(c.sample("container")?)?;
                let headers = [("Content-Type", JSON)];
                c.me()
                    .raw("PATCH", &instance(id), &headers, Some(bytes))?
                    .is(400)
            },
        ));
    }
    checks.push(decision("4", "a deeply nested body is 400", |c| {
        let deep = [vec![b'['; 20_000], vec![b']'; 20_000]].concat();
        post(c.me(), INSTANCES, JSON, &deep)?.is(400)
    }));
    checks
}
