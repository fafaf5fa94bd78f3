//! Section 2.3: the fields of an instance, their types, and their presence in responses.

use crate::check::{Check, decision, spec};
use crate::context::{Context, stopped_state, uuid};
use crate::redact::redacted;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// The name of a type, and its test.
type Type = (&'static str, fn(&Value) -> bool);

const STRING: Type = ("a string", Value::is_string);
const STRING_OR_NULL: Type = ("a string or null", |v| v.is_string() || v.is_null());
const INTEGER: Type = ("an integer", is_integer);
const NUMBER: Type = ("a number", Value::is_number);
const INTEGERS: Type = ("an array of integers", |v| {
    v.as_array().is_some_and(|a| a.iter().all(is_integer))
});

const FIELDS: [(&str, Type); 23] = [
    ("uuid", STRING),
    ("name", STRING),
    ("lan_ipv4", STRING),
    ("state", STRING),
    ("n_vcpus", INTEGER),
    ("mem_gib", NUMBER),
    ("disk_size_gib", INTEGER),
    ("n_gpus", INTEGER),
    ("gpu_model", STRING_OR_NULL),
    ("wan_ssh_port", INTEGER),
    ("resource_type", STRING),
    ("flavor", STRING),
    ("public_ipv4", STRING_OR_NULL),
    ("original_service_password", STRING),
    ("created_at", STRING),
    ("vcpu_cost_hourly_usd", NUMBER),
    ("ram_cost_hourly_usd", NUMBER),
    ("storage_cost_hourly_usd", NUMBER),
    ("gpu_cost_hourly_usd", NUMBER),
    ("cpu_tier", STRING),
    ("ssh_command", STRING_OR_NULL),
    ("webapp_url", STRING_OR_NULL),
    ("wan_ports", INTEGERS),
];

pub(super) fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for kind in ["container", "vm"] {
        for (field, (type_name, is_type)) in FIELDS {
            let name = format!("`{field}` of a {kind} is {type_name} in show and list");
            checks.push(spec("2.3", name, move |c| {
                let instance = c.sample(kind)?;
                for object in [&shown(c, instance)?, &listed(c, instance)?] {
                    let value = object.get(field);
                    let value = value
                        .with_context(|| format!("`{field}` is missing: {}", redacted(object)))?;
                    ensure!(
                        is_type(value),
                        "`{field}` is not {type_name}: {}",
                        redacted(object)
                    );
                }
                Ok(())
            }));
        }
    }
    checks.extend([
        spec(
            "2.3",
            "create, show, list and update return every field",
            |c| {
                let created = c.create(&c.small("container"))?;
                let id = uuid(&created)?;
                let updated = c.me().patch(id, &json!({}))?.expect(200)?;
                for object in [
                    &created,
                    &updated,
                    &shown(c, &created)?,
                    &listed(c, &created)?,
                ] {
                    for (field, _) in FIELDS {
                        ensure!(
                            object.get(field).is_some(),
                            "`{field}` is missing: {}",
                            redacted(object)
                        );
                    }
                }
                Ok(())
            },
        ),
        spec("2.3", "the response of create has `owner_email`", |c| {
            let created = c.create(&c.small("container"))?;
            let email = created["owner_email"].as_str().unwrap_or("");
            ensure!(email.contains('@'), "`owner_email` is `{email}`");
            Ok(())
        }),
        decision(
            "2.3",
            "show and update return `owner_email`, and list omits it",
            |c| {
                let instance = c.sample("container")?;
                let updated = c.me().patch(uuid(instance)?, &json!({}))?.expect(200)?;
                ensure!(
                    shown(c, instance)?["owner_email"].is_string(),
                    "show omits it"
                );
                ensure!(updated["owner_email"].is_string(), "update omits it");
                ensure!(
                    listed(c, instance)?.get("owner_email").is_none(),
                    "list returns it"
                );
                Ok(())
            },
        ),
        decision("2.3", "an instance has no undocumented fields", |c| {
            for (field, _) in shown(c, c.sample("container")?)?
                .as_object()
                .into_iter()
                .flatten()
            {
                let known = FIELDS.iter().any(|(known, _)| known == field);
                // Decisions of Wharf, beside the fields of the specification.
                let added = ["owner_email", "volumes"].contains(&field.as_str());
                ensure!(known || added, "`{field}` is undocumented");
            }
            Ok(())
        }),
        spec(
            "2.3",
            "`state` of running and stopped instances is a state of section 3",
            |c| {
                let stopped = c.stopped("container")?;
                ensure!(stopped["state"] == stopped_state("container"));
                ensure!(shown(c, c.sample("container")?)?["state"] == "running");
                Ok(())
            },
        ),
    ]);
    checks
}

/// `4.0` is an integer too.
fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|f| f.fract() == 0.0)
}

fn shown(c: &Context<'_>, instance: &Value) -> Result<Value> {
    c.me().instance(uuid(instance)?)?.expect(200)
}

fn listed(c: &Context<'_>, instance: &Value) -> Result<Value> {
    let list = c.me().list()?;
    list.into_iter()
        .find(|other| other["uuid"] == instance["uuid"])
        .context("the list lacks the instance")
}
