//! Paths, slashes, methods and request ids.

use crate::check::{Check, decision, spec};
use crate::client::{INSTANCES, below, instance};
use crate::context::{text, uuid};
use anyhow::ensure;
use serde_json::json;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        decision("4", "an unknown path is 404", |c| {
            for path in [
                "/api/nothing/",
                "/nothing",
                "/api/instance/a/b/",
                "/api/instance/a/stop/x/",
                "/api/instance//",
            ] {
                c.me().get(path)?.is(404)?;
            }
            Ok(())
        }),
        decision(
            "4",
            "a request id of the caller's comes back, and others are new",
            |c| {
                let mine = [("X-Request-Id", "my-trace-1")];
                let answer = c.me().raw("GET", INSTANCES, &mine, None)?;
                ensure!(
                    answer.header("x-request-id") == Some("my-trace-1"),
                    "it does not"
                );
                let (a, b) = (c.me().get(INSTANCES)?, c.me().get(INSTANCES)?);
                ensure!(
                    a.header("x-request-id") != b.header("x-request-id"),
                    "two are the same"
                );
                Ok(())
            },
        ),
        decision(
            "4",
            "a request id that is no sane token does not come back",
            |c| {
                let long = "x".repeat(2000);
                for odd in ["a b", "<script>", long.as_str(), "a\"b"] {
                    let header = [("X-Request-Id", odd)];
                    let answer = c.me().raw("GET", INSTANCES, &header, None)?;
                    answer.is(200)?;
                    ensure!(answer.header("x-request-id") != Some(odd), "`{odd}` does");
                }
                Ok(())
            },
        ),
        decision("4", "a query on a path changes nothing", |c| {
            let list = c.me().get("/api/instance/?page=2&state=x")?;
            list.is(200)?;
            let id = uuid(c.sample("container")?)?;
            c.me().get(&format!("{}?a=b", instance(id)))?.is(200)
        }),
        decision("4", "an instance with the name of an action is none", |c| {
            let body = c.small_with(
                "container",
                &json!({ "name": format!("{}-stop", c.name()) }),
            );
            let created = c.create(&body)?;
            c.me().instance(text(&created, "name")?)?.is(200)
        }),
        spec(
            "4",
            "responses to requests without a body need no Content-Type in the request",
            |c| c.me().get(INSTANCES)?.is(200),
        ),
    ];
    for (method, path) in [
        ("GET", "/api/instance"),
        ("POST", "/api/instance"),
        ("GET", "/api/instance/a-b"),
        ("PATCH", "/api/instance/a-b"),
        ("DELETE", "/api/instance/a-b"),
        ("POST", "/api/instance/a-b/stop"),
        ("POST", "/api/instance/a-b/restart"),
        ("POST", "/api/instance/a-b/add-port"),
        ("POST", "/api/instance/a-b/remove-port"),
        ("GET", "/api/instance/a-b/stats"),
    ] {
        let name = format!("{method} {path} without the slash is 308 to the path with it");
        checks.push(decision("4", name, move |c| {
            for query in ["", "?x=1&y=2"] {
                let answer = c.me().raw(method, &format!("{path}{query}"), &[], None)?;
                answer.is(308)?;
                let to = answer.header("location").unwrap_or("");
                ensure!(to.ends_with(&format!("{path}/{query}")), "to `{to}`");
            }
            Ok(())
        }));
    }
    for (path, right, wrong) in [
        (
            INSTANCES.to_owned(),
            &["GET", "POST"][..],
            &["PUT", "PATCH", "DELETE", "OPTIONS"][..],
        ),
        (
            instance("a-b"),
            &["GET", "PATCH", "DELETE"],
            &["POST", "PUT"],
        ),
        (below("a-b", "stop"), &["POST"], &["GET", "PUT", "DELETE"]),
        (below("a-b", "restart"), &["POST"], &["GET", "PATCH"]),
        (below("a-b", "add-port"), &["POST"], &["GET", "PUT"]),
        (below("a-b", "remove-port"), &["POST"], &["GET", "DELETE"]),
        (below("a-b", "stats"), &["GET"], &["POST", "DELETE"]),
    ] {
        let name = format!("other methods on {path} are 405 with Allow");
        checks.push(decision("4", name, move |c| {
            for method in wrong {
                let answer = c.me().raw(method, &path, &[], None)?;
                answer.is(405)?;
                let allow = answer.header("allow").unwrap_or("");
                let allowed: Vec<&str> = allow.split(',').map(str::trim).collect();
                let all = right.iter().all(|method| allowed.contains(method));
                ensure!(all && !allowed.contains(method), "{method}: Allow: {allow}");
            }
            Ok(())
        }));
    }
    checks
}
