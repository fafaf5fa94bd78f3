//! Section 2.3: the meaning of the fields.

use crate::check::{Check, decision, spec};
use crate::client::INSTANCES;
use crate::context::{Context, expect_field, text, uuid};
use crate::redact::redacted;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::net::Ipv4Addr;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for kind in ["container", "vm"] {
        checks.extend([
            spec("2.3", format!("`lan_ipv4` of a {kind} is an IPv4 address"), move |c| {
                expect_address(c.sample(kind)?, "lan_ipv4")
            }),
            spec("2.3", format!("a new {kind} has the requested values"), move |c| {
                let request = c.small_with(kind, &json!({ "cpu_tier": "general-purpose" }));
                c.sample(kind)?;
                let created = c.create(&request)?;
                for (field, value) in request.as_object().into_iter().flatten() {
                    expect_field(&created, field, value)?;
                }
                Ok(())
            }),
            spec("2.3", format!("a {kind} without a GPU has 0 in `n_gpus` and `gpu_cost_hourly_usd`, and null in `gpu_model`"), move |c| {
                let instance = c.sample(kind)?;
                expect_field(instance, "n_gpus", &json!(0))?;
                expect_field(instance, "gpu_cost_hourly_usd", &json!(0))?;
                expect_field(instance, "gpu_model", &Value::Null)
            }),
            spec("1", format!("`ssh_command` of a {kind} is `ssh -p <wan_ssh_port> <login_user>@<ssh_host>`"), move |c| {
                let instance = c.sample(kind)?;
                let command = text(instance, "ssh_command")?;
                let start = format!("ssh -p {} ", instance["wan_ssh_port"]);
                let (user, host) = command
                    .strip_prefix(&start)
                    .and_then(|rest| rest.split_once('@'))
                    .with_context(|| format!("`ssh_command` is `{command}`"))?;
                let plain = |s: &str| !s.is_empty() && !s.contains(char::is_whitespace);
                ensure!(plain(user) && plain(host), "`ssh_command` is `{command}`");
                Ok(())
            }),
            spec("2.3", format!("`created_at` of a {kind} is an ISO 8601 time in UTC with milliseconds"), move |c| {
                let instance = c.sample(kind)?;
                let at = text(instance, "created_at")?;
                // 2026-11-20T19:55:44.123Z
                let shape: String = at
                    .chars()
                    .map(|c| if c.is_ascii_digit() { '9' } else { c })
                    .collect();
                let right = ["9999-99-99T99:99:99.999Z", "9999-99-99T99:99:99.999+99:99"];
                ensure!(right.contains(&shape.as_str()), "`created_at` is {at}");
                let utc = at.ends_with('Z') || at.ends_with("+00:00");
                ensure!(utc, "`created_at` is not in UTC: {at}");
                Ok(())
            }),
        ]);
    }
    checks.extend([
        decision("2.3", "`created_at` ends with Z", |c| {
            let at = text(c.sample("container")?, "created_at")?;
            ensure!(at.ends_with('Z'), "`created_at` is {at}");
            Ok(())
        }),
        decision("2.3", "`mem_gib` is written as a float", |c| {
            let created = c.try_create(c.me(), &c.small("container"))?;
            let id = uuid(&created.body)?;
            for response in [
                &created,
                &c.me().instance(id)?,
                &c.me().patch(id, &json!({}))?,
                &c.me().get(INSTANCES)?,
            ] {
                ensure!(response.text.contains("\"mem_gib\":1.0"), "{response}");
            }
            Ok(())
        }),
        decision("2.3", "a password has at least 16 characters", |c| {
            let password = text(c.sample("container")?, "original_service_password")?;
            ensure!(password.len() >= 16, "it has {}", password.len());
            Ok(())
        }),
        spec(
            "2.3",
            "a container has no public address and no open ports",
            |c| {
                let container = c.sample("container")?;
                expect_field(container, "public_ipv4", &Value::Null)?;
                expect_field(container, "wan_ports", &json!([]))
            },
        ),
        decision(
            "2.3",
            "a new VM has a public address with port 22 open",
            |c| {
                c.sample("vm")?;
                let vm = c.create(&c.small("vm"))?;
                expect_address(&vm, "public_ipv4")?;
                expect_field(&vm, "wan_ports", &json!([22]))
            },
        ),
        decision(
            "2.3",
            "instances have distinct UUIDs, SSH ports and passwords",
            |c| {
                let (a, b) = (
                    c.create(&c.small("container"))?,
                    c.create(&c.small("container"))?,
                );
                for field in [
                    "uuid",
                    "lan_ipv4",
                    "wan_ssh_port",
                    "original_service_password",
                ] {
                    let other = c.sample("container")?;
                    // A LAN address is unique only among the owner's instances on one node.
                    ensure!(
                        field == "lan_ipv4" || (a[field] != b[field] && a[field] != other[field]),
                        "two instances have an equal `{field}`"
                    );
                }
                Ok(())
            },
        ),
        spec("1", "all instances have one login user", |c| {
            let user = |kind| -> Result<String> {
                let command = text(c.sample(kind)?, "ssh_command")?;
                let (user, _) = command.split_once('@').context("no `@`")?;
                Ok(user.rsplit(' ').next().unwrap_or_default().to_owned())
            };
            let (container, vm) = (user("container")?, user("vm")?);
            ensure!(
                container == vm,
                "the container has {container}, the VM has {vm}"
            );
            Ok(())
        }),
        spec(
            "2.3",
            "`cpu_tier` defaults to general-purpose, and `flavor` to base",
            |c| {
                let created = c.create(&c.small("container"))?;
                expect_field(&created, "cpu_tier", &json!("general-purpose"))?;
                expect_field(&created, "flavor", &json!("base"))
            },
        ),
        spec("2.3", "`cpu_tier` can be high-performance", |c| {
            let tier = json!({ "cpu_tier": "high-performance" });
            let created = c.create(&c.small_with("container", &tier))?;
            expect_field(&created, "cpu_tier", &json!("high-performance"))
        }),
        decision(
            "2.3",
            "provisioning changes only `state`",
            only_state_changes,
        ),
    ]);
    checks
}

fn only_state_changes(c: &Context<'_>) -> Result<()> {
    let mut created = c.create(&c.small("container"))?;
    let running = c.wait(uuid(&created)?, "running")?;
    created["state"] = json!("running");
    ensure!(
        created == running,
        "before: {}; after: {}",
        redacted(&created),
        redacted(&running)
    );
    Ok(())
}

fn expect_address(instance: &Value, field: &str) -> Result<()> {
    let text = text(instance, field)?;
    let address: Ipv4Addr = text
        .parse()
        .with_context(|| format!("`{field}` is `{text}`"))?;
    ensure!(!address.is_unspecified(), "`{field}` is {address}");
    Ok(())
}
