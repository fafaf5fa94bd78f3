//! Rates: exact decimals, fixed at creation.

use crate::check::{Check, decision, spec};
use crate::client::Answer;
use crate::context::{same, uuid};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

const RATES: [&str; 4] = [
    "vcpu_cost_hourly_usd",
    "ram_cost_hourly_usd",
    "storage_cost_hourly_usd",
    "gpu_cost_hourly_usd",
];

/// A nano-dollar is the least that is counted.
const MOST_DECIMALS: usize = 9;

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
                    ensure!(rate.is_some_and(|r| r >= 0.0), "it is {rate:?}");
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
                    let answer = c.me().instance(uuid(&created)?)?;
                    let written = written(&answer, field)?;
                    let (_, decimals) = written.split_once('.').unwrap_or((written, ""));
                    let exact = decimals.len() <= MOST_DECIMALS
                        && decimals.bytes().all(|b| b.is_ascii_digit());
                    ensure!(exact, "it is written as {written}");
                }
                Ok(())
            },
        ));
    }
    checks.push(decision(
        "2.3",
        "rates depend on the tier, and on nothing else of a container",
        |c| {
            let tier = json!({ "cpu_tier": "general-purpose", "n_vcpus": 2, "mem_gib": 3 });
            let other = c.create(&c.small_with("container", &tier))?;
            let sample = c.sample("container")?;
            RATES
                .iter()
                .try_for_each(|field| same(&other, field, &sample[*field]))
        },
    ));
    checks.push(decision(
        "2.3",
        "rates do not change with size or state",
        |c| {
            let before = c.running("container")?;
            let id = uuid(&before)?;
            c.me().patch(id, &json!({ "n_vcpus": 2 }))?.is(200)?;
            c.me().act(id, "stop")?.is(200)?;
            let after: Value = c.me().instance(id)?.expect(200)?;
            RATES
                .iter()
                .try_for_each(|field| same(&after, field, &before[*field]))
        },
    ));
    checks
}

/// The digits of a number as the answer has them.
fn written<'a>(answer: &'a Answer, field: &str) -> Result<&'a str> {
    let key = format!("\"{field}\":");
    let (_, rest) = answer
        .text
        .split_once(&key)
        .with_context(|| format!("no `{field}`: {answer}"))?;
    let end = rest.find([',', '}']).unwrap_or(rest.len());
    Ok(rest.get(..end).unwrap_or(rest).trim())
}
