//! The catalogue, estimates and costs.

use super::capacity::exceed_capacity;
use crate::check::{Check, decision, skip};
use crate::client::{Client, INSTANCES};
use crate::context::{Context, text, uuid};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

const ESTIMATE: &str = "/api/estimate/";
const USAGE: &str = "/api/usage/";
const OFFER: &str = "/api/offer/";

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
                    let mut body = flavor["minimum"].clone();
                    ensure!(body["n_vcpus"].as_u64() >= Some(1), "{flavor}");
                    body["flavor"] = flavor["name"].clone();
                    let kinds = flavor["resource_types"].as_array();
                    let kinds = kinds.context("no `resource_types`")?;
                    for kind in ["container", "vm"].map(|kind| json!(kind)) {
                        body["resource_type"] = kind.clone();
                        let estimate = c.me().post(ESTIMATE, &body)?;
                        if kinds.contains(&kind) {
                            estimate.is(200)?
                        } else {
                            estimate.refuses("flavor")?
                        }
                    }
                    body["resource_type"] = kinds[0].clone();
                    body["mem_gib"] =
                        json!(body["mem_gib"].as_u64().unwrap_or(0).saturating_sub(1));
                    c.me().post(ESTIMATE, &body)?.refuses("mem_gib")?;
                }
                Ok(())
            },
        ),
        decision("7", "the offer has the rates of the CPU tiers", |c| {
            let offer = listed(c, OFFER)?;
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
                let audit = || c.me().get("/api/audit/?order=newest")?.expect(200);
                let (body, before) = (c.small("container"), audit()?);
                // Deletions of earlier checks may still free capacity.
                c.retry(|| {
                    let free = listed(c, OFFER)?["largest_free"].clone();
                    estimated(c, &body)?;
                    Ok(listed(c, OFFER)?["largest_free"] == free)
                })?;
                let estimate = estimated(c, &body)?;
                c.me().instance(text(&body, "name")?)?.is(404)?;
                ensure!(audit()? == before, "the audit log has a record");
                ensure!(
                    estimate["fits"] == true && estimate["shortage"].is_null(),
                    "{estimate}"
                );
                let created = c.create(&body)?;
                let mut hourly = 0.0;
                for (rate, size) in [
                    ("vcpu_cost_hourly_usd", "n_vcpus"),
                    ("ram_cost_hourly_usd", "mem_gib"),
                    ("storage_cost_hourly_usd", "disk_size_gib"),
                    ("gpu_cost_hourly_usd", "n_gpus"),
                ] {
                    ensure!(estimate[rate] == created[rate], "`{rate}`: {estimate}");
                    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
                    hourly += number(&created[rate]) * number(&created[size]);
                }
                let quoted = estimate["hourly_usd"].as_f64().context("no `hourly_usd`")?;
                ensure!((quoted - hourly).abs() < 1e-9, "{quoted} is not {hourly}");
                Ok(())
            },
        )
        .exclusive(),
        decision(
            "7",
            "an estimate has the field errors and the shortage of create",
            |c| {
                estimated(c, &c.small("container"))?;
                let taken = &c.sample("container")?["name"];
                for wrong in [
                    json!({}),
                    json!({ "resource_type": "pod", "n_vcpus": 0, "colour": "blue", "name": "-" }),
                    c.small_with("vm", &json!({
                        "flavor": "marimo", "gpu_model": "H100", "public_key": "x", "name": taken,
                        "s3_endpoint_url": "https://s3.example.org",
                    })),
                    json!([]),
                ] {
                    let response = c.me().post(ESTIMATE, &wrong)?;
                    response.is(400)?;
                    let created = c.try_create(c.me(), &wrong)?;
                    ensure!(response.body == created.body, "{response}; {created}");
                }
                let plain = [("Content-Type", "text/plain")];
                c.me().raw("POST", ESTIMATE, &plain, Some(b"{}"))?.is(415)?;
                c.retry(|| {
                    let (body, refused) = exceed_capacity(c)?;
                    let estimate = estimated(c, &body)?;
                    ensure!(estimate["fits"] == false, "{estimate}");
                    Ok(estimate["shortage"] == refused.body["detail"])
                })
            },
        )
        .exclusive(),
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
            for (query, field) in [
                ("from=yesterday", "from"),
                ("to=2026-13-01", "to"),
                ("from=2026-01-02&to=2026-01-01", "from"),
                ("from=2100-01-01", "from"),
                ("to=2026-01-01&to=2026-01-02", "to"),
            ] {
                c.me().get(&format!("{USAGE}?{query}"))?.refuses(field)?;
            }
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
