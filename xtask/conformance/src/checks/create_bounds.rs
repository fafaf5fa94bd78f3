//! Section 8: limits at creation, and values of the wrong type.

use crate::check::{Check, decision, spec};
use crate::client::INSTANCES;
use crate::context::{Context, same};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// Field, least and greatest value.
const BOUNDS: [(&str, u64, u64); 3] = [
    ("n_vcpus", 1, 256),
    ("mem_gib", 1, 512),
    ("disk_size_gib", 10, 2000),
];

pub(super) fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for (field, least, greatest) in BOUNDS {
        for wrong in [
            json!(least - 1),
            json!(greatest + 1),
            json!(-1),
            json!(u64::MAX),
            json!(1e300),
            json!(20.5),
            json!("20"),
            json!(""),
            json!(true),
            json!([20]),
            json!({ "value": 20 }),
        ] {
            let name = format!("`{field}` is refused: {wrong}");
            checks.push(spec("8", name, move |c| {
                let body = c.small_with("container", &json!({ field: wrong }));
                c.try_create(c.me(), &body)?.refuses(field)
            }));
        }
        checks.push(spec("8", format!("`{field}` may be {least}"), move |c| {
            let created = c.create(&c.small_with("container", &json!({ field: least })))?;
            same(&created, field, &json!(least))
        }));
        let name = format!("`{field}` may be {greatest}, if there is so much");
        checks.push(
            spec("8", name, move |c| {
                let body = c.small_with("container", &json!({ field: greatest }));
                let answer = c.try_create(c.me(), &body)?;
                ensure!(matches!(answer.status, 201 | 422), "{answer}");
                Ok(())
            })
            .alone(),
        );
    }
    for (field, wrong) in [
        ("resource_type", json!("VM")),
        ("resource_type", json!("")),
        ("resource_type", json!("pod")),
        ("resource_type", json!(1)),
        ("cpu_tier", json!("fast")),
        ("cpu_tier", json!("")),
        ("cpu_tier", json!("General-Purpose")),
        ("flavor", json!("")),
        ("flavor", json!("Base")),
    ] {
        let name = format!("`{field}` is refused: {wrong}");
        checks.push(spec("4.3", name, move |c| {
            let body = c.small_with("container", &json!({ field: wrong }));
            c.try_create(c.me(), &body)?.refuses(field)
        }));
    }
    for (written, value) in [("2.0", 2), ("2e0", 2), ("20E-1", 2)] {
        let name = format!("an integer may be written as {written}");
        checks.push(decision("4.3", name, move |c| {
            let created = literally(c, written)?;
            same(&created, "n_vcpus", &json!(value))
        }));
    }
    checks
}

/// A container whose `n_vcpus` is written just so.
fn literally(c: &Context<'_>, n_vcpus: &str) -> Result<Value> {
    let text = format!(
        "{{\"resource_type\":\"container\",\"n_vcpus\":{n_vcpus},\"mem_gib\":1,\
         \"disk_size_gib\":10,\"name\":\"{}\"}}",
        c.name()
    );
    let json = [("Content-Type", "application/json")];
    let answer = c
        .me()
        .raw("POST", INSTANCES, &json, Some(text.as_bytes()))?;
    c.keep(c.me(), &answer);
    answer.expect(201)
}
