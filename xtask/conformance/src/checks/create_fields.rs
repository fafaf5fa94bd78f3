//! Section 4.3: which fields there are, and how wrong ones are reported.

use crate::check::{Check, decision, spec};
use crate::context::{same, uuid, with};
use crate::redact::redacted;
use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

const REQUIRED: [&str; 4] = ["resource_type", "n_vcpus", "mem_gib", "disk_size_gib"];

const OPTIONAL: [&str; 10] = [
    "name",
    "cpu_tier",
    "flavor",
    "gpu_model",
    "public_key",
    "s3_endpoint_url",
    "s3_access_key_id",
    "s3_secret_access_key",
    "s3_prefill_bucket",
    "ai_provider_api_key",
];

const READ_ONLY: [&str; 14] = [
    "uuid",
    "lan_ipv4",
    "state",
    "n_gpus",
    "wan_ssh_port",
    "owner_email",
    "public_ipv4",
    "original_service_password",
    "created_at",
    "vcpu_cost_hourly_usd",
    "gpu_cost_hourly_usd",
    "ssh_command",
    "webapp_url",
    "wan_ports",
];

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        spec(
            "4.3",
            "create answers 201 with the instance, which get and list then show",
            |c| {
                let created = c.create(&c.small("container"))?;
                let got = c.me().instance(uuid(&created)?)?.expect(200)?;
                for field in ["uuid", "name", "wan_ssh_port", "lan_ipv4", "created_at"] {
                    same(&got, field, &created[field])?;
                }
                let list = c.me().list()?;
                let listed = list.iter().any(|i| i["uuid"] == created["uuid"]);
                ensure!(listed, "it is not in the list");
                Ok(())
            },
        ),
        decision("4.3", "all wrong fields are reported at once", |c| {
            let wrong = json!({
                "resource_type": "pod", "n_vcpus": 0, "mem_gib": 513, "disk_size_gib": 9,
                "name": "-x", "cpu_tier": "fast", "flavor": "no-such-flavor",
                "public_key": "ssh-rsa", "colour": "red", "uuid": "mine",
                "s3_endpoint_url": "ftp://x",
            });
            let answer = c.try_create(c.me(), &wrong)?;
            for (field, _) in wrong.as_object().into_iter().flatten() {
                answer.refuses(field)?;
            }
            Ok(())
        }),
        spec(
            "4.3",
            "a 400 holds errors field by field, and only of the wrong fields",
            |c| {
                let body = c.small_with("container", &json!({ "n_vcpus": 0 }));
                let answer = c.try_create(c.me(), &body)?;
                answer.refuses("n_vcpus")?;
                let fields = answer.body.as_object().context("no object")?;
                ensure!(fields.len() == 1, "{answer}");
                Ok(())
            },
        ),
        decision("4.3", "messages say what would be right", |c| {
            let body = c.small_with("container", &json!({ "n_vcpus": 257 }));
            let answer = c.try_create(c.me(), &body)?;
            answer.refuses("n_vcpus")?;
            let text = answer.body["n_vcpus"].to_string();
            ensure!(text.contains('1') && text.contains("256"), "{answer}");
            Ok(())
        }),
        decision("4.3", "an unknown field is refused", |c| {
            let body = c.small_with("container", &json!({ "colour": "red" }));
            c.try_create(c.me(), &body)?.refuses("colour")
        }),
        decision(
            "4.3",
            "an instance that is refused leaves nothing behind",
            |c| {
                let body = c.small_with("container", &json!({ "n_vcpus": 0 }));
                c.try_create(c.me(), &body)?.is(400)?;
                let name = body["name"].as_str().unwrap_or_default();
                c.me().instance(name)?.is(404)?;
                c.create(&with(body, &json!({ "n_vcpus": 1 }))).map(drop)
            },
        ),
        decision(
            "4.3",
            "two errors of which one is a taken name are both reported",
            |c| {
                let name = c.sample("container")?["name"].clone();
                let body = c.small_with("container", &json!({ "name": name, "mem_gib": 0 }));
                let answer = c.try_create(c.me(), &body)?;
                answer.refuses("name")?;
                answer.refuses("mem_gib")
            },
        ),
        spec(
            "4.3",
            "`ai_provider_api_key` is accepted, and not shown",
            |c| {
                let secret = format!("ai-key-{}", c.name());
                c.me().watch().add_secret(&secret);
                let fields = json!({ "ai_provider_api_key": secret, "flavor": "marimo",
                "mem_gib": 2, "disk_size_gib": 20 });
                let created = c.create(&c.small_with("container", &fields))?;
                let got = c.me().instance(uuid(&created)?)?.expect(200)?;
                ensure!(
                    got.get("ai_provider_api_key").is_none(),
                    "{}",
                    redacted(&got)
                );
                Ok(())
            },
        ),
    ];
    for field in REQUIRED {
        checks.push(spec("4.3", format!("`{field}` is required"), move |c| {
            let mut body = c.small("container");
            if let Some(body) = body.as_object_mut() {
                body.remove(field);
            }
            c.try_create(c.me(), &body)?.refuses(field)
        }));
        checks.push(decision(
            "4.3",
            format!("null in `{field}` is refused"),
            move |c| {
                let body = c.small_with("container", &json!({ field: null }));
                c.try_create(c.me(), &body)?.refuses(field)
            },
        ));
    }
    for field in OPTIONAL {
        checks.push(decision(
            "4.3",
            format!("null in `{field}` means that it is absent"),
            move |c| {
                let created = c.create(&c.small_with("container", &json!({ field: null })))?;
                ensure!(created["uuid"].is_string());
                Ok(())
            },
        ));
        for wrong in [json!(5), json!(true), json!(["x"]), json!({ "x": 1 })] {
            let name = format!("`{field}` that is no string is refused: {wrong}");
            checks.push(spec("4.3", name, move |c| {
                let body = c.small_with("container", &json!({ field: wrong }));
                c.try_create(c.me(), &body)?.refuses(field)
            }));
        }
    }
    for field in READ_ONLY {
        checks.push(decision(
            "4.3",
            format!("read-only `{field}` is refused"),
            move |c| {
                let value: Value = c
                    .sample("container")?
                    .get(field)
                    .cloned()
                    .unwrap_or_default();
                let body = c.small_with("container", &json!({ field: value }));
                c.try_create(c.me(), &body)?.refuses(field)
            },
        ));
    }
    checks
}
