//! Rates: exact decimals, fixed at creation.

use crate::check::{Check, decision, spec};
use crate::client::Response;
use crate::context::{expect_field, uuid};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

const RATES: [&str; 4] = [
    "vcpu_cost_hourly_usd",
    "ram_cost_hourly_usd",
    "storage_cost_hourly_usd",
    "gpu_cost_hourly_usd",
];

/// Rates are integers of nano-dollars.
const MAX_DECIMALS: usize = 9;

pub(super) fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for field in RATES {
        checks.push(spec(
            "2.3",
            format!("`{field}` is not negative"),
            move |c| {
                for kind in ["container", "vm"] {
                    let Ok(instance) = c.sample(kind) else {
                        continue;
                    };
                    let rate = instance[field].as_f64();
                    ensure!(rate.is_some_and(|r| r >= 0.0), "`{field}` is {rate:?}");
                }
                Ok(())
            },
        ));
        checks.push(decision(
            "2.3",
            format!("`{field}` is an exact decimal"),
            move |c| {
                for tier in ["general-purpose", "high-performance"] {
                    let created =
                        c.create(&c.small_with("container", &json!({ "cpu_tier": tier })))?;
                    let response = c.me().instance(uuid(&created)?)?;
                    let literal = literal(&response, field)?;
                    let (_, decimals) = literal.split_once('.').unwrap_or((literal, ""));
                    let exact = decimals.len() <= MAX_DECIMALS
                        && decimals.bytes().all(|b| b.is_ascii_digit());
                    ensure!(exact, "`{field}` is written as {literal}");
                }
                Ok(())
            },
        ));
    }
    checks.push(decision(
        "2.3",
        "containers of one CPU tier have equal rates",
        |c| {
            let tier = json!({ "cpu_tier": "general-purpose", "n_vcpus": 2, "mem_gib": 3 });
            let other = c.create(&c.small_with("container", &tier))?;
            let sample = c.sample("container")?;
            RATES
                .iter()
                .try_for_each(|field| expect_field(&other, field, &sample[*field]))
        },
    ));
    checks.push(decision(
        "2.3",
        "resize and stop leave the rates unchanged",
        |c| {
            let before = c.running("container")?;
            let id = uuid(&before)?;
            c.me().patch(id, &json!({ "n_vcpus": 2 }))?.is(200)?;
            c.me().act(id, "stop")?.is(200)?;
            let after: Value = c.me().instance(id)?.expect(200)?;
            RATES
                .iter()
                .try_for_each(|field| expect_field(&after, field, &before[*field]))
        },
    ));
    checks
}

/// The literal of a number in the text of a response.
fn literal<'a>(response: &'a Response, field: &str) -> Result<&'a str> {
    let key = format!("\"{field}\":");
    let (_, rest) = response
        .text
        .split_once(&key)
        .with_context(|| format!("`{field}` is missing: {response}"))?;
    let end = rest.find([',', '}']).unwrap_or(rest.len());
    Ok(rest.get(..end).unwrap_or(rest).trim())
}
