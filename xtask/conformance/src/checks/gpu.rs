//! GPUs: containers only.

use super::capacity::well_formed;
use crate::check::{Check, decision, spec};
use crate::context::{Context, same, uuid};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

pub(super) fn checks() -> Vec<Check> {
    vec![
        spec("8", "a GPU on a VM is refused", |c| {
            let model = c.staged(|s| &s.gpu_model, "--gpu-model")?;
            c.try_create(c.me(), &asking(c, "vm", model))?.is(400)
        }),
        decision("8", "a GPU on a VM is refused on `gpu_model`", |c| {
            let model = c.staged(|s| &s.gpu_model, "--gpu-model")?;
            c.try_create(c.me(), &asking(c, "vm", model))?.refuses("gpu_model")
        }),
        decision("4.3", "a model that no node has is refused", |c| {
            c.try_create(c.me(), &asking(c, "container", "No Such GPU 1"))?
                .refuses("gpu_model")
        }),
        decision("4.3", "the refusal of an unknown model names the known ones", |c| {
            let model = c.staged(|s| &s.gpu_model, "--gpu-model")?;
            let answer = c.try_create(c.me(), &asking(c, "container", "No Such GPU 1"))?;
            answer.refuses("gpu_model")?;
            ensure!(answer.body["gpu_model"].to_string().contains(model), "{answer}");
            Ok(())
        }),
        spec("2.3", "a container with a GPU says how many, which, and its rate", |c| {
            let model = c.staged(|s| &s.gpu_model, "--gpu-model")?;
            let created = c.create(&asking(c, "container", model))?;
            same(&created, "gpu_model", &json!(model))?;
            ensure!(created["n_gpus"].as_u64().is_some_and(|n| n >= 1), "`n_gpus` is {}", created["n_gpus"]);
            let rate = created["gpu_cost_hourly_usd"].as_f64();
            ensure!(rate.is_some_and(|r| r >= 0.0), "the rate is {rate:?}");
            c.wait(uuid(&created)?, "running").map(drop)
        })
        .alone(),
        decision("4.3", "`gpu_model` means one GPU; it is kept over stop and restart", |c| {
            let model = c.staged(|s| &s.gpu_model, "--gpu-model")?;
            let running = c.running_with(&asking(c, "container", model))?;
            same(&running, "n_gpus", &json!(1))?;
            let id = uuid(&running)?;
            c.me().act(id, "stop")?.is(200)?;
            let stopped = c.wait(id, "exited")?;
            same(&stopped, "gpu_model", &json!(model))?;
            c.me().act(id, "restart")?.is(200)?;
            same(&c.wait(id, "running")?, "n_gpus", &json!(1))
        })
        .alone(),
        decision("4.6", "a stopped instance gets a GPU again, or a 422 while there is none for it", comes_back)
            .alone(),
        decision("2.7", "a model of which none is free is 422 with `n_gpus`, and a stopped instance whose GPU is gone stays stopped", used_up)
            .alone(),
    ]
}

fn asking(c: &Context<'_>, kind: &str, model: &str) -> Value {
    c.small_with(kind, &json!({ "gpu_model": model }))
}

/// Another instance takes a GPU in the meantime: the same one, or one that is left.
fn comes_back(c: &Context<'_>) -> Result<()> {
    let model = c.staged(|s| &s.gpu_model, "--gpu-model")?;
    let first = c.running_with(&asking(c, "container", model))?;
    let id = uuid(&first)?;
    c.me().act(id, "stop")?.is(200)?;
    let second = c.running_with(&asking(c, "container", model))?;
    let answer = c.me().act(id, "restart")?;
    if answer.status != 200 {
        well_formed(&answer, &first)?;
        same(&answer.body["detail"]["requested"], "n_gpus", &json!(1))?;
        c.me().delete(uuid(&second)?)?.is(204)?;
        // It is free when the host was seen to have it, which takes a moment.
        c.retry(|| Ok(c.me().act(id, "restart")?.status == 200))?;
    }
    let now = c.wait(id, "running")?;
    same(&now, "n_gpus", &json!(1))?;
    same(&now, "gpu_model", &json!(model))
}

fn used_up(c: &Context<'_>) -> Result<()> {
    /// A service with more of one model would take too long to fill.
    const MANY: usize = 64;
    let model = c.staged(|s| &s.gpu_model, "--gpu-model")?;
    let stopped = c.running_with(&asking(c, "container", model))?;
    let id = uuid(&stopped)?;
    c.me().act(id, "stop")?.is(200)?;
    for _ in 0..MANY {
        let answer = c.try_create(c.me(), &asking(c, "container", model))?;
        if answer.status == 201 {
            continue;
        }
        answer.is(422)?;
        let detail = &answer.body["detail"];
        let named = detail["bottleneck"].as_array();
        ensure!(
            named.is_some_and(|b| b.contains(&json!("n_gpus"))),
            "{answer}"
        );
        same(&detail["requested"], "n_gpus", &json!(1))?;
        same(&detail["nearest_available"], "n_gpus", &json!(0))?;
        let restart = c.me().act(id, "restart")?;
        restart.is(422)?;
        let now = c.me().instance(id)?.expect(200)?;
        return same(&now, "state", &json!("exited"));
    }
    crate::check::skip(format!("there are more than {MANY} of {model}"))
}
