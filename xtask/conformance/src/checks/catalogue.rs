//! The catalogue, estimates and costs.

use crate::check::{Check, decision, skip};
use crate::client::{Client, INSTANCES};
use crate::context::{Context, uuid};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

const ESTIMATE: &str = "/api/estimate/";
const USAGE: &str = "/api/usage/";

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision(
            "4.2",
            "the catalogue has the flavors that create takes",
            |c| {
                let flavors = listed(c, "/api/flavor/")?;
                let flavors = flavors.as_array().context("no array")?;
                ensure!(
                    flavors.iter().any(|flavor| flavor["name"] == "base"),
                    "`base` is missing"
                );
                for flavor in flavors {
                    let minimum = &flavor["minimum"];
                    ensure!(minimum["n_vcpus"].as_u64() >= Some(1), "{flavor}");
                }
                Ok(())
            },
        ),
        decision("7", "the offer has the rates of the CPU tiers", |c| {
            let offer = listed(c, "/api/offer/")?;
            let tiers = offer["cpu_tiers"].as_array().context("no `cpu_tiers`")?;
            ensure!(!tiers.is_empty(), "no CPU tier");
            for tier in tiers {
                ensure!(tier["vcpu_cost_hourly_usd"].is_number(), "{tier}");
            }
            Ok(())
        }),
        decision(
            "7",
            "an estimate has the rates of the created instance, and creates nothing",
            |c| {
                let body = c.small_with("container", &json!({ "name": c.name() }));
                let estimate = estimated(c, &body)?;
                c.me()
                    .instance(body["name"].as_str().unwrap_or_default())?
                    .is(404)?;
                ensure!(estimate["fits"] == true, "{estimate}");
                let created = c.create(&body)?;
                for rate in ["vcpu_cost_hourly_usd", "ram_cost_hourly_usd"] {
                    ensure!(estimate[rate] == created[rate], "`{rate}`: {estimate}");
                }
                Ok(())
            },
        ),
        decision(
            "7",
            "an estimate refuses the fields that create refuses",
            |c| {
                estimated(c, &c.small("container"))?;
                let wrong = c.small_with("container", &json!({ "n_vcpus": 0 }));
                c.me().post(ESTIMATE, &wrong)?.refuses("n_vcpus")?;
                let plain = [("Content-Type", "text/plain")];
                c.me().raw("POST", ESTIMATE, &plain, Some(b"{}"))?.is(415)
            },
        ),
        decision("7", "the costs are those of the caller's instances", |c| {
            listed(c, USAGE)?;
            let created = c.create(&c.small("container"))?;
            let id = uuid(&created)?;
            let has = |user: &Client| -> Result<bool> {
                let usage = user.get(USAGE)?.expect(200)?;
                let instances = usage["instances"].as_array().context("no array")?.clone();
                Ok(instances.iter().any(|line| line["uuid"] == id))
            };
            ensure!(!has(c.other()?)?, "another user sees it");
            c.me()
                .get(&format!("{USAGE}?from=yesterday"))?
                .refuses("from")?;
            c.me().get(INSTANCES)?.is(200)
        }),
    ]
}

fn listed(c: &Context<'_>, path: &str) -> Result<Value> {
    let response = c.me().get(path)?;
    if response.status == 404 {
        return skip("the service has no catalogue");
    }
    response.expect(200)
}

fn estimated(c: &Context<'_>, body: &Value) -> Result<Value> {
    let response = c.me().post(ESTIMATE, body)?;
    if response.status == 404 {
        return skip("the service has no estimates");
    }
    response.expect(200)
}
