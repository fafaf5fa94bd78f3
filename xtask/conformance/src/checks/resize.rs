//! Section 4.4: resize.

use crate::check::{Check, decision, spec};
use crate::context::{Context, expect_field, uuid, with};
use crate::redact::redacted;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

const SIZES: [&str; 3] = ["n_vcpus", "mem_gib", "disk_size_gib"];

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        spec(
            "4.4",
            "a running container changes its vCPUs and RAM without a restart",
            |c| {
                let running = c.running("container")?;
                let sizes = json!({ "n_vcpus": 2, "mem_gib": 2 });
                let resized = patch(c, &running, &sizes)?;
                let expected = with(running, &response_form(&sizes));
                ensure!(
                    resized == expected,
                    "the container is {}, expected {}",
                    redacted(&resized),
                    redacted(&expected)
                );
                Ok(())
            },
        ),
        spec("4.4", "vCPUs and RAM of a container can shrink", |c| {
            let running = c.running("container")?;
            patch(c, &running, &json!({ "n_vcpus": 2, "mem_gib": 2 }))?;
            let resized = patch(c, &running, &json!({ "n_vcpus": 1, "mem_gib": 1 }))?;
            expect_field(&resized, "n_vcpus", &json!(1))?;
            expect_field(&resized, "mem_gib", &json!(1.0))
        }),
        decision(
            "4.4",
            "a disk grows, or the update is refused on `disk_size_gib`",
            |c| {
                let running = c.running("container")?;
                let body = json!({ "disk_size_gib": 20 });
                let response = c.me().patch(uuid(&running)?, &body)?;
                if response.status == 400 {
                    return response.refuses("disk_size_gib");
                }
                expect_field(&response.expect(200)?, "disk_size_gib", &json!(20))
            },
        ),
        decision("4.4", "update refuses a smaller disk", |c| {
            let created =
                c.running_with(&c.small_with("container", &json!({ "disk_size_gib": 20 })))?;
            let response = c
                .me()
                .patch(uuid(&created)?, &json!({ "disk_size_gib": 19 }))?;
            response.refuses("disk_size_gib")
        }),
        decision("4.4", "update reports all wrong fields together", |c| {
            let body = c.small_with("container", &json!({ "disk_size_gib": 20 }));
            let running = c.running_with(&body)?;
            // The first body is wrong for every instance, the second for this instance.
            for wrong in [
                json!({ "n_vcpus": 0, "mem_gib": "2", "disk_size_gib": 2001, "name": "-x",
                    "state": "exited", "nonsense": 1 }),
                json!({ "n_vcpus": 257, "disk_size_gib": 19,
                    "name": c.sample("container")?["name"], "uuid": "x" }),
            ] {
                let response = c.me().patch(uuid(&running)?, &wrong)?;
                for (field, _) in wrong.as_object().into_iter().flatten() {
                    response.refuses(field)?;
                }
            }
            let after = c.me().instance(uuid(&running)?)?.expect(200)?;
            ensure!(after == running, "the instance changed despite the refusal");
            Ok(())
        }),
        decision("4.4", "an update of name and sizes is atomic", |c| {
            let running = c.running("container")?;
            let id = uuid(&running)?;
            for wrong in [
                json!({ "name": c.name(), "n_vcpus": 0 }),
                json!({ "name": "-x", "n_vcpus": 2 }),
                json!({ "name": c.name(), "n_vcpus": 2, "state": "exited" }),
                json!({ "name": c.sample("container")?["name"], "n_vcpus": 2 }),
            ] {
                c.me().patch(id, &wrong)?.is(400)?;
            }
            let after = c.me().instance(id)?.expect(200)?;
            ensure!(
                after == running,
                "before: {}; after: {}",
                redacted(&running),
                redacted(&after)
            );
            let name = c.name();
            let both = patch(c, &running, &json!({ "name": name, "n_vcpus": 2 }))?;
            expect_field(&both, "name", &json!(name))?;
            expect_field(&both, "n_vcpus", &json!(2))
        }),
        decision(
            "4.4",
            "a resize of a stopped container holds after restart",
            |c| {
                let stopped = c.stopped("container")?;
                let resized = patch(c, &stopped, &json!({ "n_vcpus": 2, "mem_gib": 2 }))?;
                expect_field(&resized, "state", &json!("exited"))?;
                expect_field(&resized, "n_vcpus", &json!(2))?;
                c.me().act(uuid(&stopped)?, "restart")?.is(200)?;
                let running = c.wait(uuid(&stopped)?, "running")?;
                expect_field(&running, "n_vcpus", &json!(2))?;
                expect_field(&running, "mem_gib", &json!(2))
            },
        ),
        decision(
            "4.4",
            "a provisioning container is renamed, and not resized",
            |c| {
                let (created, response) = c.during_provisioning("container", |id| {
                    c.me().patch(id, &json!({ "name": c.name() }))?.is(200)?;
                    c.me().patch(id, &json!({ "n_vcpus": 2 }))
                })?;
                response.is(400)?;
                ensure!(response.detail()?.contains("provisioning"), "{response}");
                let running = c.wait(uuid(&created)?, "running")?;
                ensure!(running["name"] != created["name"], "it was not renamed");
                expect_field(&running, "n_vcpus", &json!(1))
            },
        ),
        decision(
            "4.4",
            "an update to the current size is not a resize",
            |c| {
                let created = c.create(&c.small("container"))?;
                let resized = patch(c, &created, &json!({ "n_vcpus": 1, "mem_gib": 1 }))?;
                expect_field(&resized, "n_vcpus", &json!(1))
            },
        ),
        spec("4.4", "a VM cannot be resized", |c| {
            let vm = c.sample("vm")?;
            for field in SIZES {
                c.me().patch(uuid(vm)?, &json!({ field: 20 }))?.is(400)?;
            }
            Ok(())
        }),
        decision(
            "4.4",
            "the refusal of a VM's resize names each field",
            |c| {
                let vm = c.sample("vm")?;
                let body = json!({ "n_vcpus": 2, "mem_gib": 2, "disk_size_gib": 20 });
                let response = c.me().patch(uuid(vm)?, &body)?;
                SIZES.iter().try_for_each(|field| response.refuses(field))
            },
        ),
    ];
    for (field, wrong) in [
        (
            "n_vcpus",
            [json!(0), json!(257), json!("2"), json!(1.5), json!(true)],
        ),
        (
            "mem_gib",
            [json!(0), json!(513), json!("2"), json!(1.5), json!(true)],
        ),
        (
            "disk_size_gib",
            [json!(9), json!(2001), json!("20"), json!(20.5), json!(true)],
        ),
    ] {
        checks.push(spec(
            "4.4",
            format!("update limits `{field}` to the range of create"),
            move |c| {
                let id = uuid(c.sample("container")?)?;
                for value in &wrong {
                    c.me().patch(id, &json!({ field: value }))?.is(400)?;
                }
                Ok(())
            },
        ));
    }
    checks
}

fn patch(c: &Context<'_>, instance: &Value, body: &Value) -> Result<Value> {
    c.me().patch(uuid(instance)?, body)?.expect(200)
}

/// Converts sizes to their form in responses, where RAM is a float.
fn response_form(sizes: &Value) -> Value {
    let mem_gib = sizes["mem_gib"].as_f64();
    with(sizes.clone(), &json!({ "mem_gib": mem_gib }))
}
