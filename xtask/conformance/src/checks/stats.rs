//! Sections 2.5 and 4.10: live usage.

use crate::check::{Check, decision, spec};
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
        spec("4.10", "stats returns 200 for a running container", |c| {
            c.me().stats(uuid(c.sample("container")?)?)?.is(200)
        }),
        spec("4.10", "stats returns 400 for a VM", |c| {
            c.me().stats(uuid(c.sample("vm")?)?)?.is(400)
        }),
        spec("4.10", "stats returns 400 for a stopped container", |c| {
            let stopped = c.stopped("container")?;
            c.me().stats(uuid(&stopped)?)?.is(400)
        }),
        decision(
            "4.10",
            "the 400 of stats for a stopped container names its state",
            |c| {
                let stopped = c.stopped("container")?;
                let refused = c.me().stats(uuid(&stopped)?)?;
                ensure!(refused.detail()?.contains("exited"), "{refused}");
                Ok(())
            },
        ),
        spec(
            "4.10",
            "stats returns 400 for a provisioning container",
            |c| {
                let (_, response) = c.during_provisioning("container", |id| c.me().stats(id))?;
                response.is(400)
            },
        ),
        spec("4.10", "stats returns 404 for a missing instance", |c| {
            c.me().stats(&c.name())?.is(404)
        }),
        decision(
            "2.5",
            "stats totals equal the container's sizes, and no figure is negative",
            |c| {
                let container = c.sample("container")?;
                let stats = c.me().stats(uuid(container)?)?.expect(200)?;
                for (total, size) in [
                    ("mem_total_gib", "mem_gib"),
                    ("disk_total_gib", "disk_size_gib"),
                ] {
                    let (total, size) = (stats[total].as_f64(), container[size].as_f64());
                    ensure!(
                        total == size,
                        "the total is {total:?}, but the size is {size:?}: {stats}"
                    );
                }
                for field in FIELDS {
                    let value = stats[field]
                        .as_f64()
                        .with_context(|| format!("`{field}` is not a number"))?;
                    ensure!(value >= 0.0, "`{field}` is {value}");
                }
                Ok(())
            },
        ),
        decision(
            "2.5",
            "stats have the header Age, the sample's age in whole seconds",
            |c| {
                let response = c.me().stats(uuid(c.sample("container")?)?)?;
                response.is(200)?;
                let age = response.header("age").context("there is no Age")?;
                ensure!(age.parse::<u32>().is_ok(), "Age is {age:?}");
                Ok(())
            },
        ),
        decision("2.5", "stats totals follow a resize", |c| {
            let running = c.running("container")?;
            let body = serde_json::json!({ "mem_gib": 2 });
            c.me().patch(uuid(&running)?, &body)?.is(200)?;
            let stats = c.me().stats(uuid(&running)?)?.expect(200)?;
            ensure!(stats["mem_total_gib"].as_f64() == Some(2.0), "{stats}");
            Ok(())
        }),
    ];
    for field in FIELDS {
        checks.push(spec(
            "2.5",
            format!("`{field}` of stats is a number"),
            move |c| {
                let stats = c.me().stats(uuid(c.sample("container")?)?)?.expect(200)?;
                ensure!(stats[field].is_number(), "{stats}");
                Ok(())
            },
        ));
    }
    checks
}
