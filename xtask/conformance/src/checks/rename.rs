//! Section 4.4: names.

use crate::check::{Check, decision, spec};
use crate::context::{Context, same, text, uuid};
use crate::redact::redacted;
use anyhow::{Result, ensure};
use serde_json::json;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        decision("4.4", "a rename frees the old name at once", |c| {
            let created = c.create(&c.small("container"))?;
            let (old, new) = (text(&created, "name")?, c.name());
            c.me().patch(old, &json!({ "name": new }))?.is(200)?;
            c.me().instance(old)?.is(404)?;
            c.create(&c.small_with("container", &json!({ "name": old })))
                .map(drop)
        }),
        decision(
            "4.4",
            "a name that is taken is refused, whoever has it",
            |c| {
                let created = c.create(&c.small("container"))?;
                let mine = c.sample("container")?["name"].clone();
                let id = uuid(&created)?;
                c.me()
                    .patch(id, &json!({ "name": mine }))?
                    .refuses("name")?;
                let theirs = c.create_as(c.other()?, &c.small("container"))?;
                c.me()
                    .patch(id, &json!({ "name": theirs["name"] }))?
                    .refuses("name")
            },
        ),
        decision("4.4", "an instance may be given the name it has", |c| {
            let created = c.create(&c.small("container"))?;
            let body = json!({ "name": created["name"] });
            let same_name = c.me().patch(uuid(&created)?, &body)?.expect(200)?;
            same(&same_name, "name", &created["name"])
        }),
        decision(
            "4.4",
            "null changes nothing, and so does an empty object",
            |c| {
                let before = c.running("container")?;
                for body in [json!({}), json!({ "name": null, "n_vcpus": null })] {
                    let after = c.me().patch(uuid(&before)?, &body)?.expect(200)?;
                    ensure!(
                        after == before,
                        "{} and {}",
                        redacted(&before),
                        redacted(&after)
                    );
                }
                Ok(())
            },
        ),
        decision(
            "4.4",
            "an instance can be renamed while it is stopped",
            |c| {
                let stopped = c.stopped("container")?;
                let name = c.name();
                let renamed = c
                    .me()
                    .patch(uuid(&stopped)?, &json!({ "name": name }))?
                    .expect(200)?;
                same(&renamed, "state", &json!("exited"))?;
                same(&renamed, "name", &json!(name))
            },
        ),
        spec("4.4", "update of what does not exist is 404", |c| {
            c.me().patch(&c.name(), &json!({}))?.is(404)
        }),
    ];
    for kind in ["container", "vm"] {
        checks.push(spec("4.4", format!("a {kind} can be renamed"), move |c| {
            renamed(c, kind)
        }));
    }
    for field in [
        "uuid",
        "state",
        "resource_type",
        "flavor",
        "cpu_tier",
        "gpu_model",
        "wan_ports",
        "public_key",
        "colour",
    ] {
        checks.push(decision(
            "4.4",
            format!("`{field}` cannot be changed"),
            move |c| {
                let instance = c.sample("container")?;
                let value = instance.get(field).filter(|v| !v.is_null()).cloned();
                let body = json!({ field: value.unwrap_or_else(|| json!("x")), "name": c.name() });
                c.me().patch(uuid(instance)?, &body)?.refuses(field)?;
                let now = c.me().instance(uuid(instance)?)?.expect(200)?;
                same(&now, "name", &instance["name"])
            },
        ));
    }
    checks
}

fn renamed(c: &Context<'_>, kind: &str) -> Result<()> {
    c.sample(kind)?;
    let created = c.create(&c.small(kind))?;
    let name = c.name();
    let renamed = c
        .me()
        .patch(uuid(&created)?, &json!({ "name": name }))?
        .expect(200)?;
    same(&renamed, "name", &json!(name))?;
    same(&renamed, "uuid", &created["uuid"])?;
    let got = c.me().instance(&name)?.expect(200)?;
    same(&got, "uuid", &created["uuid"])
}
