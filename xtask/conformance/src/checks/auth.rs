//! Section 5: keys.

use crate::check::{Check, decision, spec};
use crate::client::{Client, INSTANCES, below, instance};
use crate::context::{Context, same, uuid};
use anyhow::ensure;
use serde_json::{Value, json};

/// Every endpoint on one instance, with a body that is right.
pub(super) fn endpoints_of(selector: &str) -> Vec<(&'static str, String, Value)> {
    vec![
        ("GET", instance(selector), Value::Null),
        ("PATCH", instance(selector), json!({})),
        ("POST", below(selector, "stop"), Value::Null),
        ("POST", below(selector, "restart"), Value::Null),
        ("POST", below(selector, "add-port"), json!({ "port": 80 })),
        (
            "POST",
            below(selector, "remove-port"),
            json!({ "port": 80 }),
        ),
        ("GET", below(selector, "stats"), Value::Null),
        ("DELETE", instance(selector), Value::Null),
    ]
}

const ACTIONS: [&str; 8] = [
    "get",
    "update",
    "stop",
    "restart",
    "add-port",
    "remove-port",
    "stats",
    "delete",
];

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        spec("5", "list without a valid key is 401", |c| {
            strangers(c)
                .iter()
                .try_for_each(|user| user.get(INSTANCES)?.is(401))
        }),
        spec("5", "create without a valid key is 401", |c| {
            let body = c.small("container");
            strangers(c).iter().try_for_each(|user| {
                let answer = user.post(INSTANCES, &body)?;
                c.keep(user, &answer);
                answer.is(401)
            })
        }),
        decision(
            "5",
            "without a valid key nothing else is looked at: path, method, slash, body",
            |c| {
                let large = vec![b' '; 70 * 1024];
                for user in strangers(c) {
                    for path in [
                        "/api/nothing/",
                        "/api/instance",
                        "/api/instance/a/b/c/",
                        "/api/",
                    ] {
                        user.get(path)?.is(401)?;
                    }
                    user.raw("PUT", INSTANCES, &[], None)?.is(401)?;
                    let plain = [("Content-Type", "text/plain")];
                    user.raw("POST", INSTANCES, &plain, Some(b"{"))?.is(401)?;
                    user.raw("POST", INSTANCES, &plain, Some(&large))?.is(401)?;
                }
                Ok(())
            },
        ),
        decision("5", "a 401 says so under `detail`, and nothing else", |c| {
            let one = c.anyone().get(INSTANCES)?;
            let two = c.anyone().instance(uuid(c.sample("container")?)?)?;
            ensure!(!one.detail()?.is_empty(), "{one}");
            ensure!(one.body == two.body, "{one}; {two}");
            Ok(())
        }),
        decision("5", "a second Authorization header is no way in", |c| {
            let nonsense = [("Authorization", "Bearer nonsense")];
            let answer = c.me().raw("GET", INSTANCES, &nonsense, None)?;
            answer.is(401)
        }),
    ];
    for (n, action) in ACTIONS.into_iter().enumerate() {
        checks.push(spec(
            "5",
            format!("{action} without a valid key is 401"),
            move |c| {
                let id = uuid(c.sample("container")?)?;
                let before = c.me().instance(id)?.expect(200)?;
                for selector in [id, "no-such-name"] {
                    for (method, path, body) in endpoints_of(selector).into_iter().skip(n).take(1) {
                        for user in strangers(c) {
                            user.send(method, &path, &body)?.is(401)?;
                        }
                    }
                }
                let after = c.me().instance(id)?.expect(200)?;
                same(&after, "state", &before["state"])
            },
        ));
    }
    checks
}

/// Clients without a valid key.
fn strangers(c: &Context<'_>) -> Vec<Client> {
    let almost = c.me().almost_authorized();
    [
        None,
        Some("Bearer"),
        Some("Bearer "),
        Some("Bearer nonsense"),
        Some("Basic dXNlcjpwYXNz"),
        Some("nonsense"),
        Some("Bearer ~~~"),
    ]
    .into_iter()
    .map(|value| c.anyone().with_authorization(value))
    .chain(almost)
    .collect()
}
