//! Section 4.4: sizes.

use crate::check::{Check, decision, skip, spec};
use crate::context::{Context, same, uuid, with};
use crate::redact::redacted;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

const SIZES: [&str; 3] = ["n_vcpus", "mem_gib", "disk_size_gib"];

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        spec(
            "4.4",
            "vCPUs and RAM of a running container change at once, without a restart",
            |c| {
                let running = c.running("container")?;
                let sizes = json!({ "n_vcpus": 2, "mem_gib": 2 });
                let resized = patch(c, &running, &sizes)?;
                let expected = with(running, &resized_fields(&sizes));
                ensure!(
                    resized == expected,
                    "{}, not {}",
                    redacted(&resized),
                    redacted(&expected)
                );
                Ok(())
            },
        ),
        spec("4.4", "a container shrinks again", |c| {
            let running = c.running("container")?;
            patch(c, &running, &json!({ "n_vcpus": 2, "mem_gib": 2 }))?;
            let resized = patch(c, &running, &json!({ "n_vcpus": 1, "mem_gib": 1 }))?;
            same(&resized, "n_vcpus", &json!(1))?;
            same(&resized, "mem_gib", &json!(1.0))
        }),
        decision(
            "4.4",
            "a disk grows, or its node says that it cannot",
            |c| {
                let running = c.running("container")?;
                let body = json!({ "disk_size_gib": 20 });
                let answer = c.me().patch(uuid(&running)?, &body)?;
                if answer.status == 400 {
                    return answer.refuses("disk_size_gib");
                }
                same(&answer.expect(200)?, "disk_size_gib", &json!(20))
            },
        ),
        decision("4.4", "a disk does not shrink", |c| {
            let created =
                c.running_with(&c.small_with("container", &json!({ "disk_size_gib": 20 })))?;
            let answer = c
                .me()
                .patch(uuid(&created)?, &json!({ "disk_size_gib": 19 }))?;
            answer.refuses("disk_size_gib")
        }),
        decision(
            "4.4",
            "all wrong fields of an update are reported at once",
            |c| {
                let body = c.small_with("container", &json!({ "disk_size_gib": 20 }));
                let running = c.running_with(&body)?;
                // What any update may not say, and what this one may not.
                for wrong in [
                    json!({ "n_vcpus": 0, "mem_gib": "2", "disk_size_gib": 2001, "name": "-x",
                    "state": "exited", "nonsense": 1 }),
                    json!({ "n_vcpus": 257, "disk_size_gib": 19,
                    "name": c.sample("container")?["name"], "uuid": "x" }),
                ] {
                    let answer = c.me().patch(uuid(&running)?, &wrong)?;
                    for (field, _) in wrong.as_object().into_iter().flatten() {
                        answer.refuses(field)?;
                    }
                }
                let after = c.me().instance(uuid(&running)?)?.expect(200)?;
                ensure!(after == running, "and yet it changed");
                Ok(())
            },
        ),
        decision("4.4", "name and sizes hold together or not at all", |c| {
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
                "{} and {}",
                redacted(&running),
                redacted(&after)
            );
            let name = c.name();
            let both = patch(c, &running, &json!({ "name": name, "n_vcpus": 2 }))?;
            same(&both, "name", &json!(name))?;
            same(&both, "n_vcpus", &json!(2))
        }),
        decision(
            "4.4",
            "sizes of a stopped container are taken, and hold after restart",
            |c| {
                let stopped = c.stopped("container")?;
                let resized = patch(c, &stopped, &json!({ "n_vcpus": 2, "mem_gib": 2 }))?;
                same(&resized, "state", &json!("exited"))?;
                same(&resized, "n_vcpus", &json!(2))?;
                c.me().act(uuid(&stopped)?, "restart")?.is(200)?;
                let running = c.wait(uuid(&stopped)?, "running")?;
                same(&running, "n_vcpus", &json!(2))?;
                same(&running, "mem_gib", &json!(2))
            },
        ),
        decision(
            "4.4",
            "a container that is provisioning cannot be resized",
            |c| {
                let created = c.create(&c.small("container"))?;
                let answer = c.me().patch(uuid(&created)?, &json!({ "n_vcpus": 2 }))?;
                let now = c.me().instance(uuid(&created)?)?.expect(200)?;
                if answer.status == 200 && now["state"] == "running" {
                    return skip("it was running before it could be asked");
                }
                answer.is(400)
            },
        ),
        decision(
            "4.4",
            "the size that an instance has is no resize, in any state",
            |c| {
                let created = c.create(&c.small("container"))?;
                let resized = patch(c, &created, &json!({ "n_vcpus": 1, "mem_gib": 1 }))?;
                same(&resized, "n_vcpus", &json!(1))
            },
        ),
        spec("4.4", "a VM cannot be resized", |c| {
            let vm = c.sample("vm")?;
            for field in SIZES {
                c.me().patch(uuid(vm)?, &json!({ field: 20 }))?.is(400)?;
            }
            Ok(())
        }),
        decision("4.4", "a resize of a VM is refused on each field", |c| {
            let vm = c.sample("vm")?;
            let body = json!({ "n_vcpus": 2, "mem_gib": 2, "disk_size_gib": 20 });
            let answer = c.me().patch(uuid(vm)?, &body)?;
            SIZES.iter().try_for_each(|field| answer.refuses(field))
        }),
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
            format!("`{field}` of an update has the bounds of creation"),
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

/// As answers write them: RAM is a float there.
fn resized_fields(sizes: &Value) -> Value {
    let mem_gib = sizes["mem_gib"].as_f64();
    with(sizes.clone(), &json!({ "mem_gib": mem_gib }))
}
