//! Section 2.3: what the fields mean.

use crate::check::{Check, decision, spec};
use crate::context::{Context, same, text, uuid};
use crate::redact::redacted;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::net::Ipv4Addr;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for kind in ["container", "vm"] {
        checks.extend([
            spec("2.3", format!("`lan_ipv4` of a {kind} is an IPv4 address"), move |c| {
                address(c.sample(kind)?, "lan_ipv4")
            }),
            spec("2.3", format!("a {kind} shows what was asked for"), move |c| {
                let asked = c.small_with(kind, &json!({ "cpu_tier": "general-purpose" }));
                c.sample(kind)?;
                let created = c.create(&asked)?;
                for (field, value) in asked.as_object().into_iter().flatten() {
                    same(&created, field, value)?;
                }
                Ok(())
            }),
            spec("2.3", format!("without a GPU `n_gpus` and `gpu_cost_hourly_usd` of a {kind} are 0 and `gpu_model` is null"), move |c| {
                let instance = c.sample(kind)?;
                same(instance, "n_gpus", &json!(0))?;
                same(instance, "gpu_cost_hourly_usd", &json!(0))?;
                same(instance, "gpu_model", &Value::Null)
            }),
            spec("1", format!("`ssh_command` of a {kind} is `ssh -p <wan_ssh_port> <login_user>@<ssh_host>`"), move |c| {
                let instance = c.sample(kind)?;
                let command = text(instance, "ssh_command")?;
                let start = format!("ssh -p {} ", instance["wan_ssh_port"]);
                let (user, host) = command
                    .strip_prefix(&start)
                    .and_then(|rest| rest.split_once('@'))
                    .with_context(|| format!("it is `{command}`"))?;
                let plain = |s: &str| !s.is_empty() && !s.contains(char::is_whitespace);
                ensure!(plain(user) && plain(host), "it is `{command}`");
                Ok(())
            }),
            spec("2.3", format!("`created_at` of a {kind} is ISO 8601, UTC, with milliseconds"), move |c| {
                let instance = c.sample(kind)?;
                let at = text(instance, "created_at")?;
                // 2026-11-20T19:55:44.123Z
                let shape: String = at
                    .chars()
                    .map(|c| if c.is_ascii_digit() { '9' } else { c })
                    .collect();
                let right = ["9999-99-99T99:99:99.999Z", "9999-99-99T99:99:99.999+99:99"];
                ensure!(right.contains(&shape.as_str()), "it is {at}");
                let utc = at.ends_with('Z') || at.ends_with("+00:00");
                ensure!(utc, "{at} is not UTC");
                Ok(())
            }),
        ]);
    }
    checks.extend([
        decision("2.3", "`created_at` ends with Z", |c| {
            let at = text(c.sample("container")?, "created_at")?;
            ensure!(at.ends_with('Z'), "it is {at}");
            Ok(())
        }),
        decision("2.3", "`mem_gib` is written as a float", |c| {
            let answer = c.me().instance(uuid(c.sample("container")?)?)?;
            ensure!(answer.text.contains("\"mem_gib\":1.0"), "{answer}");
            Ok(())
        }),
        spec(
            "2.3",
            "a container has no public address and no open ports",
            |c| {
                let container = c.sample("container")?;
                same(container, "public_ipv4", &Value::Null)?;
                same(container, "wan_ports", &json!([]))
            },
        ),
        decision(
            "2.3",
            "a VM has a public address, and port 22 of it is open",
            |c| {
                c.sample("vm")?;
                let vm = c.create(&c.small("vm"))?;
                address(&vm, "public_ipv4")?;
                same(&vm, "wan_ports", &json!([22]))
            },
        ),
        decision(
            "2.3",
            "instances share no UUID, address, SSH port or password",
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
                    // The LAN address is one's own among the owner's instances of a node.
                    ensure!(
                        field == "lan_ipv4" || (a[field] != b[field] && a[field] != other[field]),
                        "`{field}` is the same"
                    );
                }
                Ok(())
            },
        ),
        spec("1", "the login user is the same for all instances", |c| {
            let user = |kind| -> Result<String> {
                let command = text(c.sample(kind)?, "ssh_command")?;
                let (user, _) = command.split_once('@').context("no `@`")?;
                Ok(user.rsplit(' ').next().unwrap_or_default().to_owned())
            };
            let (container, vm) = (user("container")?, user("vm")?);
            ensure!(container == vm, "{container} and {vm}");
            Ok(())
        }),
        spec("2.3", "`cpu_tier` and `flavor` have their defaults", |c| {
            let created = c.create(&c.small("container"))?;
            same(&created, "cpu_tier", &json!("general-purpose"))?;
            same(&created, "flavor", &json!("base"))
        }),
        spec("2.3", "`cpu_tier` can be high-performance", |c| {
            let tier = json!({ "cpu_tier": "high-performance" });
            let created = c.create(&c.small_with("container", &tier))?;
            same(&created, "cpu_tier", &json!("high-performance"))
        }),
        decision(
            "2.3",
            "nothing but its state changes while an instance comes up",
            unchanged,
        ),
    ]);
    checks
}

fn unchanged(c: &Context<'_>) -> Result<()> {
    let mut created = c.create(&c.small("container"))?;
    let running = c.wait(uuid(&created)?, "running")?;
    created["state"] = json!("running");
    ensure!(
        created == running,
        "{} and {}",
        redacted(&created),
        redacted(&running)
    );
    Ok(())
}

fn address(instance: &Value, field: &str) -> Result<()> {
    let text = text(instance, field)?;
    let address: Ipv4Addr = text.parse().with_context(|| format!("it is `{text}`"))?;
    ensure!(!address.is_unspecified(), "it is {address}");
    Ok(())
}
