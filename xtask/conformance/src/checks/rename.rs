//! Section 4.4: rename.

use crate::check::{Check, decision, spec};
use crate::context::{Context, expect_field, text, uuid};
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
            "a rename to a taken name is refused, for any owner of the name",
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
        decision("4.4", "a rename to the current name succeeds", |c| {
            let created = c.create(&c.small("container"))?;
            let body = json!({ "name": created["name"] });
            let renamed = c.me().patch(uuid(&created)?, &body)?.expect(200)?;
            expect_field(&renamed, "name", &created["name"])
        }),
        decision(
            "4.4",
            "an update with null fields or an empty object changes nothing",
            |c| {
                let before = c.running("container")?;
                for body in [json!({}), json!({ "name": null, "n_vcpus": null })] {
                    let after = c.me().patch(uuid(&before)?, &body)?.expect(200)?;
                    ensure!(
                        after == before,
                        "before: {}; after: {}",
                        redacted(&before),
                        redacted(&after)
                    );
                }
                Ok(())
            },
        ),
        decision("4.4", "a stopped instance can be renamed", |c| {
            let stopped = c.stopped("container")?;
            let name = c.name();
            let renamed = c
                .me()
                .patch(uuid(&stopped)?, &json!({ "name": name }))?
                .expect(200)?;
            expect_field(&renamed, "state", &json!("exited"))?;
            expect_field(&renamed, "name", &json!(name))
        }),
        spec("4.4", "update returns 404 for a missing instance", |c| {
            c.me().patch(&c.name(), &json!({}))?.is(404)
        }),
    ];
    for kind in ["container", "vm"] {
        checks.push(spec("4.4", format!("a {kind} can be renamed"), move |c| {
            rename(c, kind)
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
            format!("update refuses `{field}`"),
            move |c| {
                let instance = c.sample("container")?;
                let value = instance.get(field).filter(|v| !v.is_null()).cloned();
                let body = json!({ field: value.unwrap_or_else(|| json!("x")), "name": c.name() });
                c.me().patch(uuid(instance)?, &body)?.refuses(field)?;
                let now = c.me().instance(uuid(instance)?)?.expect(200)?;
                expect_field(&now, "name", &instance["name"])
            },
        ));
    }
    checks
}

fn rename(c: &Context<'_>, kind: &str) -> Result<()> {
    c.sample(kind)?;
    let created = c.create(&c.small(kind))?;
    let name = c.name();
    let renamed = c
        .me()
        .patch(uuid(&created)?, &json!({ "name": name }))?
        .expect(200)?;
    expect_field(&renamed, "name", &json!(name))?;
    expect_field(&renamed, "uuid", &created["uuid"])?;
    let got = c.me().instance(&name)?.expect(200)?;
    expect_field(&got, "uuid", &created["uuid"])
}
