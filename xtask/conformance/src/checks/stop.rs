//! Section 4.5: stop.

use crate::check::{Check, decision, spec};
use crate::context::{expect_field, stopped_state, uuid};
use anyhow::ensure;
use serde_json::{Value, json};

pub(super) fn checks() -> Vec<Check> {
    vec![
        spec(
            "4.5",
            "the result of stop has message, uuid and the state shut_off",
            |c| {
                let running = c.running("container")?;
                let result = c.me().act(uuid(&running)?, "stop")?.expect(200)?;
                ensure!(
                    result["message"].is_string(),
                    "`message` is missing: {result}"
                );
                expect_field(&result, "uuid", &running["uuid"])?;
                expect_field(&result, "state", &json!("shut_off"))
            },
        ),
        decision(
            "4.5",
            "show returns the stopped state right after stop",
            |c| {
                for kind in ["container", "vm"] {
                    if kind == "vm" && c.sample(kind).is_err() {
                        continue;
                    }
                    let running = c.running(kind)?;
                    c.me().act(uuid(&running)?, "stop")?.is(200)?;
                    let got = c.me().instance(uuid(&running)?)?.expect(200)?;
                    expect_field(&got, "state", &json!(stopped_state(kind)))?;
                }
                Ok(())
            },
        ),
        spec("4.5", "stop returns 404 for a missing instance", |c| {
            c.me().act(&c.name(), "stop")?.is(404)
        }),
        spec("4.5", "stop returns 404 for a deleted instance", |c| {
            let created = c.create(&c.small("container"))?;
            c.me().delete(uuid(&created)?)?.is(204)?;
            c.me().act(uuid(&created)?, "stop")?.is(404)
        }),
        decision("4.5", "stop changes only `state`", |c| {
            let mut running = c.running("container")?;
            c.me().act(uuid(&running)?, "stop")?.is(200)?;
            let stopped: Value = c.me().instance(uuid(&running)?)?.expect(200)?;
            running["state"] = json!("exited");
            ensure!(running == stopped, "another field changed");
            Ok(())
        }),
    ]
}
