//! Section 2.7: exhausted ports and addresses.

use super::capacity::expect_capacity_error;
use crate::check::{Check, decision, skip};
use crate::context::{Context, expect_field, uuid};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// Resources that every instance needs without requesting them.
const IMPLICIT: [&str; 4] = ["wan_ssh_port", "lan_ipv4", "public_ipv4", "webapp_url"];

/// Bounds the time to exhaust the addresses.
const MAX_VMS: usize = 100;

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision(
            "2.7",
            "exhausted ports or addresses are a 422 until an instance is deleted",
            exhaust_addresses,
        )
        .exclusive(),
    ]
}

fn exhaust_addresses(c: &Context<'_>) -> Result<()> {
    if !c.few_addresses() {
        return skip("the service is not prepared for this rule (--few-addresses)");
    }
    let mut last = Value::Null;
    for _ in 0..MAX_VMS {
        let response = c.try_create(c.me(), &c.small("vm"))?;
        if response.status == 201 {
            last = response.body;
            continue;
        }
        expect_capacity_error(&response, &Value::Null)?;
        let detail = &response.body["detail"];
        let requested = detail["requested"].as_object();
        let mut fields = requested
            .into_iter()
            .flatten()
            .map(|(field, _)| field.as_str());
        let Some(field) = fields.find(|field| IMPLICIT.contains(field)) else {
            return skip(format!("vCPUs, RAM or disk run out first: {response}"));
        };
        expect_field(&detail["requested"], field, &json!(1))?;
        expect_field(&detail["nearest_available"], field, &json!(0))?;
        let id = uuid(&last).context("no VM could be created")?;
        c.me().delete(id)?.is(204)?;
        return c.create(&c.small("vm")).map(drop);
    }
    skip(format!(
        "the service has capacity for more than {MAX_VMS} VMs"
    ))
}
