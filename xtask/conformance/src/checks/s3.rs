//! Section 4.3: S3 prefill.

use crate::check::{Check, decision, spec};
use crate::context::{Context, uuid, with};
use anyhow::ensure;
use serde_json::{Value, json};

const FIELDS: [&str; 4] = [
    "s3_endpoint_url",
    "s3_access_key_id",
    "s3_secret_access_key",
    "s3_prefill_bucket",
];

pub(super) fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for flavor in ["rserver", "marimo", "jupyterlab"] {
        checks.push(spec(
            "4.3",
            format!("flavor {flavor} accepts the S3 fields, and no response shows them"),
            move |c| {
                let body = body(c, flavor);
                for field in ["s3_access_key_id", "s3_secret_access_key"] {
                    c.me()
                        .watch()
                        .add_secret(body[field].as_str().unwrap_or_default());
                }
                let created = c.create(&body)?;
                let got = c.me().instance(uuid(&created)?)?.expect(200)?;
                for field in FIELDS {
                    ensure!(got.get(field).is_none(), "the response has `{field}`");
                }
                Ok(())
            },
        ));
        checks.push(decision(
            "4.3",
            format!("flavor {flavor} with three S3 fields is refused on the missing field"),
            move |c| {
                for missing in FIELDS {
                    let mut body = body(c, flavor);
                    body[missing] = Value::Null;
                    let response = c.try_create(c.me(), &body)?;
                    response.refuses(missing)?;
                    ensure!(
                        response.body.as_object().is_some_and(|o| o.len() == 1),
                        "{response}"
                    );
                }
                Ok(())
            },
        ));
    }
    for flavor in [
        "base",
        "datascience",
        "datasciencemarimo",
        "rgeospatial",
        "genomics",
    ] {
        checks.push(spec(
            "4.3",
            format!("flavor {flavor} refuses the S3 fields with 400"),
            move |c| c.try_create(c.me(), &body(c, flavor))?.is(400),
        ));
        checks.push(decision(
            "4.3",
            format!("the refusal of S3 fields by flavor {flavor} names each given field"),
            move |c| {
                let response = c.try_create(c.me(), &body(c, flavor))?;
                for field in FIELDS {
                    response.refuses(field)?;
                }
                for field in FIELDS {
                    let mut one = c.small_with(
                        "container",
                        &json!({ "flavor": flavor,
                    "n_vcpus": 2, "mem_gib": 4, "disk_size_gib": 40 }),
                    );
                    one[field] = body(c, flavor)[field].clone();
                    c.try_create(c.me(), &one)?.refuses(field)?;
                }
                Ok(())
            },
        ));
    }
    checks.push(spec(
        "4.3",
        "create refuses the S3 fields on a VM with 400",
        |c| {
            let body = with(body(c, "base"), &json!({ "resource_type": "vm" }));
            c.try_create(c.me(), &body)?.is(400)
        },
    ));
    for url in [
        "ftp://s3.example.org",
        "s3.example.org",
        "not a url",
        "https://",
        "https://user:secret@s3.example.org",
        "https://s3.example.org:99999",
        "file:///etc/passwd",
    ] {
        checks.push(decision(
            "4.3",
            format!("create refuses {url} as `s3_endpoint_url`"),
            move |c| {
                let body = with(body(c, "marimo"), &json!({ "s3_endpoint_url": url }));
                c.try_create(c.me(), &body)?.refuses("s3_endpoint_url")
            },
        ));
    }
    for url in [
        "http://s3.example.org:9000",
        "https://s3.example.org/path",
        "http://[2001:db8::1]:9000",
    ] {
        checks.push(decision(
            "4.3",
            format!("create accepts {url} as `s3_endpoint_url`"),
            move |c| {
                let body = with(body(c, "marimo"), &json!({ "s3_endpoint_url": url }));
                c.create(&body).map(drop)
            },
        ));
    }
    checks
}

fn body(c: &Context<'_>, flavor: &str) -> Value {
    let unique = c.name();
    c.small_with(
        "container",
        &json!({
            "flavor": flavor, "n_vcpus": 2, "mem_gib": 4, "disk_size_gib": 40,
            "s3_endpoint_url": "https://s3.example.org",
            "s3_access_key_id": format!("s3-id-{unique}"),
            "s3_secret_access_key": format!("s3-secret-{unique}"),
            "s3_prefill_bucket": "bucket/with/a/path",
        }),
    )
}
