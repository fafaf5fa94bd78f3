//! Section 5: authentication.

use crate::check::{Check, decision, spec};
use crate::client::{Client, INSTANCES, action_path, instance_path};
use crate::context::{Context, expect_field, uuid};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// Every endpoint of one instance, with a valid body.
pub(super) fn instance_endpoints(selector: &str) -> Vec<(&'static str, String, Value)> {
    vec![
        ("GET", instance_path(selector), Value::Null),
        ("PATCH", instance_path(selector), json!({})),
        ("POST", action_path(selector, "stop"), Value::Null),
        ("POST", action_path(selector, "restart"), Value::Null),
        ("POST", action_path(selector, "recreate"), Value::Null),
        (
            "POST",
            action_path(selector, "add-port"),
            json!({ "port": 80 }),
        ),
        (
            "POST",
            action_path(selector, "remove-port"),
            json!({ "port": 80 }),
        ),
        ("GET", action_path(selector, "stats"), Value::Null),
        ("DELETE", instance_path(selector), Value::Null),
    ]
}

/// The endpoints of one instance that the specification does not have.
pub(super) fn additional_endpoints(selector: &str) -> Vec<(&'static str, String, Value)> {
    let mut endpoints = ["host-key", "terminal", "tunnel", "share"]
        .map(|action| ("GET", action_path(selector, action), Value::Null))
        .to_vec();
    let (shares, body) = (action_path(selector, "share"), json!({ "access": "owner" }));
    endpoints.extend([
        ("POST", shares.clone(), body.clone()),
        ("PATCH", format!("{shares}page/"), body),
        ("DELETE", format!("{shares}page/"), Value::Null),
        (
            "POST",
            action_path(selector, "attach-volume"),
            json!({ "volume": "none", "path": "/data" }),
        ),
        (
            "POST",
            action_path(selector, "detach-volume"),
            json!({ "volume": "none" }),
        ),
        ("POST", action_path(selector, "snapshot"), json!({})),
        (
            "GET",
            action_path(selector, "snapshot-estimate"),
            Value::Null,
        ),
        ("GET", action_path(selector, "snapshot-plan"), Value::Null),
        (
            "PUT",
            action_path(selector, "snapshot-plan"),
            json!({ "every_h": 24, "keep": 7 }),
        ),
        (
            "DELETE",
            action_path(selector, "snapshot-plan"),
            Value::Null,
        ),
    ]);
    endpoints
}

/// The action that the specification does not have.
const RECREATE: &str = "recreate";

/// The names of [`instance_endpoints`], in their order.
pub(super) const ACTIONS: [&str; 9] = [
    "show",
    "update",
    "stop",
    "restart",
    RECREATE,
    "add-port",
    "remove-port",
    "stats",
    "delete",
];

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        spec("5", "list returns 401 without a valid key", |c| {
            clients_without_key(c)
                .iter()
                .try_for_each(|user| user.get(INSTANCES)?.is(401))
        }),
        spec("5", "create returns 401 without a valid key", |c| {
            let body = c.small("container");
            clients_without_key(c).iter().try_for_each(|user| {
                let response = user.post(INSTANCES, &body)?;
                c.delete_later(user, &response);
                response.is(401)
            })
        }),
        decision(
            "5",
            "authentication is checked before path, method, slash and body",
            |c| {
                let large = vec![b' '; 70 * 1024];
                for user in clients_without_key(c) {
                    for path in [
                        "/api/nothing/",
                        "/api/instance",
                        "/api/instance/a/b/c/",
                        "/api/",
                    ] {
                        user.get(path)?.is(401)?;
                    }
                    for path in [INSTANCES, "/api/instance/a-b/stop/"] {
                        let refused = user.raw("PUT", path, &[], None)?;
                        refused.is(401)?;
                        ensure!(refused.header("allow").is_none(), "it names the methods");
                    }
                    let plain = [("Content-Type", "text/plain")];
                    user.raw("POST", INSTANCES, &plain, Some(b"{"))?.is(401)?;
                    user.raw("POST", INSTANCES, &plain, Some(&large))?.is(401)?;
                }
                Ok(())
            },
        ),
        decision(
            "5",
            "the body of a 401 has `detail` and does not depend on the path",
            |c| {
                let one = c.anonymous().get(INSTANCES)?;
                let two = c.anonymous().instance(uuid(c.sample("container")?)?)?;
                ensure!(!one.detail()?.is_empty(), "{one}");
                ensure!(one.body == two.body, "{one}; {two}");
                Ok(())
            },
        ),
        decision(
            "5",
            "a request with two Authorization headers returns 401",
            |c| {
                let right = c.me().authorization();
                for second in [right, "Bearer nonsense", "Basic eDp5"] {
                    for (one, two) in [(right, second), (second, right)] {
                        let user = c.anonymous().with_authorization(Some(one));
                        user.raw("GET", INSTANCES, &[("Authorization", two)], None)?
                            .is(401)?;
                    }
                }
                Ok(())
            },
        ),
    ];
    for (n, action) in ACTIONS.into_iter().enumerate() {
        checks.push(on_action(
            "5",
            action,
            "returns 401 without a valid key",
            move |c| {
                let id = uuid(c.sample("container")?)?;
                let before = c.me().instance(id)?.expect(200)?;
                for selector in [id, "no-such-name"] {
                    for (method, path, body) in
                        instance_endpoints(selector).into_iter().skip(n).take(1)
                    {
                        let plain = [("Content-Type", "text/plain")];
                        for user in clients_without_key(c) {
                            user.send(method, &path, &body)?.is(401)?;
                            user.raw(method, &path, &plain, Some(b"{"))?.is(401)?;
                        }
                    }
                }
                let after = c.me().instance(id)?.expect(200)?;
                expect_field(&after, "state", &before["state"])
            },
        ));
    }
    checks
}

/// A check of a rule about one of [`ACTIONS`].
pub(super) fn on_action(
    section: &'static str,
    action: &str,
    rule: &str,
    run: impl Fn(&Context<'_>) -> Result<()> + Send + Sync + 'static,
) -> Check {
    let name = format!("{action} {rule}");
    match action {
        RECREATE => decision(section, name, run),
        _ => spec(section, name, run),
    }
}

/// Clients without a valid key.
fn clients_without_key(c: &Context<'_>) -> Vec<Client> {
    let similar = c.me().with_similar_keys();
    [
        None,
        Some("Bearer"),
        Some("Bearer "),
        Some("Bearer nonsense"),
        Some("Basic dXNlcjpwYXNz"),
        Some("nonsense"),
        Some("Bearer ~~~"),
        Some("Bearer wharf__"),
        Some("Bearer wharf_0000000000000000_AAAA"),
    ]
    .into_iter()
    .map(|value| c.anonymous().with_authorization(value))
    .chain(similar)
    .collect()
}
