//! Section 2.1: a UUID and a name are interchangeable in paths.

use crate::check::{Check, decision, spec};
use crate::client::Response;
use crate::context::{Context, expect_field, text, uuid};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        spec("2.1", "show accepts a name in place of the UUID", |c| {
            name_equals_uuid(c, "container", |c, name| c.me().instance(name))
        }),
        spec("2.1", "update accepts a name in place of the UUID", |c| {
            name_equals_uuid(c, "container", |c, name| c.me().patch(name, &json!({})))
        }),
        spec("2.1", "stats accepts a name in place of the UUID", |c| {
            let name = text(c.sample("container")?, "name")?;
            c.me().stats(name)?.is(200)
        }),
        spec(
            "2.1",
            "stop, restart and delete accept a name in place of the UUID",
            |c| {
                let created = c.running("container")?;
                let name = text(&created, "name")?;
                for action in ["stop", "restart"] {
                    let result = c.me().act(name, action)?.expect(200)?;
                    expect_field(&result, "uuid", &created["uuid"])?;
                }
                c.me().delete(name)?.is(204)?;
                c.me().instance(uuid(&created)?)?.is(404)
            },
        ),
        decision("2.1", "show accepts a UUID in uppercase", |c| {
            let instance = c.sample("container")?;
            let upper = uuid(instance)?.to_uppercase();
            let got = c.me().instance(&upper)?.expect(200)?;
            expect_field(&got, "uuid", &instance["uuid"])
        }),
        decision(
            "2.1",
            "show returns 404 for a UUID without hyphens, which is a name",
            |c| {
                let plain = uuid(c.sample("container")?)?.replace('-', "");
                c.me().instance(&plain)?.is(404)
            },
        ),
        decision("2.1", "percent-encoded names are decoded", |c| {
            let instance = c.sample("container")?;
            let encoded: String = text(instance, "name")?
                .bytes()
                .map(|b| format!("%{b:02X}"))
                .collect();
            let got = c.me().instance(&encoded)?.expect(200)?;
            expect_field(&got, "uuid", &instance["uuid"])
        }),
    ];
    for action in ["add", "remove"] {
        let name = format!("{action}-port accepts a name in place of the UUID");
        checks.push(spec("2.1", name, move |c| {
            let vm = c.sample("vm")?;
            // No change: port 22 is open, and port 9 is closed.
            let port = if action == "add" { 22 } else { 9 };
            let path = format!("{action}-port");
            let result = c.me().port(text(vm, "name")?, &path, &json!(port))?;
            result.is(200)
        }));
    }
    checks
}

fn name_equals_uuid(
    c: &Context<'_>,
    kind: &str,
    send: impl Fn(&Context<'_>, &str) -> Result<Response>,
) -> Result<()> {
    let instance = c.sample(kind)?;
    let by_name: Value = send(c, text(instance, "name")?)?.expect(200)?;
    let by_uuid: Value = send(c, uuid(instance)?)?.expect(200)?;
    ensure!(by_name == by_uuid, "the responses for name and UUID differ");
    expect_field(&by_name, "uuid", &instance["uuid"])
}
