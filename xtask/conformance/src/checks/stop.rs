//! Section 4.5.

use crate::check::{Check, decision, spec};
use crate::context::{same, stopped_state, uuid};
use anyhow::ensure;
use serde_json::{Value, json};

pub(super) fn checks() -> Vec<Check> {
    vec![
        spec(
            "4.5",
            "the stop result has message, uuid and state, which is shut_off",
            |c| {
                let running = c.running("container")?;
                let result = c.me().act(uuid(&running)?, "stop")?.expect(200)?;
                ensure!(result["message"].is_string(), "no `message`: {result}");
                same(&result, "uuid", &running["uuid"])?;
                same(&result, "state", &json!("shut_off"))
            },
        ),
        decision("4.5", "get says at once what stop said", |c| {
            for kind in ["container", "vm"] {
                if kind == "vm" && c.sample(kind).is_err() {
                    continue;
                }
                let running = c.running(kind)?;
                c.me().act(uuid(&running)?, "stop")?.is(200)?;
                let got = c.me().instance(uuid(&running)?)?.expect(200)?;
                same(&got, "state", &json!(stopped_state(kind)))?;
            }
            Ok(())
        }),
        spec("4.5", "stop of what does not exist is 404", |c| {
            c.me().act(&c.name(), "stop")?.is(404)
        }),
        spec("4.5", "stop of a deleted instance is 404", |c| {
            let created = c.create(&c.small("container"))?;
            c.me().delete(uuid(&created)?)?.is(204)?;
            c.me().act(uuid(&created)?, "stop")?.is(404)
        }),
        decision(
            "4.5",
            "a stopped instance keeps everything but its state",
            |c| {
                let mut running = c.running("container")?;
                c.me().act(uuid(&running)?, "stop")?.is(200)?;
                let stopped: Value = c.me().instance(uuid(&running)?)?.expect(200)?;
                running["state"] = json!("exited");
                ensure!(running == stopped, "something else changed");
                Ok(())
            },
        ),
    ]
}
