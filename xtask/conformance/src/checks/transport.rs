//! Paths, slashes, methods and request ids.

use crate::check::{Check, decision, spec};
use crate::client::{INSTANCES, action_path, instance_path};
use crate::context::{text, uuid};
use anyhow::ensure;
use serde_json::json;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        decision("4", "an unknown path returns 404", |c| {
            for path in [
                "/api/nothing/",
                "/nothing",
                "/api/instance/a/b/",
                "/api/instance/a/stop/x/",
                "/api/instance//",
                "/api/docs/%ff",
            ] {
                let response = c.me().get(path)?;
                response.is(404)?;
                response.detail()?;
            }
            Ok(())
        }),
        decision(
            "4",
            "the response returns the request's X-Request-Id, or a new id without one",
            |c| {
                let mine = [("X-Request-Id", "my-trace-1")];
                let response = c.me().raw("GET", INSTANCES, &mine, None)?;
                ensure!(
                    response.header("x-request-id") == Some("my-trace-1"),
                    "the response lacks the request's X-Request-Id"
                );
                let (a, b) = (c.me().get(INSTANCES)?, c.me().get(INSTANCES)?);
                ensure!(
                    a.header("x-request-id") != b.header("x-request-id"),
                    "two generated ids are equal"
                );
                let two = [("X-Request-Id", "one"), ("X-Request-Id", "two")];
                let response = c.me().raw("GET", INSTANCES, &two, None)?;
                let id = response.header("x-request-id").unwrap_or("one");
                ensure!(
                    !["one", "two"].contains(&id),
                    "of two ids, {id} is returned"
                );
                Ok(())
            },
        ),
        decision("4", "an invalid X-Request-Id is replaced", |c| {
            let long = "x".repeat(2000);
            for invalid in ["a b", "<script>", long.as_str(), "a\"b"] {
                let header = [("X-Request-Id", invalid)];
                let response = c.me().raw("GET", INSTANCES, &header, None)?;
                response.is(200)?;
                ensure!(
                    response.header("x-request-id") != Some(invalid),
                    "`{invalid}` is returned"
                );
            }
            Ok(())
        }),
        decision("4", "unknown query parameters are ignored", |c| {
            let list = c.me().get("/api/instance/?page=2&state=x")?;
            list.is(200)?;
            let id = uuid(c.sample("container")?)?;
            c.me().get(&format!("{}?a=b", instance_path(id)))?.is(200)
        }),
        decision("4", "a name may end with the name of an action", |c| {
            let body = c.small_with(
                "container",
                &json!({ "name": format!("{}-stop", c.name()) }),
            );
            let created = c.create(&body)?;
            c.me().instance(text(&created, "name")?)?.is(200)
        }),
        spec("4", "a request without a body needs no Content-Type", |c| {
            c.me().get(INSTANCES)?.is(200)
        }),
    ];
    for (method, path) in [
        ("GET", "/api/instance"),
        ("POST", "/api/instance"),
        ("GET", "/api/instance/a-b"),
        ("PATCH", "/api/instance/a-b"),
        ("DELETE", "/api/instance/a-b"),
        ("POST", "/api/instance/a-b/stop"),
        ("POST", "/api/instance/a-b/restart"),
        ("POST", "/api/instance/a-b/recreate"),
        ("POST", "/api/instance/a-b/add-port"),
        ("POST", "/api/instance/a-b/remove-port"),
        ("GET", "/api/instance/a-b/stats"),
    ] {
        let name = format!("{method} {path} returns 308 to the path with a final slash");
        checks.push(decision("4", name, move |c| {
            for query in ["", "?x=1&y=2"] {
                let response = c.me().raw(method, &format!("{path}{query}"), &[], None)?;
                response.is(308)?;
                let to = response.header("location").unwrap_or("");
                ensure!(
                    to.ends_with(&format!("{path}/{query}")),
                    "Location is `{to}`"
                );
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
            instance_path("a-b"),
            &["GET", "PATCH", "DELETE"],
            &["POST", "PUT"],
        ),
        (
            action_path("a-b", "stop"),
            &["POST"],
            &["GET", "PUT", "DELETE"],
        ),
        (action_path("a-b", "restart"), &["POST"], &["GET", "PATCH"]),
        (
            action_path("a-b", "recreate"),
            &["GET", "POST"],
            &["PUT", "DELETE"],
        ),
        (action_path("a-b", "add-port"), &["POST"], &["GET", "PUT"]),
        (
            action_path("a-b", "remove-port"),
            &["POST"],
            &["GET", "DELETE"],
        ),
        (action_path("a-b", "stats"), &["GET"], &["POST", "DELETE"]),
    ] {
        let name = format!("unsupported methods on {path} return 405 with Allow");
        checks.push(decision("4", name, move |c| {
            for method in wrong {
                let response = c.me().raw(method, &path, &[], None)?;
                response.is(405)?;
                let allow = response.header("allow").unwrap_or("");
                let allowed: Vec<&str> = allow.split(',').map(str::trim).collect();
                let all = right.iter().all(|method| allowed.contains(method));
                ensure!(all && !allowed.contains(method), "{method}: Allow: {allow}");
            }
            Ok(())
        }));
    }
    checks
}
