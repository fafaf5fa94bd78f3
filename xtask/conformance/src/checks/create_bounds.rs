//! Section 8: limits of create, and values of the wrong type.

use crate::check::{Check, decision, spec};
use crate::client::INSTANCES;
use crate::context::{Context, expect_field};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// Field, minimum and maximum.
const BOUNDS: [(&str, u64, u64); 3] = [
    ("n_vcpus", 1, 256),
    ("mem_gib", 1, 512),
    ("disk_size_gib", 10, 2000),
];

pub(super) fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for (field, min, max) in BOUNDS {
        for wrong in [
            json!(min - 1),
            json!(max + 1),
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
            let name = format!("create refuses {wrong} as `{field}`");
            checks.push(spec("8", name, move |c| {
                let body = c.small_with("container", &json!({ field: wrong }));
                c.try_create(c.me(), &body)?.refuses(field)
            }));
        }
        checks.push(spec(
            "8",
            format!("create accepts {min} as `{field}`"),
            move |c| {
                let created = c.create(&c.small_with("container", &json!({ field: min })))?;
                expect_field(&created, field, &json!(min))
            },
        ));
        let name = format!("create returns 201 or 422 for {max} as `{field}`");
        checks.push(
            spec("8", name, move |c| {
                let body = c.small_with("container", &json!({ field: max }));
                let response = c.try_create(c.me(), &body)?;
                ensure!(matches!(response.status, 201 | 422), "{response}");
                Ok(())
            })
            .exclusive(),
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
        let name = format!("create refuses {wrong} as `{field}`");
        checks.push(spec("4.3", name, move |c| {
            let body = c.small_with("container", &json!({ field: wrong }));
            c.try_create(c.me(), &body)?.refuses(field)
        }));
    }
    for (field, literal, value) in [
        ("n_vcpus", "2.0", 2),
        ("n_vcpus", "2e0", 2),
        ("n_vcpus", "20E-1", 2),
        ("mem_gib", "2.0", 2),
        ("disk_size_gib", "1e1", 10),
    ] {
        let name = format!("create accepts {literal} as the integer `{field}`");
        checks.push(decision("4.3", name, move |c| {
            let created = create_with_literal(c, field, literal)?;
            expect_field(&created, field, &json!(value))
        }));
    }
    checks
}

/// Creates a container with this JSON literal as the value of a field.
fn create_with_literal(c: &Context<'_>, field: &str, literal: &str) -> Result<Value> {
    let text = c.small_with("container", &json!({ field: "literal" }));
    let text = text.to_string().replace("\"literal\"", literal);
    let json = [("Content-Type", "application/json")];
    let response = c
        .me()
        .raw("POST", INSTANCES, &json, Some(text.as_bytes()))?;
    c.delete_later(c.me(), &response);
    response.expect(201)
}
