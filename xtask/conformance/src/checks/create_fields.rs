//! Section 4.3: the fields of create, and the messages on wrong fields.

use crate::check::{Check, decision, spec};
use crate::context::{expect_field, uuid, with};
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
            "create returns 201 with an instance that show and list return too",
            |c| {
                let created = c.create(&c.small("container"))?;
                let got = c.me().instance(uuid(&created)?)?.expect(200)?;
                for field in ["uuid", "name", "wan_ssh_port", "lan_ipv4", "created_at"] {
                    expect_field(&got, field, &created[field])?;
                }
                let list = c.me().list()?;
                let listed = list.iter().any(|i| i["uuid"] == created["uuid"]);
                ensure!(listed, "the list lacks the instance");
                Ok(())
            },
        ),
        decision("4.3", "create reports all wrong fields together", |c| {
            let wrong = json!({
                "resource_type": "pod", "n_vcpus": 0, "mem_gib": 513, "disk_size_gib": 9,
                "name": "-x", "cpu_tier": "fast", "flavor": "no-such-flavor",
                "public_key": "ssh-rsa", "colour": "red", "uuid": "mine",
                "s3_endpoint_url": "ftp://x",
            });
            let response = c.try_create(c.me(), &wrong)?;
            for (field, _) in wrong.as_object().into_iter().flatten() {
                response.refuses(field)?;
            }
            Ok(())
        }),
        spec("4.3", "a 400 has messages for the wrong fields only", |c| {
            let body = c.small_with("container", &json!({ "n_vcpus": 0 }));
            let response = c.try_create(c.me(), &body)?;
            response.refuses("n_vcpus")?;
            let fields = response
                .body
                .as_object()
                .context("the body is not an object")?;
            ensure!(fields.len() == 1, "{response}");
            Ok(())
        }),
        decision(
            "4.3",
            "the message on a value out of range names the range",
            |c| {
                let body = c.small_with("container", &json!({ "n_vcpus": 257 }));
                let response = c.try_create(c.me(), &body)?;
                response.refuses("n_vcpus")?;
                let text = response.body["n_vcpus"].to_string();
                ensure!(text.contains('1') && text.contains("256"), "{response}");
                Ok(())
            },
        ),
        decision(
            "4.3",
            "create refuses an unknown field, and suggests the field of a similar name",
            |c| {
                let body = c.small_with("container", &json!({ "colour": "red", "vcpus": 1 }));
                let response = c.try_create(c.me(), &body)?;
                response.refuses("colour")?;
                response.refuses("vcpus")?;
                let suggests = |field: &str| response.body[field].to_string().contains('`');
                let right = response.body["vcpus"].to_string().contains("`n_vcpus`");
                ensure!(right && !suggests("colour"), "{response}");
                Ok(())
            },
        ),
        decision("4.3", "a refused create leaves nothing behind", |c| {
            let body = c.small_with("container", &json!({ "n_vcpus": 0 }));
            c.try_create(c.me(), &body)?.is(400)?;
            let name = body["name"].as_str().unwrap_or_default();
            c.me().instance(name)?.is(404)?;
            c.create(&with(body, &json!({ "n_vcpus": 1 }))).map(drop)
        }),
        decision(
            "4.3",
            "create reports a taken name together with another wrong field",
            |c| {
                let name = c.sample("container")?["name"].clone();
                let body = c.small_with("container", &json!({ "name": name, "mem_gib": 0 }));
                let response = c.try_create(c.me(), &body)?;
                response.refuses("name")?;
                response.refuses("mem_gib")
            },
        ),
        spec(
            "4.3",
            "`ai_provider_api_key` is accepted and never returned",
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
        checks.push(spec(
            "4.3",
            format!("create requires `{field}`"),
            move |c| {
                let mut body = c.small("container");
                if let Some(body) = body.as_object_mut() {
                    body.remove(field);
                }
                c.try_create(c.me(), &body)?.refuses(field)
            },
        ));
        checks.push(decision(
            "4.3",
            format!("create refuses null in `{field}`"),
            move |c| {
                let body = c.small_with("container", &json!({ field: null }));
                c.try_create(c.me(), &body)?.refuses(field)
            },
        ));
    }
    for field in OPTIONAL {
        checks.push(decision(
            "4.3",
            format!("create treats null in `{field}` as an absent field"),
            move |c| {
                let created = c.create(&c.small_with("container", &json!({ field: null })))?;
                ensure!(created["uuid"].is_string());
                Ok(())
            },
        ));
        for wrong in [json!(5), json!(true), json!(["x"]), json!({ "x": 1 })] {
            let name = format!("create refuses {wrong} in the string field `{field}`");
            checks.push(spec("4.3", name, move |c| {
                let body = c.small_with("container", &json!({ field: wrong }));
                c.try_create(c.me(), &body)?.refuses(field)
            }));
        }
    }
    for field in READ_ONLY {
        checks.push(decision(
            "4.3",
            format!("create refuses the read-only field `{field}`"),
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
