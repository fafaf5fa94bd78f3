//! Section 2.1: a UUID and a name are interchangeable in paths.

use crate::check::{Check, decision, spec};
use crate::client::Answer;
use crate::context::{Context, same, text, uuid};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        spec("2.1", "get takes a name in place of the UUID", |c| {
            by_name(c, "container", |c, name| c.me().instance(name))
        }),
        spec("2.1", "update takes a name in place of the UUID", |c| {
            by_name(c, "container", |c, name| c.me().patch(name, &json!({})))
        }),
        spec("2.1", "stats takes a name in place of the UUID", |c| {
            let name = text(c.sample("container")?, "name")?;
            c.me().stats(name)?.is(200)
        }),
        spec(
            "2.1",
            "stop, restart and delete take a name in place of the UUID",
            |c| {
                let created = c.running("container")?;
                let name = text(&created, "name")?;
                for action in ["stop", "restart"] {
                    let result = c.me().act(name, action)?.expect(200)?;
                    same(&result, "uuid", &created["uuid"])?;
                }
                c.me().delete(name)?.is(204)?;
                c.me().instance(uuid(&created)?)?.is(404)
            },
        ),
        decision("2.1", "a UUID is one in either case", |c| {
            let instance = c.sample("container")?;
            let upper = uuid(instance)?.to_uppercase();
            let got = c.me().instance(&upper)?.expect(200)?;
            same(&got, "uuid", &instance["uuid"])
        }),
        decision(
            "2.1",
            "a UUID without hyphens is a name, and names nothing",
            |c| {
                let plain = uuid(c.sample("container")?)?.replace('-', "");
                c.me().instance(&plain)?.is(404)
            },
        ),
        decision(
            "2.1",
            "percent-encoded characters of a name mean the same",
            |c| {
                let instance = c.sample("container")?;
                let encoded: String = text(instance, "name")?
                    .bytes()
                    .map(|b| format!("%{b:02X}"))
                    .collect();
                let got = c.me().instance(&encoded)?.expect(200)?;
                same(&got, "uuid", &instance["uuid"])
            },
        ),
    ];
    for action in ["add", "remove"] {
        let name = format!("{action}-port takes a name in place of the UUID");
        checks.push(spec("2.1", name, move |c| {
            let vm = c.sample("vm")?;
            // Neither changes anything: 22 is open, 9 is closed.
            let port = if action == "add" { 22 } else { 9 };
            let path = format!("{action}-port");
            let result = c.me().port(text(vm, "name")?, &path, &json!(port))?;
            result.is(200)
        }));
    }
    checks
}

fn by_name(
    c: &Context<'_>,
    kind: &str,
    ask: impl Fn(&Context<'_>, &str) -> Result<Answer>,
) -> Result<()> {
    let instance = c.sample(kind)?;
    let by_name: Value = ask(c, text(instance, "name")?)?.expect(200)?;
    let by_uuid: Value = ask(c, uuid(instance)?)?.expect(200)?;
    ensure!(by_name == by_uuid, "the answers differ");
    same(&by_name, "uuid", &instance["uuid"])
}
