//! Section 8: `GET /api/quota/`.

use crate::check::{Check, decision, skip};
use crate::client::Response;
use crate::context::{Context, uuid};
use anyhow::{Context as _, Result, ensure};

const PATH: &str = "/api/quota/";

const FIELDS: [&str; 10] = [
    "n_instances",
    "n_vcpus",
    "mem_gib",
    "disk_size_gib",
    "n_gpus",
    "n_ports",
    "n_volumes",
    "volume_gib",
    "n_snapshots",
    "snapshot_gib",
];

pub(super) fn checks() -> Vec<Check> {
    vec![
        decision("8", "quota has usage and limit of each quantity", |c| {
            let quota = asked(c)?.body;
            let fields = quota.as_object().context("not an object")?;
            ensure!(fields.len() == FIELDS.len(), "{quota}");
            for field in FIELDS {
                let limit = &quota[field]["limit"];
                ensure!(quota[field]["used"].is_u64(), "`{field}`: {quota}");
                ensure!(limit.is_u64() || limit.is_null(), "`{field}`: {quota}");
            }
            Ok(())
        }),
        decision("8", "quota needs a key", |c| {
            asked(c)?;
            c.anonymous().get(PATH)?.is(401)
        }),
        decision(
            "8",
            "quota ignores a body, but not a large or a broken one",
            |c| {
                asked(c)?;
                let ask = |body: &[u8]| {
                    let headers = [("Content-Type", "application/json")];
                    c.me().raw("GET", PATH, &headers, Some(body))
                };
                ask(b"{}")?.is(200)?;
                ask(&[b' '; 64 * 1024 + 1])?.is(413)?;
                let headers = "Host: localhost\r\nTransfer-Encoding: chunked\r\n";
                let broken =
                    c.me()
                        .send_malformed("GET", PATH, headers, "zz\r\n{}\r\n0\r\n\r\n")?;
                broken.is(400)
            },
        ),
        decision("8", "quota counts an instance from its creation", |c| {
            let created = c.create(&c.small("container"))?;
            let quota = asked(c)?.body;
            c.me().instance(uuid(&created)?)?.is(200)?;
            // Other rules create and delete at the same time.
            let others = [
                "n_gpus",
                "n_volumes",
                "volume_gib",
                "n_snapshots",
                "snapshot_gib",
            ];
            for field in FIELDS.into_iter().filter(|field| !others.contains(field)) {
                let used = quota[field]["used"].as_u64();
                ensure!(used > Some(0), "`{field}`: {quota}");
            }
            Ok(())
        }),
    ]
}

fn asked(c: &Context<'_>) -> Result<Response> {
    let answer = c.me().get(PATH)?;
    if answer.status == 404 {
        return skip("the service has no quotas");
    }
    answer.is(200)?;
    Ok(answer)
}
