//! Sections 2.5 and 4.10.

use crate::check::{Check, decision, skip, spec};
use crate::context::uuid;
use anyhow::{Context as _, ensure};

const FIELDS: [&str; 5] = [
    "cpu_percent",
    "mem_used_gib",
    "mem_total_gib",
    "disk_used_gib",
    "disk_total_gib",
];

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        spec("4.10", "stats of a running container is 200", |c| {
            c.me().stats(uuid(c.sample("container")?)?)?.is(200)
        }),
        spec("4.10", "stats of a VM is 400", |c| {
            c.me().stats(uuid(c.sample("vm")?)?)?.is(400)
        }),
        spec(
            "4.10",
            "stats of a container that is not running is 400",
            |c| {
                let stopped = c.stopped("container")?;
                c.me().stats(uuid(&stopped)?)?.is(400)
            },
        ),
        spec(
            "4.10",
            "stats of a container that is provisioning is 400",
            |c| {
                let created = c.create(&c.small("container"))?;
                let answer = c.me().stats(uuid(&created)?)?;
                let now = c.me().instance(uuid(&created)?)?.expect(200)?;
                if answer.status == 200 && now["state"] == "running" {
                    return skip("it was running before it could be asked");
                }
                answer.is(400)
            },
        ),
        spec("4.10", "stats of what does not exist is 404", |c| {
            c.me().stats(&c.name())?.is(404)
        }),
        decision(
            "2.5",
            "totals are the container's sizes, and no figure is negative",
            |c| {
                let container = c.sample("container")?;
                let stats = c.me().stats(uuid(container)?)?.expect(200)?;
                for (total, size) in [
                    ("mem_total_gib", "mem_gib"),
                    ("disk_total_gib", "disk_size_gib"),
                ] {
                    let (total, size) = (stats[total].as_f64(), container[size].as_f64());
                    ensure!(total == size, "{total:?} of {size:?}: {stats}");
                }
                for field in FIELDS {
                    let value = stats[field].as_f64().with_context(|| field.to_owned())?;
                    ensure!(value >= 0.0, "`{field}` is {value}");
                }
                Ok(())
            },
        ),
        decision("2.5", "totals follow a resize", |c| {
            let running = c.running("container")?;
            let body = serde_json::json!({ "mem_gib": 2 });
            c.me().patch(uuid(&running)?, &body)?.is(200)?;
            let stats = c.me().stats(uuid(&running)?)?.expect(200)?;
            ensure!(stats["mem_total_gib"].as_f64() == Some(2.0), "{stats}");
            Ok(())
        }),
    ];
    for field in FIELDS {
        checks.push(spec("2.5", format!("`{field}` is a number"), move |c| {
            let stats = c.me().stats(uuid(c.sample("container")?)?)?.expect(200)?;
            ensure!(stats[field].is_number(), "{stats}");
            Ok(())
        }));
    }
    checks
}
