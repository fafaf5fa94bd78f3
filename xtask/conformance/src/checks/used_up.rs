//! Section 2.7: ports and addresses run out as sizes do.

use super::capacity::well_formed;
use crate::check::{Check, decision, skip};
use crate::context::{Context, same, uuid};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// Resources that every instance needs without requesting them.
const NOT_ASKED: [&str; 4] = ["wan_ssh_port", "lan_ipv4", "public_ipv4", "webapp_url"];

/// More are too many to make.
const MANY: usize = 100;

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision(
            "2.7",
            "ports or addresses that are used up are 422, and come back with a deletion",
            used_up,
        )
        .alone(),
    ]
}

fn used_up(c: &Context<'_>) -> Result<()> {
    if !c.few_addresses() {
        return skip("the service was not prepared for it (--few-addresses)");
    }
    let mut last = Value::Null;
    for _ in 0..MANY {
        let answer = c.try_create(c.me(), &c.small("vm"))?;
        if answer.status == 201 {
            last = answer.body;
            continue;
        }
        well_formed(&answer, &Value::Null)?;
        let detail = &answer.body["detail"];
        let named = detail["requested"].as_object();
        let mut named = named.into_iter().flatten().map(|(field, _)| field.as_str());
        let Some(field) = named.find(|field| NOT_ASKED.contains(field)) else {
            return skip(format!("sizes are used up first: {answer}"));
        };
        same(&detail["requested"], field, &json!(1))?;
        same(&detail["nearest_available"], field, &json!(0))?;
        let id = uuid(&last).context("not one VM could be made")?;
        c.me().delete(id)?.is(204)?;
        return c.create(&c.small("vm")).map(drop);
    }
    skip(format!("there is room for more than {MANY} VMs"))
}
